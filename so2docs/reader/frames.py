"""Documents as data frames: questions, answers, comments, links and tags, in typed columns.

Documents are split into rows a few thousand at a time, so only the requested columns have to fit
into memory.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from so2docs.errors import OptionError, OutputError, flag
from so2docs.options.option import contradiction, point_in_time, tag_filter
from so2docs.options.option import tags as read_tags
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    POST_PARTS,
    POSTS,
    QUESTION_ATTRIBUTES,
    TEXT,
    Attributes,
    Part,
)

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from so2docs.types import Question

FrameName = Literal["questions", "answers", "comments", "links", "tags"]
Row = dict[str, Any]

_BATCH = 4096
"""Number of documents in a batch, if the source yields single documents."""

_PARTS = {part.key: part for part in POST_PARTS}
_OF_POSTS: Attributes = {
    part.key: part.attributes[part.key] for part in POST_PARTS if part.shape == "value"
} | {"Url": TEXT}
_WITHOUT_FRAME = {key.lower(): f"`{key}`" for key in _PARTS} | {
    "users": "`Owner`, `LastEditor` and `User`",
    "badges": "`Badges` of users",
}
"""Keys of nested rows that have no frame, by table."""

_NESTED = (ANSWERS, *(part.key for part in POST_PARTS if part.shape != "value"))


class Frame:
    """Rows of one kind in documents, which are read on demand.

    Questions, answers, comments and links have their attributes as columns, and posts also have
    `Url` (with attribution). Tags are pairs of `QuestionId` and `Tag`. `Other` is a JSON object of
    attributes without a column, or with a value of another type. Integers are `int64`, dates
    `timestamp[ms, UTC]`, `Tags` a list. Rows exclude nested objects.

    Args:
        name: Kind of the rows.
        source: Source of the documents.
    """

    def __init__(self, name: FrameName, source: Framed) -> None:
        self.name = name
        self._source = source

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema, which is the same for every output."""
        _require("pyarrow", self.name)
        import pyarrow

        if self.name == "tags":
            return pyarrow.schema({"QuestionId": pyarrow.int64(), "Tag": pyarrow.string()})
        return pyarrow.schema(_columns(self.name).fields)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over Arrow record batches, for rows that do not fit into memory.

        Raises:
            OutputError: A document was not written by so2docs.
        """
        schema = self.schema
        import pyarrow

        for documents in self._source._document_batches():
            with _expect_documents(self._source, documents):
                if self.name == "tags":
                    pairs = [(row["Id"], tag) for row in documents for tag in row.get("Tags") or ()]
                    arrays = [
                        pyarrow.array([pair[index] for pair in pairs], field.type)
                        for index, field in enumerate(schema)
                    ]
                else:
                    arrays = _columns(self.name).columns(list(_ROWS[self.name](documents)))
                batch = pyarrow.RecordBatch.from_arrays(arrays, schema=schema)
            yield batch

    def to_arrow(self) -> pa.Table:
        """Read all rows as an Arrow table."""
        schema = self.schema
        import pyarrow

        return pyarrow.Table.from_batches(self.to_batches(), schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Read all rows as a pandas data frame; integers are `Int64`, even if values are missing.

        Raises:
            OptionError: pandas or pyarrow is not installed.
        """
        _require("pandas", self.name)
        table = self.to_arrow()
        import pandas
        import pyarrow

        return table.to_pandas(types_mapper={pyarrow.int64(): pandas.Int64Dtype()}.get)

    def to_polars(self) -> polars.DataFrame:
        """Read all rows as a polars data frame, without copying columns.

        Raises:
            OptionError: polars or pyarrow is not installed.
        """
        _require("polars", self.name)
        table = self.to_arrow()
        import polars

        return cast("polars.DataFrame", polars.from_arrow(table))

    def __repr__(self) -> str:
        return f"<Frame of {self.name}>"


@contextmanager
def _expect_documents(source: Framed, documents: list[Any]) -> Iterator[None]:
    """Raise an error for documents in another form, such as foreign JSON or MongoDB's dates."""
    objects = [document for document in documents if isinstance(document, dict)]
    try:
        if objects and isinstance(objects[0].get("CreationDate"), dict):
            raise TypeError
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        ids = [document["Id"] for document in objects if "Id" in document]
        where = f"between question {ids[0]} and question {ids[-1]}, " if ids else ""
        raise OutputError(
            f"{source.path}: {where}a document has no Id, or a value of an unexpected type; "
            f"frames and `where` need JSON lines with Id, but not those of "
            f"{flag('format', 'mongodb')}"
        ) from error


