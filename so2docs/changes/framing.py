"""Formats of changes, one for each program that loads them.

Elasticsearch, OpenSearch and RavenDB read deletions from the same file. JSON lines of documents and
`mongoimport` have no form for deletions, so these go to a file of ids.
"""

from __future__ import annotations

from array import array
from typing import Any, ClassVar

import orjson
from isal import isal_zlib

from so2docs.changes.changes_file import Header
from so2docs.changes.compare import Change
from so2docs.domain import is_date
from so2docs.errors import OptionError, flag
from so2docs.options.choices import ChangesFormat
from so2docs.schema import DATES


class Framing:
    """Base class of formats of changes.

    Attributes:
        tells_deletions: Whether deletions are in the same file.
    """

    tells_deletions: ClassVar[bool] = True

    def __init__(self, index: str, site_field: str | None) -> None:
        self.index = index
        self.site_field = site_field

    def header(self, made_from: Header) -> bytes:
        """The bytes before the first change."""
        return b""

    def frame(self, change: Change) -> bytes:
        """Encode a change."""
        raise NotImplementedError

    def footer(self) -> bytes:
        """The bytes after the last change."""
        return b""

    def deletion(self, change: Change) -> bytes:
        """Encode a deletion as a line for the file of ids."""
        return b'{"Id":%d}\n' % change.question_id

    def key(self, change: Change) -> str:
        """The id of a document, unique across sites."""
        if self.site_field is None:
            return str(change.question_id)
        document = orjson.loads(change.document)
        if self.site_field not in document:
            raise OptionError(
                f"question {change.question_id} has no field {self.site_field}; "
                f"give the {flag('site_field')} that both outputs were converted with, or "
                "leave it out"
            )
        return f"{document[self.site_field]}/{change.question_id}"


class ChangeLines(Framing):
    """One object a line, as `so2docs patch` reads them, between a header and a footer."""

    def __init__(self, index: str, site_field: str | None) -> None:
        super().__init__(index, site_field)
        self._changes = self._crc = 0

    def header(self, made_from: Header) -> bytes:
        """The header line, which identifies both outputs."""
        return self._counted(made_from.line() + b"\n")

    def frame(self, change: Change) -> bytes:
        """Encode a change as a line."""
        self._changes += 1
        return self._counted(change.record() + b"\n")

    def footer(self) -> bytes:
        """The last line: the number of changes, and the checksum of all lines before it."""
        return b'{"op":"end","changes":%d,"crc32":%d}\n' % (self._changes, self._crc)

    def _counted(self, line: bytes) -> bytes:
        self._crc = isal_zlib.crc32(line, self._crc)
        return line


class DocumentLines(Framing):
    """The new documents, one JSON object a line."""

    tells_deletions: ClassVar[bool] = False

    def frame(self, change: Change) -> bytes:
        """Encode the new document as a line."""
        return change.document + b"\n"


class ElasticsearchActions(Framing):
    """Lines for the bulk API: `index` with the document, or `delete`."""

    def frame(self, change: Change) -> bytes:
        """Encode a change as an action line, followed by the document unless it is a deletion."""
        action = "delete" if change.operation == "deleted" else "index"
        line = orjson.dumps({action: {"_index": self.index, "_id": self.key(change)}})
        return line + b"\n" + (b"" if action == "delete" else change.document + b"\n")


class MongoDBChanges(Framing):
    """Lines for `mongoimport --mode=upsert`; the file of ids is for `--mode=delete`.

    Lines are relaxed Extended JSON v2 of the MongoDB specifications, as `convert` writes it.
    """

    tells_deletions: ClassVar[bool] = False

    def frame(self, change: Change) -> bytes:
        """Encode the new document as a line that starts with `_id`."""
        document = with_dates(orjson.loads(change.document))
        return orjson.dumps({"_id": self._id(change), **document}) + b"\n"

    def deletion(self, change: Change) -> bytes:
        """Encode the `_id` of a deleted document as a line."""
        return orjson.dumps({"_id": self._id(change)}) + b"\n"

    def _id(self, change: Change) -> int | str:
        return change.question_id if self.site_field is None else self.key(change)


class RavenDBChanges(Framing):
    """The import format of RavenDB: documents, then a section of tombstones for deletions.

    The importer (`ReadTombstones` of StreamSource in RavenDB's source) requires `Key`, `Type`,
    `Collection` and `LastModified` in each tombstone.
    """

    def __init__(self, index: str, site_field: str | None) -> None:
        super().__init__(index, site_field)
        self._between = b""
        self._deleted = array("q")
        self._deleted_keys: list[str] = []

    def header(self, made_from: Header) -> bytes:
        """The start of the documents."""
        return b'{"BuildVersion":40000,"Docs":[\n'

    def frame(self, change: Change) -> bytes:
        """Encode the new document with metadata. Deletions are kept for the footer."""
        if change.operation == "deleted":
            if self.site_field is None:
                self._deleted.append(change.question_id)
            else:
                self._deleted_keys.append(self.key(change))
            return b""
        metadata = {"@id": f"questions/{self.key(change)}", "@collection": "Questions"}
        document = change.document.removesuffix(b"}")
        comma = b"" if document == b"{" else b","
        between, self._between = self._between, b",\n"
        return b'%b%b%b"@metadata":%b}' % (between, document, comma, orjson.dumps(metadata))

    def footer(self) -> bytes:
        """The end of the documents, and the tombstones."""
        tombstones = [
            orjson.dumps(
                {
                    "Key": f"questions/{key}",
                    "Type": "Document",
                    "Collection": "Questions",
                    "LastModified": "1970-01-01T00:00:00.0000000Z",
                }
            )
            for key in (*self._deleted, *self._deleted_keys)
        ]
        return b'\n],"Tombstones":[\n' + b",\n".join(tombstones) + b"\n]}\n"


FRAMINGS: dict[ChangesFormat, type[Framing]] = {
    "changes": ChangeLines,
    "jsonl": DocumentLines,
    "elasticsearch": ElasticsearchActions,
    "mongodb": MongoDBChanges,
    "ravendb": RavenDBChanges,
}


def with_dates(value: Any) -> Any:
    """Convert the dates of a document, at every depth, to MongoDB's Extended JSON."""
    if isinstance(value, list):
        return [with_dates(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: {"$date": f"{inner}Z"}
        if name in DATES and isinstance(inner, str) and is_date(inner)
        else with_dates(inner)
        for name, inner in value.items()
    }
