"""Documents on their way into the output: unchanged, changed, or as the records of a recipe.

An unchanged document is not parsed: its bytes are joined only when they are written. If files are
split by date, each document gets the label of its file from the date of its question, which a
record need not have.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

import orjson

from so2docs.counts import RowCounts
from so2docs.domain import split_place
from so2docs.errors import RecipeError
from so2docs.merge import Document, DocumentBuilder
from so2docs.options.choices import SplitBy
from so2docs.options.option import bounds
from so2docs.options.table import Options
from so2docs.parse import bodies
from so2docs.recipes.attribution import attribute
from so2docs.recipes.recipe import Recipe
from so2docs.schema import RESERVED


class RecordMaker:
    """Makes records of documents.

    Args:
        recipe: The recipe; None to keep documents.
        host: Host name of the site, if documents get an attribution.
        convert_body: Converts the HTML of a body; None to keep HTML.
    """

    def __init__(
        self,
        recipe: Recipe | None,
        host: str | None,
        convert_body: Callable[[str], str] | None = None,
    ) -> None:
        self._recipe = recipe
        self._host = host
        self._convert_body = convert_body

    def records(self, question_id: int, json: bytes) -> list[bytes]:
        """The records of a document.

        Args:
            question_id: Its id, for the message of an error.
            json: The document.

        Raises:
            RecipeError: The recipe fails, or returns an invalid record.
        """
        document = orjson.loads(json)
        if self._convert_body is not None:
            for post in (document, *document.get("Answers", ())):
                if (body := post.get("Body")) is not None:
                    post["Body"] = self._convert_body(body)
        if self._host is not None:
            document = attribute(document, self._host)
        if self._recipe is None:
            return [orjson.dumps(document)]
        try:
            return [self._json(record) for record in self._recipe.function(document)]
        except Exception as error:
            raise RecipeError(
                f"recipe {self._recipe.name}: failed at question {question_id}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _json(self, record: object) -> bytes:
        if not isinstance(record, Mapping):
            raise TypeError(f"a record must be a dictionary, not {type(record).__name__}")
        return orjson.dumps(record)


_DATE = re.compile(
    rb'"(?:CreationDate":(?:\{"\$date":)?"(\d{4})-(0[1-9]|1[0-2])-'
    rb'|(?:%b)":)' % "|".join(sorted(RESERVED)).encode()
)
"""The date of a question, which comes before what is nested in it and has dates of its own, as its
answers have.

Inside a JSON string each quote has a backslash before it, so the name of a member cannot occur in a
value.
"""


def count_and_prepare(nested: DocumentBuilder, options: Options) -> Iterable[Document]:
    """Prepare nested documents for writing, and count them.

    Raises:
        RecipeError: The recipe fails.
    """
    by, shares = options.form.split_by, options.form.split_share
    documents: Iterable[Document] = nested
    if by is not None:
        documents = _label_by_date(nested, by)
    elif shares is not None:
        documents = _label_by_share(nested, bounds(shares))
    if not options.changes_documents:
        return documents
    return _records(documents, nested.counts, options)


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
        place = split_place(document.question_id)
        document.label = next(name for name, end in ends if place < end)
        yield document


def _records(nested: Iterable[Document], counts: RowCounts, options: Options) -> Iterator[Document]:
    recipe = None if options.recipe is None else options.recipe.recipe
    host = options.host if options.is_attributed else None
    maker = RecordMaker(recipe, host, bodies.converter(options.body, options.core))
    for document in nested:
        number = document.question_id
        records = maker.records(number, b"".join((*document.parts, b"}")))
        if recipe is not None:
            counts.records = (counts.records or 0) + len(records)
            counts.without_record = (counts.without_record or 0) + (not records)
        for json in records:
            yield Document(number, [memoryview(json)[:-1]], len(json), document.label)
