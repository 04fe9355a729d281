"""Formats made for the importer of one database each."""

from __future__ import annotations

import re
from collections.abc import Iterable

from so2docs.domain import is_date
from so2docs.merge import Document
from so2docs.output.formats import Format
from so2docs.output.segments import Journal
from so2docs.schema import DATES


class Elasticsearch(Format):
    """Pairs of lines for the bulk API of Elasticsearch and OpenSearch.

    The index is `questions`, and `_id` is the question id, or SITE/id if documents have a field
    with the site.
    """

    def frame(self, document: Document) -> Iterable[bytes | memoryview]:
        """Return the `index` action line and the document line."""
        action = b'{"index":{"_index":"questions","_id":"%b%d"}}\n'
        return [action % (self.id_prefix, document.question_id), *document.parts, b"}\n"]


class RavenDB(Format):
    """The import and export format of RavenDB.

    The importer (StreamSource in RavenDB's source) reads `BuildVersion` first, then a section named
    `Docs`; a document's id and collection are in its `@metadata`. Build 40000 is the first with
    this form of metadata, which every later release reads.
    """

    header = b'{"BuildVersion":40000,"Docs":[\n'
    between = b",\n"

    def frame(self, document: Document) -> Iterable[bytes | memoryview]:
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


_MEMBER = re.compile(rb'"(%b)":("[^"]*")' % b"|".join(sorted(name.encode() for name in DATES)))
"""A date as a member. Quotes in strings are escaped, so that no part of a string matches."""


class MongoDB(Format):
    """JSON lines for `mongoimport`; `_id` is the question id or SITE/id, and dates have a type.

    The form is relaxed Extended JSON v2 of the MongoDB specifications.
    """

    def frame(self, document: Document) -> Iterable[bytes | memoryview]:
        """Return the document as a JSON object that starts with `_id`, followed by a line feed."""
        quote, comma = b"" if self.site is None else b'"', b"" if document.is_empty else b","
        names = quote, self.id_prefix, document.question_id, quote, comma
        opening = b'{"_id":%b%b%d%b%b' % names
        members = b"".join(document.parts)[1:]
        return [opening, _MEMBER.sub(_with_type, members), b"}\n"]


def _with_type(member: re.Match[bytes]) -> bytes:
    """Convert a date to MongoDB's Extended JSON; other values stay unchanged."""
    name, value = member.groups()
    if not is_date(value[1:-1].decode()):
        return member[0]
    return b'"%b":{"$date":"%bZ"}' % (name, value[1:-1])
