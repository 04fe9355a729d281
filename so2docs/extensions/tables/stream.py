"""Read one table of a dump as a stream of Arrow record batches, or write it to a pipe."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

from so2docs.counts import plural
from so2docs.dump.source import Source
from so2docs.errors import OptionError, flag, require_packages
from so2docs.extensions.options import RowOptions, TableOptions
from so2docs.extensions.tables.columns import TableColumns
from so2docs.extensions.tables.report import FlatTable
from so2docs.extensions.tables.tables import find_files, for_workers, open_run
from so2docs.extensions.tables.writing import ENCODERS, LinesEncoder, read
from so2docs.options.request import read_options
from so2docs.options.signatures import spell_out
from so2docs.options.table import options_of
from so2docs.progress import log
from so2docs.schema import DUMP
from so2docs.store.disk import disk_errors, write_all

if TYPE_CHECKING:
    from so2docs.options.keywords import RowKeywords, TableKeywords


class TableStream:
    """A table of a dump as Arrow record batches, for all programs that take Arrow streams.

    The dump is read anew by each iteration and each program that opens the stream (Arrow PyCapsule
    interface). Workers end with the last batch, or when the program closes the stream.

    Attributes:
        schema: The Arrow schema of the columns.
    """

    def __init__(self, source: str, options: TableOptions) -> None:
        require_packages("a stream of Arrow batches", "pyarrow", extra="parquet")
        Source(source).check_named("tables are read")
        Source(source).check_exists()
        if len(options.only) != 1:
            raise OptionError(f"a stream has one table; name it with {flag('only', 'posts')}")
        self._source, self._options = source, options
        self.schema = TableColumns(DUMP[options.only[0]]).schema

    def __iter__(self) -> Iterator[Any]:
        import pyarrow as pa

        options, progress = for_workers(self._options)
        with disk_errors(), Source(self._source) as source:
            files, read_first = find_files(source, options)
            opened = open_run(source, options, files, read_first, folder=None, progress=progress)
            with opened as run:
                table = FlatTable(options.only[0], self._source)
                for segments, _ in run.read(files[0], table):
                    for segment in segments:
                        yield from pa.ipc.open_stream(read(segment))
        for reason, count in table.strays.items():
            log.warning("%s: %s left out: %s", files[0].name, plural(count, "row"), reason)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        import pyarrow as pa

        reader = pa.RecordBatchReader.from_batches(self.schema, iter(self))
        return reader.__arrow_c_stream__(requested_schema)


@spell_out(options_of(RowOptions))
def stream_table(
    dump: str | os.PathLike[str], table: str, **keywords: Unpack[RowKeywords]
) -> TableStream:
    """Read a table of a dump as Arrow record batches, without writing files.

    DuckDB, polars, pandas, pyarrow and other programs take the stream. Columns and rows are those
    of `tables`. A warning gives the number of rows that are left out because of their form.

    Examples:
        >>> votes = so2docs.stream_table("sample.stackexchange.com.7z", "votes")
        >>> duckdb.sql("SELECT VoteTypeId, count(*) FROM votes GROUP BY ALL")

    Args:
        dump: An archive or a folder with the tables, or the file of one table with the others next
            to it.
        table: Name of the table, such as `posts`.
        keywords: Options: `so2docs.options.keywords.RowKeywords`.

    Returns:
        The stream; iterating over it gives record batches.

    Raises:
        OptionError: An option has a value that is not allowed, or a package is missing.
        DumpError: The dump does not exist. Errors in the dump are raised while reading.
    """
    options = read_options(RowOptions, keywords)
    only = options_of(TableOptions)["only"].read(table)
    values = {entry.name: getattr(options, entry.name) for entry in fields(options)}
    return TableStream(os.fspath(dump), TableOptions(**values, only=only, format="arrow"))


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
    if options.load is not None or options.types:
        name = flag("types") if options.types else flag("load")
        raise OptionError(f"{name} writes files; give a folder in place of -")
    stream = TableStream(dump, replace(options, format="arrow"))
    import pyarrow as pa  # The stream has checked that it is installed.

    if issubclass(encoder_class, LinesEncoder):
        encoder = encoder_class(stream.schema)
        write_all(file, encoder.header)
        for batch in stream:
            write_all(file, encoder.lines(pa.Table.from_batches([batch])))
        return
    with pa.ipc.new_stream(file, stream.schema) as writer:
        for batch in stream:
            writer.write_batch(batch)
