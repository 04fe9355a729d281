"""Documents as data frames: posts, their nested rows, and users, in typed columns.

Documents are split into rows a few thousand at a time, so only the requested columns have to fit
into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, cast

from so2docs.errors import require_packages
from so2docs.reader.framed import Framed, FrameName, expect_documents
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    BADGES,
    INTEGER,
    POST_PARTS,
    POSTS,
    QUESTION_ATTRIBUTES,
    TEXT,
    Attributes,
    Part,
    Row,
)

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as pa

    from so2docs.extensions.parquet.row_group import Group


_PARTS = {part.key: part for part in POST_PARTS}
_OF_POSTS: Attributes = {
    part.key: part.attributes[part.key] for part in POST_PARTS if part.shape == "value"
} | {"Url": TEXT}
_NESTED = (ANSWERS, *(part.key for part in POST_PARTS if part.shape != "value"))


class Frame:
    """All rows of one kind in the documents, as a data frame that is read on demand.

    Each attribute is a column; nested objects are left out. Posts, comments and users also have the
    column `Url`, which is null unless the output has attribution. Votes and history also have the
    column `PostId`. The column `Other` is a JSON object with the attributes that have no column,
    and the values that do not have the type of their column. Integers are `int64`, dates are
    `timestamp[ms, UTC]`, and `Tags` is a list.

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
        require_packages(f"the frame {self.name}", "pyarrow", extra="parquet")
        from so2docs.extensions.parquet.arrow import arrow_schema

        return arrow_schema(_columns(self.name))

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows as Arrow record batches, for frames that do not fit in memory.

        The `users` frame keeps the user ids in memory, so that each user becomes a single row.

        Raises:
            OutputError: A document was not written by so2docs.
        """
        require_packages(f"the frame {self.name}", "pyarrow", extra="parquet")
        from so2docs.extensions.parquet.arrow import arrow_batch

        rows_of = _new_users() if self.name == "users" else _ROWS[self.name]
        for documents in self._source._document_batches():
            with expect_documents(self._source, documents):
                batch = arrow_batch(_columns(self.name), [*chain(*map(rows_of, documents))])
            yield batch

    def to_arrow(self) -> pa.Table:
        """Read all rows as an Arrow table."""
        schema = self.schema
        import pyarrow

        return pyarrow.Table.from_batches(self.to_batches(), schema)

    def to_pandas(self) -> pandas.DataFrame:
        """Read all rows as a pandas data frame; integer columns are `Int64`, which allows nulls.

        Raises:
            OptionError: pandas or pyarrow is not installed.
        """
        require_packages(f"the frame {self.name}", "pandas")
        table = self.to_arrow()
        import pandas
        import pyarrow

        return table.to_pandas(types_mapper={pyarrow.int64(): pandas.Int64Dtype()}.get)

    def to_polars(self) -> polars.DataFrame:
        """Read all rows as a polars data frame, without copying columns.

        Raises:
            OptionError: polars or pyarrow is not installed.
        """
        require_packages(f"the frame {self.name}", "polars")
        table = self.to_arrow()
        import polars

        return cast("polars.DataFrame", polars.from_arrow(table))

    def __repr__(self) -> str:
        return f"<Frame of {self.name}>"


@cache
def _columns(name: FrameName) -> Group:
    from so2docs.extensions.parquet.columns import object_columns

    if name in ("questions", "answers"):
        names = QUESTION_ATTRIBUTES if name == "questions" else ANSWER_ATTRIBUTES
        return object_columns({**{n: POSTS.attributes[n] for n in names}, **_OF_POSTS})
    part = _PARTS["Owner" if name == "users" else name.capitalize()]
    has_post = "PostId" in part.attributes or part.by
    attributes = {} if has_post else {"PostId": INTEGER}
    attributes |= part.attributes
    return object_columns(attributes | ({"Url": TEXT} if name in ("comments", "users") else {}))


def _posts(question: Row) -> Iterator[Row]:
    yield question
    yield from question.get(ANSWERS) or ()


def _without_nested(post: Row) -> Row:
    for key in _NESTED:
        post.pop(key, None)
    return post


def _held(part: Part) -> Callable[[Row], Iterator[Row]]:
    inner = [inner_part.key for inner_part in part.parts]
    names_post = "PostId" in part.attributes

    def rows(question: Row) -> Iterator[Row]:
        for post in _posts(question):
            for row in post.get(part.key) or ():
                for key in inner:
                    row.pop(key, None)
                if not names_post:
                    row["PostId"] = post["Id"]
                yield row

    return rows


def _votes(question: Row) -> Iterator[Row]:
    """Yield a row of vote counts for each post with the key `Votes`; missing types count as 0."""
    part = _PARTS["Votes"]
    none = dict.fromkeys(part.attributes, 0)
    for post in _posts(question):
        if part.key in post:
            yield {"PostId": post["Id"], **none, **post[part.key]}


def _new_users() -> Callable[[Row], Iterator[Row]]:
    """Make a function that yields the users in a document who were in no earlier document."""
    ids: set[int] = set()

    def rows(question: Row) -> Iterator[Row]:
        for post in _posts(question):
            for user in _users(post, _PARTS.values()):
                if user["Id"] not in ids:
                    ids.add(user["Id"])
                    user.pop(BADGES.key, None)
                    yield user

    return rows


def _users(row: Row, parts: Iterable[Part]) -> Iterator[Row]:
    for part in parts:
        if part.by and row.get(part.key):
            yield row[part.key]
        elif part.parts:
            for inner in row.get(part.key) or ():
                yield from _users(inner, part.parts)


_ROWS: dict[str, Callable[[Row], Iterable[Row]]] = {
    "questions": lambda question: [_without_nested(question)],
    "answers": lambda question: map(_without_nested, question.get(ANSWERS) or ()),
    "comments": _held(_PARTS["Comments"]),
    "links": _held(_PARTS["Links"]),
    "history": _held(_PARTS["History"]),
    "votes": _votes,
}
