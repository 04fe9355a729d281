"""`spark.read.format("so2docs")`: a Python data source, with the columns of `--format parquet`.

Spark finds the data source through the package `pyspark_so2docs`. Each dump is one partition.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from so2docs.errors import DumpError, OptionError, So2docsError
from so2docs.options.request import build_options, validate_keywords
from so2docs.options.table import OPTIONS, Options
from so2docs.progress import log
from so2docs.spark import jobs, sites
from so2docs.spark.jobs import catch_errors
from so2docs.spark.sites import document_batches

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_IGNORES_ERRORS = "ignorecorruptfiles"
"""The option of Spark's file sources that sets the default of `on_error`. Spark converts the names
of all options to lower case."""

_OWN = ("path", "paths", "typed", "site_field", "site", "on_error", _IGNORES_ERRORS)
_OF_TABLES = "provider"
"""An option that Spark adds for `CREATE TABLE … USING so2docs`. If it is present, the names of the
user's options start with `option.`, and Spark has added other options."""

_METADATA = "so2docs"
"""Key in the metadata of a catalog table's first column, which keeps the options because Spark 4.3
does not pass them when the table is read."""


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

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._texts = _own_options(options)

    @classmethod
    def name(cls) -> str:
        """Return the name to pass to `spark.read.format`."""
        return "so2docs"

    @_without_traceback()
    def schema(self) -> StructType:
        """Return the schema of the columns that the options request."""
        schema = _Request(self._texts).columns
        if _OF_TABLES in self.options:
            schema.fields[0].metadata = {_METADATA: json.dumps(self._texts)}
        return schema

    @_without_traceback()
    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader for the columns of `schema`, which may be a subset of all columns."""
        saved = schema.fields[0].metadata.get(_METADATA) if schema.fields else None
        texts = self._texts if saved is None else json.loads(saved) | self._texts
        request = _Request(texts)
        return DumpReader(request, schema)


class _Request:
    """The parsed and validated options of the data source."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        path, paths = texts.get("path"), texts.get("paths")
        if not path and not paths:
            raise OptionError(
                "no dump is given; give its path. Spark loses the options of a table that declares "
                "columns: create it without columns, and choose them with the option fields"
            )
        self.patterns = sites.patterns([path] if path else json.loads(paths or ""))
        self.typed = _parse_switch(texts.get("typed", "true"))
        ignores_errors = _parse_switch(texts.get(_IGNORES_ERRORS, "false"))
        self.on_error = sites.check_on_error(
            texts.get("on_error", "skip" if ignores_errors else "stop")
        )
        self.site_field = "Site" if self.typed else texts.get("site_field")
        options = {name: text for name, text in texts.items() if name not in _OWN}
        kwargs = {name: _parse_keyword(name, text) for name, text in options.items()}
        try:
            self.kwargs: dict[str, Any] = validate_keywords(kwargs, "documents")
        except TypeError as error:  # The name is unknown.
            raise OptionError(str(error)) from error
        if "site" in texts:
            self.kwargs["site"] = texts["site"]

    @property
    def options(self) -> Options:
        return build_options(self.kwargs, core=self.kwargs.get("core", "auto"))

    @property
    def columns(self) -> StructType:
        return jobs.columns(self.options, typed=self.typed)


class DumpReader(DataSourceReader):  # type: ignore[misc]
    """Reads dumps, one per partition."""

    def __init__(self, request: _Request, schema: StructType) -> None:
        self._request = request
        self._columns = schema.fieldNames()
        self._prune(schema)

    def _prune(self, schema: StructType) -> None:
        """Parse only the attributes named in a schema, if columns are typed.

        Raises:
            OptionError: A column of the schema does not exist, or does not have the type of the
                column in documents.
        """
        columns = {field.name: field.dataType for field in self._request.columns}
        for field in schema:
            if field.name not in columns:
                raise OptionError(
                    f"the schema has a column {field.name!r}; the columns are {', '.join(columns)}"
                )
            if field.dataType != columns[field.name]:
                raise OptionError(
                    f"the schema has {field.name} as {field.dataType.simpleString()}; "
                    f"the type is {columns[field.name].simpleString()}"
                )
        if not self._request.typed:
            return
        added = {"Site", "Other"}
        kwargs = self._request.kwargs
        if len(schema) < len(columns) and not {"fields", "drop_fields"} & {*kwargs}:
            kwargs["fields"] = ["Id", *(name for name in self._columns if name not in added)]

    @_without_traceback()
    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each dump, the largest first."""
        request = self._request
        options = request.options
        selected = sites.find(request.patterns, _run_here)
        sizes = _run_here(partial(sites.inspect, nest=options.nest), selected)
        failures: dict[str, So2docsError] | None = {} if request.on_error == "skip" else None
        sized = dict(sites.raise_or_note(zip(selected, sizes, strict=True), failures))
        for error in (failures or {}).values():
            log.warning("%s; left out", error)
        if request.kwargs.get("site") is None:
            for site in sized:
                sites.check_host(site, options)
        return [InputPartition(site) for site in sites.by_size(sized.items())]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the questions of a dump in Arrow batches; with `skip`, log an error and stop."""
        if partition.value is None:  # Spark passes this partition if there are no dumps.
            return
        batches = document_batches(
            partition.value,
            keywords=self._request.kwargs,
            typed=self._request.typed,
            site_field=self._request.site_field,
        )
        try:
            with _without_traceback():
                for batch in batches:
                    yield batch.select(self._columns)
        except DumpError as error:
            if self._request.on_error == "stop":
                raise
            log.warning("%s; left out", error)


def _run_here(function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
    return [catch_errors(function, task) for task in tasks]


def _own_options(options: Mapping[str, str]) -> dict[str, str]:
    """Select the user's options, without those that Spark adds to a catalog table."""
    by_lower_name = {name.lower(): text for name, text in options.items()}
    if _OF_TABLES not in by_lower_name:
        return by_lower_name
    texts = {
        name.removeprefix("option."): text
        for name, text in by_lower_name.items()
        if name.startswith("option.")
    }
    # Spark turns a path into a URL; turn it back.
    return texts | {"path": re.sub("^file:/+", "/", by_lower_name.get("path", ""))}


def to_texts(kwargs: Mapping[str, Any]) -> dict[str, str]:
    """Convert keywords to data source options (strings); leave out None and empty lists."""
    texts = {name: _to_text(value) for name, value in kwargs.items() if value is not None}
    # Drop empty lists, which are the default.
    return {name: text for name, text in texts.items() if text}


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, date):
        return value.isoformat()
    if callable(value):
        return f"{value.__module__}:{value.__qualname__}"
    if isinstance(value, str | int | float | os.PathLike):
        return str(value)
    return ",".join(map(str, value))


def _parse_keyword(name: str, text: str) -> Any:
    """Convert the string value of a Spark option to the type of the keyword of that name."""
    return OPTIONS[name].from_text(text) if name in OPTIONS else text


def _parse_switch(text: str) -> bool:
    return text.lower() not in ("false", "0")
