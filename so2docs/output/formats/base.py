"""The interface of formats, with defaults, and the formats that are JSON with a frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import orjson

from so2docs.merge import Document
from so2docs.nest import Buffer
from so2docs.options.field_paths import ALL_FIELDS, Fields
from so2docs.options.table import OutputForm
from so2docs.output.compression import SEGMENT_BYTES, compress
from so2docs.output.segments import Journal, Segment


class Format:
    """The form of documents in a file. Workers frame and compress; the main process does the rest.

    A file is `header`, the documents with `between` between any two of them, and `footer`.

    Attributes:
        holds_record: Whether the footer has the provenance.
        header: Bytes before the first document.
        between: Bytes between two documents.
        closing: Bytes after a document without its closing brace, if there is no other frame.
        segment_bytes: Approximate bytes of documents to compress together.

    Args:
        form: The form of the output.
        level: Level of the compression.
        fields: The selected fields.
        tables: Names of the tables that are nested.
        site: Name and value of the field with the site that each document has, if it has one.
        is_attributed: Whether documents have an attribution.
    """

    holds_record: ClassVar[bool] = False
    header: bytes = b""
    between: bytes = b""
    closing: bytes = b""
    segment_bytes: int = SEGMENT_BYTES

    def __init__(
        self,
        form: OutputForm,
        *,
        level: int = 2,
        fields: Fields = ALL_FIELDS,
        tables: Sequence[str] = (),
        site: tuple[str, str] | None = None,
        is_attributed: bool = False,
    ) -> None:
        self.form = form
        self.level = level
        self.fields = fields
        self.tables = tables
        self.site = site
        self.is_attributed = is_attributed
        if form.split_size is not None:
            # So that segments fill a file of this size well, and none is larger than it.
            self.segment_bytes = min(self.segment_bytes, form.split_size // 4)

    def frame(self, document: Document) -> Iterable[Buffer]:
        """The bytes of a document."""
        raise NotImplementedError

    @property
    def id_prefix(self) -> bytes:
        """The prefix of ids in a JSON string: the site, since ids are unique per site only."""
        return b"" if self.site is None else orjson.dumps(self.site[1])[1:-1] + b"/"

    def segment(self, raw: bytes, first_id: int = 0, documents: int = 0) -> Segment:
        """Compress some framed documents, or a header or footer."""
        return compress(raw, self.form.compression, self.level, first_id, documents)

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """Bytes after the last document.

        Args:
            journal: The segments before it.
            record: The provenance.
        """
        return b""

    def footer_bytes(self, journal: Journal, segment: Segment) -> int:
        """Most bytes of the footer after one more segment."""
        return len(self.footer(journal))


class JsonLines(Format):
    """One JSON object a line."""

    closing = b"}\n"

    def frame(self, document: Document) -> Iterable[Buffer]:
        """The object and a line feed."""
        document.parts.append(self.closing)
        return document.parts


class JsonArray(Format):
    """One array; each document still has a line of its own."""

    header = b"[\n"
    between = b",\n"

    def frame(self, document: Document) -> Iterable[Buffer]:
        """The object."""
        document.parts.append(b"}")
        return document.parts

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """The end of the array."""
        return b"\n]\n"


class Elasticsearch(Format):
    """Pairs of lines for the bulk API of Elasticsearch and OpenSearch.

    `_id` is the question id, or SITE/id where documents name their site.
    """

    def __init__(self, form: OutputForm, **rest: Any) -> None:
        super().__init__(form, **rest)
        index = orjson.dumps(form.elasticsearch_index)
        self._action = b'{"index":{"_index":%b,"_id":"%b' % (index, self.id_prefix)

    def frame(self, document: Document) -> Iterable[Buffer]:
        """The action line and the document line."""
        return [b'%b%d"}}\n' % (self._action, document.question_id), *document.parts, b"}\n"]


class RavenDB(Format):
    """The import format of RavenDB, which is its export format, with documents only.

    The importer (StreamSource in RavenDB's source) reads `BuildVersion` first, then a section named
    `Docs`; a document's id and collection are in its `@metadata`. 40000 is the first release with
    this form of metadata, which every later one reads.
    """

    header = b'{"BuildVersion":40000,"Docs":[\n'
    between = b",\n"

    def frame(self, document: Document) -> Iterable[Buffer]:
        """The object with metadata in it."""
        comma = b"" if document.is_empty else b","
        metadata = b'%b"@metadata":{"@id":"questions/%b%d","@collection":"Questions"}}' % (
            comma,
            self.id_prefix,
            document.question_id,
        )
        return [*document.parts, metadata]

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """The end of the section and of the file."""
        return b"\n]}\n"


class MongoDB(Format):
    """JSON lines for `mongoimport`: `_id` is the question id, or SITE/id, dates are dates.

    The form is relaxed Extended JSON v2 of the MongoDB specifications.
    """

    def frame(self, document: Document) -> Iterable[Buffer]:
        """The object with `_id` before the rest, and a line feed."""
        comma = b"" if document.is_empty else b","
        own = b"%b%d" % (self.id_prefix, document.question_id)
        opening = b'{"_id":%b%b' % (own if self.site is None else b'"%b"' % own, comma)
        return [opening, document.parts[0][1:], *document.parts[1:], b"}\n"]
