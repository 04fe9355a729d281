"""Prepare documents for the output: unchanged, or as records.

An unchanged document is not parsed: its bytes are joined only when they are written. If files are
split by date, each document gets the label of its file from the date of the question, because a
record may lack the date.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import orjson

from so2docs.domain import share_of
from so2docs.merge import Document, DocumentBuilder
from so2docs.options.choices import SplitBy
from so2docs.options.table import Options
from so2docs.parse import bodies
from so2docs.schema import RESERVED

_DATE = re.compile(
    rb'"(?:CreationDate":"(\d{4})-(0[1-9]|1[0-2])-|(?:%b)":)' % "|".join(sorted(RESERVED)).encode()
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
    if options.transform.changes_documents:
        return options.records.apply(documents, nested.counts, options)
    convert = bodies.converter(options.later_body, options.core, options.site)
    return documents if convert is None else _convert_bodies(documents, convert)


def _convert_bodies(
    documents: Iterable[Document], convert: Callable[[str], str]
) -> Iterator[Document]:
    for document in documents:
        question = orjson.loads(b"".join((*document.parts, b"}")))
        for post in (question, *question.get("Answers", ())):
            if (body := post.get("Body")) is not None:
                post["Body"] = convert(body)
        json = orjson.dumps(question)
        yield Document(document.question_id, [memoryview(json)[:-1]], len(json), document.label)


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
