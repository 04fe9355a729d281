"""The interface of file formats, and the formats of documents that are framed JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import orjson

from so2docs.merge import Document
from so2docs.nest import Buffer
from so2docs.options.choices import Compression
from so2docs.options.field_paths import ALL_FIELDS, Fields
from so2docs.options.table import Options, OutputForm
from so2docs.output.compression import SEGMENT_BYTES, compress
from so2docs.output.segments import Journal, Segment


class FileFormat:
    """The form of a file: `header`, segments separated by `between`, and `footer`.

    Workers make and compress segments; the main process joins them.

    Attributes:
        header: Bytes before the first segment.
        between: Bytes between two segments.
        holds_record: Whether the footer contains the provenance.
    """

    header: bytes = b""
    between: bytes = b""
    holds_record: ClassVar[bool] = False

    def __init__(self, compression: Compression, level: int) -> None:
        self.compression: Compression = compression
        self.level = level

    def segment(self, raw: bytes, first_id: int = 0, documents: int = 0) -> Segment:
        """Compress bytes, such as framed documents, a header or a footer."""
        return compress(raw, self.compression, self.level, first_id, documents)

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """Return the bytes after the last segment."""
        return b""


class OpenSegment:
    """Collects documents for a segment; `size` is their approximate size, in bytes."""

    def __init__(self, form: Format, first_id: int) -> None:
        self.size = 0
        self._format, self._first_id = form, first_id
        self._parts: list[Buffer] = []
        self._count = 0

    def add(self, document: Document) -> None:
        """Add a document, or a run of documents."""
        if self._count and self._format.between:
            self._parts.append(self._format.between)
        self._parts += document.parts if document.run else self._format.frame(document)
        self.size += document.size
        self._count += document.run or 1

    def end(self) -> Segment:
        """Make a segment of the collected documents."""
        return self._format.segment(self._take(), self._first_id, self._count)

    def _take(self) -> bytes:
        raw = b"".join(self._parts)
        self._parts.clear()  # Free the parts now, so that the data is not in memory twice.
        return raw


class Format(FileFormat):
    """The format of documents in a file; `between` also separates the documents of a segment.

    Attributes:
        closing: Bytes that complete a document, starting with its closing brace; empty if the
            format also adds other bytes.
        segment_bytes: Approximate size of the documents to compress together, in bytes.
    """

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
        super().__init__(form.compression, level)
        self.form = form
        self.fields = fields
        self.tables = tables
        self.site = site
        self.is_attributed = is_attributed
        if form.split.size is not None:
            # Limit segments to a quarter of the file size, so that they fit and fill the file well.
            self.segment_bytes = min(self.segment_bytes, form.split.size // 4)

    @classmethod
    def of(cls, options: Options) -> Format:
        """Make the format object for an output with these options."""
        return cls(
            options.form,
            level=options.level,
            fields=options.filters.fields,
            tables=options.shown,
            site=options.site_field,
            is_attributed=options.is_attributed,
        )

    def open_segment(self, first_id: int) -> OpenSegment:
        """Begin a segment whose first document has this question id."""
        return OpenSegment(self, first_id)

    def bytes_of_segments(self, total: int) -> int:
        """Return the approximate size of a segment; `total` is the size of all documents."""
        return self.segment_bytes

    def ends_segment(self, document: Document) -> bool:
        """Return whether a segment with enough bytes may end after a document."""
        return True

    def frame(self, document: Document) -> Iterable[Buffer]:
        """Return the bytes of a document in this format; the document lacks its closing brace."""
        raise NotImplementedError

    @property
    def id_prefix(self) -> bytes:
        """The prefix of ids in a JSON string: the site, because ids are only unique per site."""
        return b"" if self.site is None else orjson.dumps(self.site[1])[1:-1] + b"/"

    def footer_bytes(self, journal: Journal, segment: Segment) -> int:
        """Return the maximum size of the footer after one more segment, in bytes."""
        return len(self.footer(journal))


class JsonLines(Format):
    """One JSON object per line."""

    closing = b"}\n"

    def frame(self, document: Document) -> Iterable[Buffer]:
        """Return the document as a JSON object, followed by a line feed."""
        document.parts.append(self.closing)
        return document.parts


class JsonArray(Format):
    """One array, with each document on a separate line."""

    header = b"[\n"
    between = b",\n"

    def frame(self, document: Document) -> Iterable[Buffer]:
        """Return the document as a JSON object."""
        document.parts.append(b"}")
        return document.parts

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """Return the end of the array."""
        return b"\n]\n"


class Elasticsearch(Format):
    """Pairs of lines for the bulk API of Elasticsearch and OpenSearch.

    `_id` is the question id, or SITE/id if documents have a field with the site.
    """

    def __init__(self, form: OutputForm, **settings: Any) -> None:
        super().__init__(form, **settings)
        self._index = orjson.dumps(form.elasticsearch_index)

    def frame(self, document: Document) -> Iterable[Buffer]:
        """Return the `index` action line and the document line."""
        names = self._index, self.id_prefix, document.question_id
        return [b'{"index":{"_index":%b,"_id":"%b%d"}}\n' % names, *document.parts, b"}\n"]


class RavenDB(Format):
    """The import and export format of RavenDB.

    The importer (StreamSource in RavenDB's source) reads `BuildVersion` first, then a section named
    `Docs`; a document's id and collection are in its `@metadata`. Build 40000 is the first with
    this form of metadata, which every later release reads.
    """

    header = b'{"BuildVersion":40000,"Docs":[\n'
    between = b",\n"

    def frame(self, document: Document) -> Iterable[Buffer]:
        """Return the document as a JSON object with its `@metadata`."""
        comma = b"" if document.is_empty else b","
        metadata = b'%b"@metadata":{"@id":"questions/%b%d","@collection":"Questions"}}' % (
            comma,
            self.id_prefix,
            document.question_id,
        )
        return [*document.parts, metadata]

    def footer(self, journal: Journal, record: bytes = b"") -> bytes:
        """Return the end of the documents, and the end of the file."""
        return b"\n]}\n"


class MongoDB(Format):
    """JSON lines for `mongoimport`; `_id` is the question id or SITE/id, and dates have a type.

    The form is relaxed Extended JSON v2 of the MongoDB specifications.
    """

    def frame(self, document: Document) -> Iterable[Buffer]:
        """Return the document as a JSON object that starts with `_id`, followed by a line feed."""
        quote, comma = b"" if self.site is None else b'"', b"" if document.is_empty else b","
        names = quote, self.id_prefix, document.question_id, quote, comma
        opening = b'{"_id":%b%b%d%b%b' % names
        return [opening, document.parts[0][1:], *document.parts[1:], b"}\n"]
