"""Read one table of a dump as a stream of rows, or write it to a pipe."""

from __future__ import annotations

import marshal
import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

from so2docs.errors import explain
from so2docs.extensions.tables.columns import TableColumns
from so2docs.extensions.tables.options import RowOptions, TableOptions
from so2docs.extensions.tables.report import FlatTable
from so2docs.extensions.tables.tables import open_run
from so2docs.extensions.tables.visitors import OpenEncoder
from so2docs.extensions.tables.writing import (
    ENCODERS,
    ArrowEncoder,
    LinesEncoder,
    RowsEncoder,
    read,
)
from so2docs.plugin import (
    DUMP,
    OptionError,
    Source,
    flag,
    log,
    options_of,
    plural,
    read_options,
    require_packages,
    spell_out,
)

if TYPE_CHECKING:
    import pandas
    import pyarrow

    from so2docs.extensions.keywords import RowKeywords, TableKeywords


class Rows:
    """The rows of a table of a dump, which is read anew by each iteration.

    Iteration yields lists of tuples with a value for each column: integers, texts, booleans, lists
    of texts (tags), or None. Dates are texts, such as `2012-05-01T12:00:00.000`. Where pyarrow is
    installed, all programs that take Arrow streams (Arrow PyCapsule interface) can read the table,
    with dates as timestamps. Workers end with the last batch, or when the reader closes the stream.

    Attributes:
        columns: Names of the columns; the last one, `Other`, has a JSON object of the attributes
            that have no column or do not fit the type of their column.
    """

    def __init__(self, source: str, only: Sequence[str], options: RowOptions) -> None:
        Source(source).check_named("tables are read")
        Source(source).check_exists()
        if len(only) != 1:
            raise OptionError(f"a stream has one table; name it with {flag('only', 'posts')}")
        self._source, self._options = source, options
        self._table = TableColumns(DUMP[only[0]])
        self.columns = self._table.names

    def __repr__(self) -> str:
        return f"<Rows of {self._table.table.name} in {self._source}>"

    def __iter__(self) -> Iterator[list[tuple[Any, ...]]]:
        return map(marshal.loads, self._read(RowsEncoder))

    @property
    def schema(self) -> pyarrow.Schema:
        """The Arrow schema of the columns."""
        _require_pyarrow()
        return self._table.schema

    def to_batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Iterate over the rows as Arrow record batches."""
        _require_pyarrow()
        import pyarrow as pa

        for data in self._read(ArrowEncoder):
            yield from pa.ipc.open_stream(data)

    def to_pandas(self) -> pandas.DataFrame:
        """Read all rows as a pandas data frame; integer columns are `Int64`, which allows nulls."""
        _require_pyarrow()
        require_packages("a data frame", "pandas")
        import pandas as pd
        import pyarrow as pa

        table = pa.Table.from_batches(self.to_batches(), self.schema)
        return table.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        _require_pyarrow()
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self.schema, self.to_batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _read(self, open_encoder: OpenEncoder) -> Iterator[bytes]:
        """Yield the segments that an encoder makes of the rows."""
        with explain(), Source(self._source) as source:
            (file,) = source.find_tables([self._table.table.name])
            with open_run(source, self._options, [file]) as run:
                table = FlatTable(file.table.name, self._source)
                for segments, _ in run.read(file, table, open_encoder):
                    yield from map(read, segments)
        for reason, count in table.strays.items():
            log.warning("%s: %s left out: %s", file.name, plural(count, "row"), reason)


def _require_pyarrow() -> None:
    require_packages("a stream of Arrow batches", "pyarrow", extra="parquet")


@spell_out(options_of(RowOptions))
def rows(dump: str | os.PathLike[str], table: str, **keywords: Unpack[RowKeywords]) -> Rows:
    """Read the rows of a table of a dump, without writing files.

    Iteration gives lists of tuples. DuckDB, polars, pandas, pyarrow and other programs take the
    rows as an Arrow stream. Columns and rows are those of `tables`. A warning gives the number of
    rows that are left out because of their form.

    Examples:
        >>> votes = so2docs.rows("sample.stackexchange.com.7z", "votes")
        >>> for batch in votes: ...
        >>> duckdb.sql("SELECT VoteTypeId, count(*) FROM votes GROUP BY ALL")
        >>> votes.to_pandas()

    Args:
        dump: An archive or a folder with the tables, or the file of one table with the others next
            to it.
        table: Name of the table, such as `posts`.
        keywords: Options: `so2docs.extensions.keywords.RowKeywords`.

    Returns:
        The rows; see `Rows`.

    Raises:
        OptionError: An option has a value that is not allowed, or a package is missing.
        DumpError: The dump does not exist. Errors in the dump are raised while reading.
    """
    only = options_of(TableOptions)["only"].read(table)
    return Rows(os.fspath(dump), only, read_options(RowOptions, keywords))


def write_stream(dump: str, file: BinaryIO, **keywords: Unpack[TableKeywords]) -> None:
    """Write one table to an open file, such as a pipe.

    Raises:
        OptionError: An option has a value that is not allowed for a stream, or a package is
            missing.
    """
    options = read_options(TableOptions, keywords)
    encoder_class = ENCODERS[options.format]
    if options.format != "arrow" and not issubclass(encoder_class, LinesEncoder):
        raise OptionError(
            f"{flag('format', options.format)} cannot be written to standard output; use "
            f"{flag('format', 'arrow')}, csv or jsonl"
        )
    if options.load is not None:
        raise OptionError(f"{flag('load')} writes files; give a folder in place of -")
    if options.format != "jsonl":
        _require_pyarrow()
    rows = Rows(dump, options.only, options)
    if issubclass(encoder_class, LinesEncoder):
        file.write(encoder_class(rows._table).header)
        for lines in rows._read(partial(encoder_class, compression="none")):
            file.write(lines)
        return
    import pyarrow as pa

    with pa.ipc.new_stream(file, rows.schema) as writer:
        for batch in rows.to_batches():
            writer.write_batch(batch)
