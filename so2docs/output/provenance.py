"""Provenance: how an output was made, recorded in the index next to it or in Parquet metadata.

The same conversion makes the same record: nothing in it depends on the machine, the day or the run.
An output on standard output has none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import orjson

from so2docs._version import __version__
from so2docs.dump.tables import TableFile
from so2docs.errors import flag
from so2docs.options.option import entries
from so2docs.options.request import Fingerprint
from so2docs.options.sites import published_host, site_from_name
from so2docs.options.table import Options, OutputForm
from so2docs.report import Report

CONTRACT = 1
"""Version of the documents; it changes if the same dump and options give other documents."""

KEY = b"so2docs"
"""Its key in the metadata of a Parquet file."""

_COUNTS = ("rows", "questions", "answers", "filtered", "records", "without_record")
_SUMS = ("strays", "other_types")
_OF_FORM = {
    "skip_malformed",
    *(e.name for part in (Options, OutputForm) for e in entries(part) if e.group == "Output"),
}
"""Options that do not change the documents."""


class InputFile(NamedTuple):
    """An input file.

    Attributes:
        table: Its table.
        name: Its name, without folders.
        bytes: Its size; for a source that can be read only once, the bytes that were read.
        content: Hash of its bytes at 17 positions; None for a source that can be read only once.
    """

    table: str
    name: str
    bytes: int
    content: str | None


class Difference(NamedTuple):
    """The difference between an output and a new one.

    Attributes:
        is_dump: Whether it was made from another dump.
        reason: A text with this, or with the names of options, to follow "made".
    """

    is_dump: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Provenance:
    """How an output was made.

    Attributes:
        version: Version of so2docs.
        contract: Version of the documents.
        options: Options that determine the output, by keywords of `convert`.
        input: The input files.
        site: Host name of the site; None if the name of the dump does not have it.
        counts: Counts of the whole conversion; for a file of a split output, its documents.
    """

    version: str
    contract: int
    options: dict[str, Any]
    input: tuple[InputFile, ...]
    site: str | None
    counts: dict[str, int]

    @classmethod
    def of(cls, posts: TableFile, tables: Iterable[TableFile], options: Options) -> Provenance:
        """The provenance of a conversion of these files, without counts."""
        values = within_64_bits(Fingerprint.of(options).by_option())
        files = [input_file(file) for file in (posts, *tables)]
        site = options.host
        if site is None and posts.file is not None:
            site = published_host(site_from_name(posts.file))
        return cls(__version__, CONTRACT, values, tuple(files), site, {})

    def having_read(self, dump_bytes: int) -> Provenance:
        """The record with the size of the posts."""
        posts, *tables = self.input
        if posts.content is None:
            posts = posts._replace(bytes=dump_bytes)
        return replace(self, input=(posts, *tables))

    def with_counts(self, report: Report) -> Provenance:
        """The record of a complete conversion."""
        values = {name: getattr(report, name) for name in _COUNTS}
        counts = {name: value for name, value in values.items() if value is not None}
        counts |= {name: sum(getattr(report, name).values()) for name in _SUMS}
        return replace(self, counts=counts)

    def of_file(self, documents: int) -> Provenance:
        """The record of one file of a split output."""
        return replace(self, counts={"documents": documents})

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        return asdict(self) | {"input": [file._asdict() for file in self.input]}

    def to_json(self) -> bytes:
        """The provenance as JSON."""
        return orjson.dumps(self.as_dict(), option=orjson.OPT_SORT_KEYS)

    def difference(self, requested: Provenance) -> Difference | None:
        """The difference from an output with `requested`; None if it is up to date."""
        if any(file.content is None for file in (*self.input, *requested.input)):
            return Difference(True, "from a dump that cannot be compared, since it is read once")
        if [file[2:] for file in self.input] != [file[2:] for file in requested.input]:
            name, size = self.input[0].name, self.input[0].bytes
            return Difference(True, f"from another dump ({name}, {size:,} bytes)")
        names = self.other_options(requested)
        if names:
            return Difference(False, f"with other options ({', '.join(names)})")
        if self.contract != requested.contract:
            return Difference(False, f"by so2docs {self.version}, whose documents are others")
        return None

    def other_options(self, requested: Provenance, *, of_documents: bool = False) -> list[str]:
        """Names of the options that differ.

        Args:
            requested: The other record.
            of_documents: Leave out options that determine only the form of the file.
        """
        names = sorted(self.options.keys() | requested.options.keys())
        differing = [
            name for name in names if self.options.get(name) != requested.options.get(name)
        ]
        if of_documents:
            differing = [name for name in differing if name not in _OF_FORM]
        return [flag(name) for name in differing]


def within_64_bits(options: dict[str, Any]) -> dict[str, Any]:
    """Convert large integers, such as that of `sample`, to text, which every reader keeps."""
    return {
        name: str(value) if isinstance(value, int) and value >= 1 << 63 else value
        for name, value in options.items()
    }


def load(data: bytes) -> Provenance | None:
    """Parse the result of `to_json`; None for another version, or anything else."""
    try:
        values = orjson.loads(data)
        values["input"] = tuple(InputFile(**file) for file in values["input"])
        return Provenance(**values)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


def input_file(file: TableFile) -> InputFile:
    """Name, size and hash of the file of a table."""
    name, source = file.table.name, file.source
    if source is None or not source.is_file:
        return InputFile(name, _printable_name(file.name), 0, None)
    return InputFile(name, _printable_name(source.path), source.identity.size, source.digest)


def _printable_name(path: str) -> str:
    """The name of a file; bytes in it that are not UTF-8 are replaced."""
    return os.path.basename(path).encode(errors="replace").decode()
