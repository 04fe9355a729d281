"""Provenance: how a product was made, recorded in the product itself or in a file next to it.

Identical calls produce identical records, whatever the machine or date. A product on standard
output has no record.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import orjson

from so2docs._version import __version__
from so2docs.dump.storage import sample_hash
from so2docs.errors import flag, without_secrets
from so2docs.escape import printable
from so2docs.options.option import entries
from so2docs.options.request import recorded, recorded_options
from so2docs.options.sites import published_host, site_from_name
from so2docs.options.table import Options, OutputForm
from so2docs.report import Report

if TYPE_CHECKING:
    from so2docs.dump.opening import TableFile

CONTRACT = 1
"""Version of the documents. Increase it when the same dump and options would give other
documents."""

KEY = b"so2docs"
"""Key of the provenance in the metadata of a Parquet file."""

_COUNTS = (
    *("rows", "questions", "answers", "strays", "other_types", "filtered"),
    *("recipe", "records", "without_record", "linked_elsewhere", "unchanged", "restored"),
    *("first_day", "last_day", "last_row", "repaired_characters", "empty_shares"),
)
_TABLE_COUNTS = ("rows", "nested", "filtered", "strays")
_OF_FORM = {
    "errors",
    *(e.name for part in (Options, OutputForm) for e in entries(part) if e.group == "Output"),
}
"""Options that do not change the documents."""

State = Literal["missing", "up to date", "another input", "other options", "unknown"]
UP_TO_DATE: State = "up to date"


class File(NamedTuple):
    """The identity of a file, independent of its folder and date.

    Attributes:
        role: Table of the file, or another purpose.
        bytes: Size; for a source that can be read only once, the number of bytes read.
        content: Hash of the bytes at 17 positions; None for a source that can be read only once.
            For a file of a product, the CRC-32 of all bytes.
        sha256: SHA-256 of all bytes in hexadecimal, if requested.
    """

    role: str
    name: str
    bytes: int
    content: str | None
    sha256: str | None = None

    @classmethod
    def of(cls, role: str, path: str, name: str | None = None, *, is_hashed: bool = False) -> File:
        """Identify the file at `path` by its size and sampled bytes; `is_hashed` adds the SHA-256.

        Anything but a regular file is described by `read_once`, unless `is_hashed`.
        """
        if not is_hashed and not os.path.isfile(path):
            return cls.read_once(role, path)
        digest = None
        try:
            with open(path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                content = sample_hash(file, size)
                file.seek(0)
                if is_hashed:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            error.filename = path  # An error while reading does not contain the name.
            raise
        return cls(role, name or printable_name(path), size, content, digest)

    @classmethod
    def of_table(cls, file: TableFile) -> File:
        """Identify the file from which a table is read."""
        name, source = file.table.name, file.source
        if not source.is_file:
            return cls.read_once(name, file.name)
        return cls(name, printable_name(source.path), source.identity.size, source.digest)

    @classmethod
    def read_once(cls, role: str, name: str) -> File:
        """Describe a source that can be read only once, and therefore cannot be compared."""
        return cls(role, printable_name(name), 0, None)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields by name, except an unknown SHA-256."""
        values = self._asdict()
        if self.sha256 is None:
            del values["sha256"]
        return values

    def is_same(self, other: File) -> bool:
        """Whether two files have the same size and sampled bytes; False if these are unknown."""
        return self.content is not None and self[2:4] == other[2:4]


