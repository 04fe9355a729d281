"""Sources of documents that can be read as data frames, and selections from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

from so2docs.errors import OutputError
from so2docs.options.table import QuestionFilters
from so2docs.parse.filters import question_conditions
from so2docs.registry import find_hook
from so2docs.schema import Row

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from so2docs.types import Question

FrameName = Literal["questions", "answers", "comments", "links", "votes", "history", "users"]

_BATCH = 4096
"""Number of documents in a batch, if the source yields single documents."""


class Frame(Protocol):
    """All rows of one kind in the documents, as a data frame that is read on demand."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, which is the same for every output."""

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows as Arrow record batches."""

    def to_arrow(self) -> pa.Table:
        """Read all rows as an Arrow table."""

    def to_pandas(self) -> pandas.DataFrame:
        """Read all rows as a pandas data frame."""

    def to_polars(self) -> polars.DataFrame:
        """Read all rows as a polars data frame."""


def _frame(name: FrameName, source: Framed) -> Frame:
    frame: Frame = find_hook("frame")(name, source)
    return frame


class Framed:
    """Base class for sources of documents, with a frame for each kind of row."""

    path: str

    def _document_batches(self) -> Iterator[list[Row]]:
        """Iterate over batches of documents; each document is a new dictionary."""
        raise NotImplementedError

    @property
    def questions(self) -> Frame:
        """The questions, without nested rows."""
        return _frame("questions", self)

    @property
    def answers(self) -> Frame:
        """The answers, without nested rows; `ParentId` is the id of the question."""
        return _frame("answers", self)

    @property
    def comments(self) -> Frame:
        """The comments, if nested; `PostId` is the id of the question or answer."""
        return _frame("comments", self)

    @property
    def links(self) -> Frame:
        """The links, if nested; `PostId` is the id of the linking question or answer."""
        return _frame("links", self)

    @property
    def votes(self) -> Frame:
        """The votes, if nested: one row per question or answer, one column per vote type."""
        return _frame("votes", self)

    @property
    def history(self) -> Frame:
        """The revisions and events, if nested; `PostId` is the id of the question or answer."""
        return _frame("history", self)

    @property
    def users(self) -> Frame:
        """The users in documents, if nested: authors, editors and commenters, one row per user."""
        return _frame("users", self)


@contextmanager
def expect_documents(source: Framed, documents: list[Any]) -> Iterator[None]:
    """Convert exceptions to `OutputError`, for documents in another form than JSON lines."""
    objects = [document for document in documents if isinstance(document, dict)]
    try:
        if objects and not isinstance(objects[0].get("CreationDate", ""), str):
            raise TypeError
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        ids = [document["Id"] for document in objects if "Id" in document]
        where = f"between question {ids[0]} and question {ids[-1]}, " if ids else ""
        raise OutputError(
            f"{source.path}: {where}a document has no Id, or has a value of an unexpected type; "
            "frames and `where` need JSON lines with an Id, and do not support the format mongodb"
        ) from error


def in_batches(documents: Iterable[Any]) -> Iterator[list[Row]]:
    """Group documents into lists of up to 4,096."""
    remaining = iter(documents)
    while batch := list(islice(remaining, _BATCH)):
        yield batch


class Selection(Framed):
    """A selection of documents, filtered while reading; the result of `Collection.where`."""

    def __init__(self, source: Framed, filters: QuestionFilters) -> None:
        self._source, self.path = source, source.path
        self._conditions = question_conditions(filters)

    def __iter__(self) -> Iterator[Question]:
        for batch in self._document_batches():
            yield from cast("list[Question]", batch)

    def _document_batches(self) -> Iterator[list[Row]]:
        for batch in self._source._document_batches():
            with expect_documents(self, batch):
                questions = [
                    question
                    for question in batch
                    if all(condition.holds(question) for condition in self._conditions)
                ]
            if questions:
                yield questions
