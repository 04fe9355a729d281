"""`spark.read.format("so2docs")`: a Python data source, with the columns of `--format parquet`.

Spark finds the data source through the package `pyspark_so2docs`. Each dump is one partition.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from so2docs.errors import DumpError, OptionError, So2docsError
from so2docs.extensions.spark import jobs, sites
from so2docs.extensions.spark.jobs import catch_errors
from so2docs.extensions.spark.sites import Site
from so2docs.options.request import build_options
from so2docs.options.table import OPTIONS
from so2docs.progress import log

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_OWN = ("path", "paths", "typed", "site_field", "site", "on_error")


@contextmanager
def _without_traceback() -> Iterator[None]:
    """Let Spark report an error of this package without its traceback.

    Spark's worker process exits after an error, so the environment variable affects nothing else.
    """
    try:
        yield
    except So2docsError:
        os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise


class Questions(DataSource):  # type: ignore[misc]
    """The Spark data source: the questions of dumps, with their answers inside.

    The options are the keywords of `so2docs.documents`, as strings. `load` takes the path of a dump
    or a folder, a pattern, or a list of these.
    """

    @_without_traceback()
    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._request = Request(options)

    @classmethod
    def name(cls) -> str:
        """Return the name to pass to `spark.read.format`."""
        return "so2docs"

    def schema(self) -> StructType:
        """Return the schema of the columns that the options request."""
        return self._request.columns

    @_without_traceback()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader; a schema given by the user must be that of the columns.

        Raises:
            OptionError: The schema is another one.
        """
        columns = self._request.columns
        if schema.simpleString() != columns.simpleString():
            raise OptionError(
                f"the schema is {schema.simpleString()}, but the columns are "
                f"{', '.join(columns.fieldNames())}; choose columns with the option fields"
            )
        return DumpReader(self._request)


class Request:
    """The parsed and validated options of the data source."""

    def __init__(self, options: Mapping[str, str]) -> None:
        texts = {name.lower(): text for name, text in options.items()}
        paths = [texts["path"]] if texts.get("path") else json.loads(texts.get("paths", "[]"))
        self.patterns = sites.patterns(paths)
        self.typed = texts.get("typed", "true").lower() != "false"
        self.on_error = texts.get("on_error", "stop")
        self.site_field = "Site" if self.typed else texts.get("site_field")
        kwargs = {
            # Convert strings to the types of the keywords; an unknown name is an error below.
            name: OPTIONS[name].from_text(text) if name in OPTIONS else text
            for name, text in texts.items()
            if name not in _OWN
        }
        try:
            self.kwargs = sites.check_options(
                paths[0] if len(paths) == 1 else paths,
                site=texts.get("site"),
                on_error=self.on_error,
                is_frame=True,
                **kwargs,
            )
        except TypeError as error:
            raise OptionError(str(error)) from error
        core = self.kwargs.get("core", "auto")
        self.columns = jobs.columns(build_options(self.kwargs, core=core), typed=self.typed)


class DumpReader(DataSourceReader):  # type: ignore[misc]
    """Reads dumps, one per partition."""

    def __init__(self, request: Request) -> None:
        self._request = request

    @_without_traceback()
    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each dump, the largest first."""
        request = self._request
        failures: dict[Site, So2docsError] | None = {} if request.on_error == "skip" else None
        sizes = sites.plan(
            request.patterns,
            lambda function, tasks: [catch_errors(function, task) for task in tasks],
            site_field=request.site_field,
            failures=failures,
            keywords=request.kwargs,
        )
        for error in (failures or {}).values():
            log.warning("%s; left out", error)
        return [InputPartition(site) for site in sites.by_size(sizes)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the questions of a dump in Arrow batches; with `skip`, log an error and stop."""
        if partition.value is None:  # Spark passes this partition if there are no dumps.
            return
        site, request = partition.value, self._request
        try:
            with (
                _without_traceback(),
                sites.open_documents(site, request.kwargs) as (options, documents),
            ):
                yield from jobs.batches(site.name, documents, options, typed=request.typed)
        except DumpError as error:
            if request.on_error == "stop":
                raise
            log.warning("%s; left out", error)


def to_texts(kwargs: Mapping[str, Any]) -> dict[str, str]:
    """Convert keywords to data source options (strings); leave out None and empty lists."""
    texts = {name: _to_text(value) for name, value in kwargs.items() if value is not None}
    return {name: text for name, text in texts.items() if text}


def _to_text(value: Any) -> str:
    if callable(value):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, date):
        return value.isoformat()
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
