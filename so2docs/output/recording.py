"""Prepare documents for the output: unchanged, or as records.

An unchanged document is not parsed: its bytes are joined only when they are written. If files are
split by date, each document gets the label of its file from the date of the question, because a
record may lack the date.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from so2docs.domain import share_of
from so2docs.merge import Document, DocumentBuilder
from so2docs.options.choices import SplitBy
from so2docs.options.table import Options
from so2docs.schema import RESERVED

_DATE = re.compile(
    rb'"(?:CreationDate":(?:\{"\$date":)?"(\d{4})-(0[1-9]|1[0-2])-'
    rb'|(?:%b)":)' % "|".join(sorted(RESERVED)).encode()
)
"""Pattern for the date of a question, which precedes the nested posts and their dates.

Inside a JSON string each quote follows a backslash, so a value cannot contain the name of a member
with its quotes.
"""


def count_and_prepare(nested: DocumentBuilder, options: Options) -> Iterable[Document]:
    """Prepare nested documents for writing, and count the records of a recipe."""
    split = options.form.split
    documents: Iterable[Document] = nested
    if split.by is not None:
        documents = _label_by_date(nested, split.by)
    elif split.shares is not None:
        documents = _label_by_share(nested, split.ends)
    if not options.changes_documents:
        return documents
    from so2docs.output.records import make_records  # Only needed if documents change.

    return make_records(documents, nested.counts, options)


def _label_by_date(nested: Iterable[Document], by: SplitBy) -> Iterator[Document]:
    for document in nested:
        match = _DATE.search(document.parts[0])
        if match and match[1]:
            document.label = b"-".join(
                match.groups() if by == "month" else match.groups()[:1]
            ).decode()
        yield document


def _label_by_share(nested: Iterable[Document], ends: list[tuple[str, int]]) -> Iterator[Document]:
    for document in nested:
        document.label = share_of(document.question_id, ends)
        yield document