def _require(package: str, name: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise OptionError(f"{name}: {package} is needed; install it with: pip install {package}")


@cache
def _columns(name: FrameName) -> Any:
    from so2docs.output.formats.parquet import ObjectColumns

    if name in ("comments", "links"):
        part = _PARTS[name.capitalize()]
        extra = {} if name == "links" else {"Url": TEXT}
        return ObjectColumns({**part.attributes, **extra})
    names = QUESTION_ATTRIBUTES if name == "questions" else ANSWER_ATTRIBUTES
    return ObjectColumns({**{n: POSTS.attributes[n] for n in names}, **_OF_POSTS})


def _posts(documents: list[Row]) -> Iterator[Row]:
    for question in documents:
        yield question
        yield from question.get(ANSWERS) or ()


def _without_nested(posts: Iterable[Row]) -> Iterator[Row]:
    for post in posts:
        for key in _NESTED:
            post.pop(key, None)
        yield post


def _answers(documents: list[Row]) -> Iterator[Row]:
    return _without_nested(row for q in documents for row in q.get(ANSWERS) or ())


def _held(part: Part) -> Callable[[list[Row]], Iterator[Row]]:
    inner = [inner_part.key for inner_part in part.parts]

    def rows(documents: list[Row]) -> Iterator[Row]:
        for post in _posts(documents):
            for row in post.get(part.key) or ():
                for key in inner:
                    row.pop(key, None)
                yield row

    return rows


_ROWS: dict[str, Callable[[list[Row]], Iterator[Row]]] = {
    "questions": _without_nested,
    "answers": _answers,
    "comments": _held(_PARTS["Comments"]),
    "links": _held(_PARTS["Links"]),
}


class Framed:
    """Base class for sources of documents, with a frame for each kind of row."""

    path: str

    if not TYPE_CHECKING:  # Without this condition, type checkers would accept any attribute.

        def __getattr__(self, name: str) -> Any:
            """Raise an error that explains tables without a frame, such as `votes`."""
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if name in _WITHOUT_FRAME:
                text += (
                    f"; if the {name} are nested, documents have them as {_WITHOUT_FRAME[name]}, "
                    "and so2docs.tables writes the whole table"
                )
            raise AttributeError(text)

    def _document_batches(self) -> Iterator[list[Row]]:
        """Iterate over batches of documents; each document is a new dictionary."""
        raise NotImplementedError

    @property
    def questions(self) -> Frame:
        """The questions, without nested rows."""
        return Frame("questions", self)

    @property
    def answers(self) -> Frame:
        """The answers; `ParentId` is the question."""
        return Frame("answers", self)

    @property
    def comments(self) -> Frame:
        """The comments, if nested; `PostId` is the question or answer."""
        return Frame("comments", self)

    @property
    def links(self) -> Frame:
        """The links, if nested."""
        return Frame("links", self)

    @property
    def tags(self) -> Frame:
        """A row for each tag of each question."""
        return Frame("tags", self)


def in_batches(documents: Iterable[Any]) -> Iterator[list[Row]]:
    """Group single documents into batches."""
    remaining = iter(documents)
    while batch := list(islice(remaining, _BATCH)):
        yield batch


class Selection(Framed):
    """A selection of documents, filtered while reading; the result of `Collection.where`."""

    def __init__(
        self,
        source: Framed,
        since: str | date | None,
        until: str | date | None,
        tags: str | Iterable[str],
        all_tags: bool,
    ) -> None:
        self._source, self.path = source, source.path
        self._since = point_in_time("since", since) or ""
        self._until = point_in_time("until", until) or ""
        if self._since and self._until and self._since >= self._until:
            raise contradiction("since", "until")
        self._tags = frozenset(read_tags("tags", tags)) if tags else frozenset[str]()
        self._has_tags = tag_filter(self._tags, all_tags=all_tags)

    def __iter__(self) -> Iterator[Question]:
        for batch in self._document_batches():
            yield from cast("list[Question]", batch)

    def _document_batches(self) -> Iterator[list[Row]]:
        for batch in self._source._document_batches():
            with _expect_documents(self, batch):
                questions = [question for question in batch if self._holds(question)]
            if questions:
                yield questions

    def _holds(self, question: Mapping[str, Any]) -> bool:
        """Whether a question is in the selection. Limits exclude questions without a date."""
        date = question.get("CreationDate") or ""
        if date < self._since or (self._until and not "" < date < self._until):
            return False
        if not self._tags:
            return True
        return self._has_tags(question.get("Tags") or ())
