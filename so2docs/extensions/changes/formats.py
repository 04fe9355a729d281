"""Formats of changes: a line for each change, and document formats for other programs.

Elasticsearch, OpenSearch and RavenDB read deletions from the same file. JSON lines and
`mongoimport` have no form for deletions, so the ids of deleted documents go to a separate file.
"""

from __future__ import annotations

from typing import Any

import orjson

from so2docs.domain import is_date
from so2docs.errors import OptionError, flag
from so2docs.extensions.changes.compare import Change
from so2docs.merge import Document
from so2docs.options.choices import FORMATS, ChangesFormat
from so2docs.options.table import OutputForm
from so2docs.output import formats
from so2docs.output.segments import Journal
from so2docs.schema import DATES


class ChangeLines:
    """Encodes each change, deletions too, as a line, and ends with a line that has their number."""

    deletes = True
    header = b""

    def __init__(self) -> None:
        self._changes = 0

    def frame(self, change: Change) -> bytes:
        """Encode a change as a line."""
        self._changes += 1
        return change.record() + b"\n"

    def footer(self) -> bytes:
        """Return the bytes after the last change."""
        return b'{"op":"end","changes":%d}\n' % self._changes


class ChangedDocuments(ChangeLines):
    """Encodes new documents and deletions of old documents in a document format."""

    def __init__(self, name: str, index: str, site_field: str | None) -> None:
        """Take the format, the Elasticsearch index, and the field with the site for ids, if any."""
        form = OutputForm(name, "none", index)
        self._format = formats.find_class(name)(form)
        self._is_dated = form.has_dates
        self._site_field = site_field if FORMATS[name].ids else None
        self._between = b""
        self.deletes, self.header = self._format.deletes, self._format.header

    def frame(self, change: Change) -> bytes:
        """Encode a change: the new document, or the deletion of the old one."""
        self._name_site(change)
        if change.operation == "deleted":
            return self._format.deletion(change.question_id)
        json = change.document
        if self._is_dated:
            json = orjson.dumps(with_dates(orjson.loads(json)))
        between, self._between = self._between, self._format.between
        document = Document(change.question_id, [json[:-1]], len(json))
        return between + b"".join(self._format.frame(document))

    def footer(self) -> bytes:
        """Return the bytes after the last document."""
        return self._format.footer(Journal())

    def _name_site(self, change: Change) -> None:
        if self._site_field is None:
            return
        document = orjson.loads(change.document)
        if self._site_field not in document:
            raise OptionError(
                f"question {change.question_id} has no field {self._site_field}; "
                f"give the {flag('site_field')} used to convert both outputs, or leave it out"
            )
        self._format.site = self._site_field, str(document[self._site_field])


def make_format(name: ChangesFormat, index: str, site_field: str | None) -> ChangeLines:
    """Make the encoder for a format of changes; see `ChangedDocuments` for the arguments."""
    return ChangeLines() if name == "changes" else ChangedDocuments(name, index, site_field)


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
