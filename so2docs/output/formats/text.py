"""Formats that are JSON with something around it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from so2docs.merge import Document
from so2docs.nest import Buffer
from so2docs.options.table import OutputForm
from so2docs.output.formats.base import Format
from so2docs.output.journal import Journal


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

    def footer(self, journal: Journal | None, record: bytes = b"") -> bytes:
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
    """What RavenDB imports: its own export format, documents only.

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

    def footer(self, journal: Journal | None, record: bytes = b"") -> bytes:
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