class Comparison(NamedTuple):
    """The state of an existing product, and the difference, worded to follow "exists"."""

    state: State
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The record of how a product was made.

    Attributes:
        kind: The kind of product, named after the function that makes it, such as `convert`.
        contract: Version of the content for this kind of product.
        options: Options that determine the product, by keyword of the function.
        site: Host name of the site; None if unknown.
        counts: Counts of the whole product; for a file of a split output, only its number of
            documents.
        files: The files of the product; empty if the record is stored with the file it describes.
    """

    kind: str
    version: str
    contract: int
    options: dict[str, Any]
    input: tuple[File, ...]
    site: str | None = None
    counts: dict[str, Any] = field(default_factory=dict)
    files: tuple[File, ...] = ()

    @classmethod
    def of(cls, files: Sequence[TableFile], options: Options) -> Provenance:
        """Return the provenance of a conversion of these files, the posts first, without counts."""
        values = within_64_bits(recorded_options(options))
        site, posts = options.site, files[0].file
        if site is None and posts is not None:
            site = published_host(site_from_name(posts))
        inputs = tuple(map(File.of_table, files))
        return cls("convert", __version__, CONTRACT, values, inputs, site)

    def having_read(self, dump_bytes: int) -> Provenance:
        """Return the record with `dump_bytes` as the size of posts that can be read only once."""
        posts, *tables = self.input
        if posts.content is None:
            posts = posts._replace(bytes=dump_bytes)
        return replace(self, input=(posts, *tables))

    def with_counts(self, report: Report) -> Provenance:
        """Return the record with the counts of a complete conversion that any machine gives."""
        values = report.as_dict()
        tables = {
            name: {key: table[key] for key in _TABLE_COUNTS}
            for name, table in values["tables"].items()
        }
        return replace(self, counts={name: values[name] for name in _COUNTS} | {"tables": tables})

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values."""
        files = {name: [file.as_dict() for file in getattr(self, name)] for name in _FILES}
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return values | files

    def to_json(self) -> bytes:
        """Return the provenance as JSON."""
        return dump_record(self.as_dict())

    def compare(self, requested: Provenance) -> Comparison:
        """Compare this record of an existing product with the record of the requested product."""
        if self.kind != requested.kind:
            return Comparison("unknown", f", made by so2docs {self.kind}")
        before, now = ({file.role: file for file in record.input} for record in (self, requested))
        if any(file.content is None for file in (*self.input, *requested.input)):
            source = "an input that cannot be compared, since it can be read only once"
            return Comparison("another input", f", made from {source}")
        changed = [
            before[role] for role in before if role in now and not before[role].is_same(now[role])
        ]
        names = self.other_options(requested)
        # If options differ, report the options: they may be why other files are read.
        if changed or (before.keys() != now.keys() and not names):
            files = [f"{file.name}, {file.bytes:,} bytes" for file in changed or self.input]
            return Comparison(
                "another input", f", made from another input ({files[0] if files else 'none'})"
            )
        if names:
            return Comparison(
                "other options", f", made with other options ({self._contrast(names, requested)})"
            )
        if self.contract != requested.contract:
            reason = f", made by so2docs {self.version}, whose output is different"
            return Comparison("other options", reason)
        return Comparison(UP_TO_DATE, " and is up to date: made from this input with these options")

    def _contrast(self, names: Iterable[str], requested: Provenance) -> str:
        """Describe the options that differ, such as `with --tag and without --nest`."""
        flags: dict[str, list[str]] = {"with": [], "with other": [], "without": []}
        for name in names:
            before, now = self.options.get(name), requested.options.get(name)
            word = "with other" if before and now else "with" if before else "without"
            flags[word].append(flag(name))
        return " and ".join(f"{word} {', '.join(names)}" for word, names in flags.items() if names)

    def other_options(self, requested: Provenance, *, of_documents: bool = False) -> list[str]:
        """Return the keywords of the options that differ from those of another record.

        `of_documents` leaves out options that do not change the documents, and the dates of their
        states if both have one.
        """
        names = self.options.keys() | requested.options.keys()
        if of_documents:
            are_dated = self.options.get("as_of") and requested.options.get("as_of")
            names -= _OF_FORM | ({"as_of"} if are_dated else set())
        return [n for n in sorted(names) if self.options.get(n) != requested.options.get(n)]


_FILES = ("input", "files")
_hints = cache(get_type_hints)


def make_record(
    kind: str, contract: int, options: Any, files: Iterable[File], site: str | None = None
) -> Provenance:
    """Make the record of a product of this version of so2docs with its options, without counts."""
    return Provenance(kind, __version__, contract, recorded(options), tuple(files), site)


def within_64_bits(options: dict[str, Any]) -> dict[str, Any]:
    """Convert integers above 63 bits, such as a `sample`, to text, for JSON readers to preserve."""
    return {
        name: str(value) if isinstance(value, int) and value >= 1 << 63 else value
        for name, value in options.items()
    }


def dump_record(values: dict[str, Any]) -> bytes:
    """Return a record as JSON with sorted keys.

    The files of a product may have names that are not UTF-8: those are escaped as lone surrogates.
    """
    try:
        return orjson.dumps(values, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        return json.dumps(values, sort_keys=True, separators=(",", ":")).encode()


def parse_record(data: bytes) -> Any:
    """Parse a record; raise `ValueError` if it is damaged."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        if b"\\ud" not in data:
            raise
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError(str(error)) from error


def load(data: bytes) -> Provenance | None:
    """Parse the result of `to_json`; None if the data is damaged or has other fields or types."""
    try:
        values = parse_files(parse_record(data))
        record = Provenance(**values)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return record if has_declared_types(record, values) else None


def has_declared_types(record: Provenance, values: dict[str, Any]) -> bool:
    """Whether the values of a record, and those of its files, have the types of their fields."""
    parts = [(type(record), values), *((File, f._asdict()) for f in (*record.input, *record.files))]
    return all(
        _fits_type(value, _hints(kind)[name])
        for kind, part in parts
        for name, value in part.items()
    )


def _fits_type(value: object, kind: Any) -> bool:
    """Whether a value has a type such as `str | None` or `dict[str, Any]`.

    Only the types of JSON, and tuples, are checked, without the types of their parts.
    """
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    return isinstance(value, tuple(get_origin(part) or part for part in kinds))


def parse_files(values: dict[str, Any]) -> dict[str, Any]:
    """Convert the entries for files in the result of `as_dict` back to `File` objects."""
    return values | {name: tuple(File(**file) for file in values[name]) for name in _FILES}


def printable_name(path: str) -> str:
    """Return the file name in a path or URL, fit to be recorded and printed.

    Users, passwords, queries and fragments of URLs are removed, since they may be secrets; bytes
    that are not UTF-8 become `?`.
    """
    return printable(os.path.basename(without_secrets(path)))
