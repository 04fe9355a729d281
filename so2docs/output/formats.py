"""The formats of documents: their interface, and those of the core, which are framed JSON.

Properties that are needed without importing the class are in `options.choices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import orjson

from so2docs.merge import Document
from so2docs.nest import Buffer
from so2docs.options.choices import Compression
from so2docs.options.field_paths import ALL_FIELDS, Fields
from so2docs.options.table import Options, OutputForm
from so2docs.output.compression import SEGMENT_BYTES, compress
from so2docs.output.index import find_answer_ids, pack_answer_ids
from so2docs.output.segments import Journal, Segment
from so2docs.registry import find_hook


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
        raw = self._take()
        segment = self._format.segment(raw, self._first_id, self._count)
        return segment._replace(answer_ids=self._format.find_answer_ids(raw))

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
            fields=options.filters.selected,
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

    def find_answer_ids(self, raw: bytes) -> bytes:
        """Return the ids of the answers of a segment, if the file has an index."""
        if not self.form.is_indexed:
            return b""
        if self.fields.has_answer("PostTypeId"):
            return find_answer_ids(raw)
        return pack_answer_ids(map(orjson.loads, raw.splitlines()))

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


_CORE: dict[str, type[Format]] = {"jsonl": JsonLines, "json": JsonArray}


def of(options: Options) -> Format:
    """Make the format object for an output with these options."""
    name = options.form.format
    format_class: type[Format] = _CORE.get(name) or find_hook(f"format {name}")
    return format_class.of(options)
