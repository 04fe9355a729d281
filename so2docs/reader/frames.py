"""Documents as data frames: questions, answers, comments, links and tags, in typed columns.

Documents are taken apart some thousand at a time, so that only the columns that are asked for have
to fit into memory.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from so2docs.errors import OptionError
from so2docs.options.option import contradiction, point_in_time
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
"""Documents of a batch, where they come one by one."""

_PARTS = {part.key: part for part in POST_PARTS}
_OF_POSTS: Attributes = {
    part.key: part.attributes[part.key] for part in POST_PARTS if part.shape == "value"
} | {"Url": TEXT}
_NESTED = (ANSWERS, *(part.key for part in POST_PARTS if part.shape != "value"))


class Frame:
    """One kind of rows out of documents; nothing is read before it is asked for.

    Questions and answers have their attributes as columns, and `Url` (with attribution); comments
    and links have theirs; tags are pairs of `QuestionId` and `Tag`. `Other` holds, as the text of a
    JSON object, whatever has no column or is not of the type of its column. Integers are `int64`,
    dates `timestamp[ms, UTC]`, `Tags` a list. What is nested in a row is not part of it.

    Args:
        name: Which.
        batches: Gives the documents, as dictionaries that may be changed.
    """

    def __init__(self, name: FrameName, batches: Callable[[], Iterator[list[Row]]]) -> None:
        self.name = name
        self._batches = batches

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema: the same for every output."""
        _require("pyarrow", self.name)
        import pyarrow

        if self.name == "tags":
            return pyarrow.schema({"QuestionId": pyarrow.int64(), "Tag": pyarrow.string()})
        return pyarrow.schema(_columns(self.name).fields)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Arrow record batches, one after the other, for what does not fit into memory."""
        schema = self.schema
        import pyarrow

        for documents in self._batches():
            if self.name == "tags":
                pairs = [(row["Id"], tag) for row in documents for tag in row.get("Tags") or ()]
                arrays = [
                    pyarrow.array([pair[place] for pair in pairs], field.type)
                    for place, field in enumerate(schema)
                ]
            else:
                arrays = _columns(self.name).columns(list(_ROWS[self.name](documents)))
            yield pyarrow.RecordBatch.from_arrays(arrays, schema=schema)

    def to_arrow(self) -> pa.Table:
        """An Arrow table of all rows."""
        schema = self.schema
        import pyarrow

        return pyarrow.Table.from_batches(self.to_batches(), schema)

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame; integers are `Int64`, so that missing ones make no floats.

        Raises:
            OptionError: pandas or pyarrow is not installed.
        """
        _require("pandas", self.name)
        table = self.to_arrow()
        import pandas
        import pyarrow

        return table.to_pandas(types_mapper={pyarrow.int64(): pandas.Int64Dtype()}.get)

    def to_polars(self) -> polars.DataFrame:
        """A polars data frame, without a copy of the columns.

        Raises:
            OptionError: polars or pyarrow is not installed.
        """
        _require("polars", self.name)
        table = self.to_arrow()
        import polars

        return cast("polars.DataFrame", polars.from_arrow(table))

    def __repr__(self) -> str:
        return f"<Frame of {self.name}>"


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
    """Documents that can be had as frames."""

    def _document_batches(self) -> Iterator[list[Row]]:
        """All documents, some at a time, as dictionaries of their own."""
        raise NotImplementedError

    @property
    def questions(self) -> Frame:
        """The questions, without what is nested in them."""
        return Frame("questions", self._document_batches)

    @property
    def answers(self) -> Frame:
        """The answers; `ParentId` is the question."""
        return Frame("answers", self._document_batches)

    @property
    def comments(self) -> Frame:
        """The comments, where they are nested; `PostId` is the question or answer."""
        return Frame("comments", self._document_batches)

    @property
    def links(self) -> Frame:
        """The links, where they are nested."""
        return Frame("links", self._document_batches)

    @property
    def tags(self) -> Frame:
        """A row for each tag of each question."""
        return Frame("tags", self._document_batches)


def in_batches(documents: Iterable[Any]) -> Iterator[list[Row]]:
    """Documents that come one by one, some at a time."""
    rest = iter(documents)
    while batch := list(islice(rest, _BATCH)):
        yield batch


class Selection(Framed):
    """A selection of documents, filtered while they are read; made by `where` of a collection."""

    def __init__(
        self,
        source: Framed,
        since: str | date | None,
        until: str | date | None,
        tags: str | Iterable[str],
        all_tags: bool,
    ) -> None:
        self._source = source
        self._since = point_in_time("since", since) or ""
        self._until = point_in_time("until", until) or ""
        if self._since and self._until and self._since >= self._until:
            raise contradiction("since", "until")
        self._tags = frozenset(read_tags("tags", tags)) if tags else frozenset[str]()
        self._all_tags = all_tags

    def __iter__(self) -> Iterator[Question]:
        for batch in self._document_batches():
            yield from cast("list[Question]", batch)

    def _document_batches(self) -> Iterator[list[Row]]:
        for batch in self._source._document_batches():
            if questions := [question for question in batch if self._holds(question)]:
                yield questions

    def _holds(self, question: Mapping[str, Any]) -> bool:
        """Whether a question is in the selection; those without a date pass no limit."""
        date = question.get("CreationDate") or ""
        if date < self._since or (self._until and not "" < date < self._until):
            return False
        if not self._tags:
            return True
        matching = self._tags.intersection(question.get("Tags") or ())
        return len(matching) == len(self._tags) if self._all_tags else bool(matching)
