"""The forms that changes can be written in, for whatever loads them.

Elasticsearch, OpenSearch and RavenDB are told of deletions in the same file. JSON lines of
documents and `mongoimport` cannot be: their deletions go to a file of ids.
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
    """How changes are written, whatever loads them.

    Attributes:
        tells_deletions: Whether the file itself says what is deleted.
    """

    tells_deletions: ClassVar[bool] = True

    def __init__(self, index: str, site_field: str | None) -> None:
        self.index = index
        self.site_field = site_field

    def header(self, made_from: Header) -> bytes:
        """Bytes before the first change."""
        return b""

    def frame(self, change: Change) -> bytes:
        """The bytes of a change."""
        raise NotImplementedError

    def footer(self) -> bytes:
        """Bytes after the last change."""
        return b""

    def deletion(self, change: Change) -> bytes:
        """A line about a deleted document, for the file of ids."""
        return b'{"Id":%d}\n' % change.question_id

    def key(self, change: Change) -> str:
        """The id of a document that is unique over all sites."""
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
    """One object a line: the change as `so2docs patch` takes it, between a header and a trailer."""

    def __init__(self, index: str, site_field: str | None) -> None:
        super().__init__(index, site_field)
        self._changes = self._crc = 0

    def header(self, made_from: Header) -> bytes:
        """The outputs that the changes were made from."""
        return self._counted(made_from.line() + b"\n")

    def frame(self, change: Change) -> bytes:
        """The change."""
        self._changes += 1
        return self._counted(change.record() + b"\n")

    def footer(self) -> bytes:
        """How many changes there were, and the checksum of all lines before."""
        return b'{"op":"end","changes":%d,"crc32":%d}\n' % (self._changes, self._crc)

    def _counted(self, line: bytes) -> bytes:
        self._crc = isal_zlib.crc32(line, self._crc)
        return line


class DocumentLines(Framing):
    """The new documents, one JSON object a line."""

    tells_deletions: ClassVar[bool] = False

    def frame(self, change: Change) -> bytes:
        """The document and a line feed."""
        return change.document + b"\n"


class ElasticsearchActions(Framing):
    """Lines for the bulk API: `index` with the document, or `delete`."""

    def frame(self, change: Change) -> bytes:
        """The action line and, unless it is a deletion, the document line."""
        action = "delete" if change.operation == "deleted" else "index"
        line = orjson.dumps({action: {"_index": self.index, "_id": self.key(change)}})
        return line + b"\n" + (b"" if action == "delete" else change.document + b"\n")


class MongoDBChanges(Framing):
    """Lines for `mongoimport --mode=upsert`; the file of ids is for `--mode=delete`.

    The form is relaxed Extended JSON v2 of the MongoDB specifications, as `convert` writes it.
    """

    tells_deletions: ClassVar[bool] = False

    def frame(self, change: Change) -> bytes:
        """The object with `_id` before the rest, and a line feed."""
        document = with_dates(orjson.loads(change.document))
        return orjson.dumps({"_id": self._id(change), **document}) + b"\n"

    def deletion(self, change: Change) -> bytes:
        """The document's `_id`."""
        return orjson.dumps({"_id": self._id(change)}) + b"\n"

    def _id(self, change: Change) -> int | str:
        return change.question_id if self.site_field is None else self.key(change)


class RavenDBChanges(Framing):
    """The import format of RavenDB: documents, then a section of tombstones for deletions.

    The importer (`ReadTombstones` of StreamSource in RavenDB's source) wants `Key`, `Type`,
    `Collection` and `LastModified` of each.
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
        """The object with metadata in it; nothing yet for a deletion."""
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
    """A document with its dates as MongoDB's Extended JSON writes them, at every depth."""
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
