"""`spark.read.format("so2docs")`: a Python data source, with the columns of `--format parquet`.

Spark finds it by the name of the package `pyspark_so2docs`, and reads every dump as one partition.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import orjson
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from so2docs.options.keywords import DocumentKeywords
from so2docs.options.request import checked, options_of
from so2docs.spark import rows, sites
from so2docs.spark.frames import outcome
from so2docs.spark.site import document_batches

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_HINTS = get_type_hints(DocumentKeywords)


class Questions(DataSource):  # type: ignore[misc]
    """The questions of dumps, with their answers inside.

    Its options are the keywords of `so2docs.documents`, as texts; `load` takes a dump, a folder, a
    pattern for several, or a list of them.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        given = {name.lower(): text for name, text in options.items()}
        path, paths = given.pop("path", None), given.pop("paths", "[]")
        self._patterns = sites.patterns([path] if path else json.loads(paths))
        keywords = {name: _value(name, text) for name, text in given.items()}
        self._keywords = checked(keywords, DocumentKeywords)
        self._options = options_of(self._keywords, core=self._keywords.get("core", "auto"))

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return "so2docs"

    def schema(self) -> str:
        """The columns that the options ask for."""
        return rows.columns(self._options, schema=True)

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads the dumps."""
        return _DumpReader(self._patterns, self._keywords, self._options.nest)


class _DumpReader(DataSourceReader):  # type: ignore[misc]
    def __init__(
        self, patterns: list[str], keywords: Mapping[str, Any], nest: tuple[str, ...]
    ) -> None:
        self._patterns, self._keywords, self._nest = patterns, keywords, nest

    def partitions(self) -> Sequence[InputPartition]:
        """A dump a partition, the largest first."""
        found = sites.sound(sites.find(self._patterns, _here, nest=self._nest))
        return [InputPartition(site) for site in sites.by_size(found)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The questions of a dump, in Arrow batches."""
        yield from document_batches(
            partition.value, keywords=self._keywords, schema=True, has_site=True
        )


def _here(function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
    return [outcome(function, task) for task in tasks]


def _value(name: str, text: str) -> Any:
    """An option of Spark's, which is a text, as the keyword that it stands for."""
    kinds = get_args(_HINTS.get(name)) or (_HINTS.get(name),)
    if name in ("tags", "nest"):
        return text.split(",")
    if bool in kinds or int in kinds:
        with suppress(ValueError):  # The check of the keywords says what it must be.
            return orjson.loads(text.lower())
    return text
