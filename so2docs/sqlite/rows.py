"""Documents -> rows of the tables. Pure: memory is that of the rows until they are taken."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal

import orjson

from so2docs.errors import OutputError
from so2docs.schema import ANSWERS, COMMENT_ATTRIBUTES, LINK_ATTRIBUTES, USER_ATTRIBUTES
from so2docs.sqlite.layout import INTEGERS, LAYOUTS, OTHER

Row = tuple[Any, ...]
Document = dict[str, Any]
Search = Literal["titles", "all", "none"]

USERS = {"Owner": "OwnerUserId", "LastEditor": "LastEditorUserId", "User": "UserId"}
"""Where a document holds a user, and which attribute of the same object has the user's id."""

# The dump has bodies as the site's sanitizer left them: `<` stands only before a tag. No pattern
# looks beyond the next one, so that the time is linear whatever else a body holds.
_CLOSING = re.compile(r"</(?:p|pre|code|a|li|em|strong)>")
_BLOCK = re.compile(
    r"</?(?:p|div|br|hr|li|[uod]l|d[td]|pre|blockquote|h[1-6]|t[dhr]|table)\b[^<>]*>"
)
_IMAGE = re.compile(r"<img\b((?:[^<>\"]|\"[^<\"]*+\")*+)>")
_ALT = re.compile(r"\balt=\"([^\"]*)\"")
_TAG = re.compile(r"</?[a-zA-Z!][^<>]*>")
_LONG_REFERENCE = re.compile(r"&#0*[1-9][0-9]{7,};?")
"""A reference to no character, which Python refuses to read as a number when it is long enough."""


def is_html(body: str) -> bool:
    """Whether a body is HTML, and not text or Markdown made of it."""
    return body.lstrip().startswith("<") or _CLOSING.search(body) is not None


def text_of(body: str) -> str:
    """The text of a body, for finding words: a quarter of the time that a parser of HTML takes.

    On well-formed bodies the words are those of `--body text`.
    """
    if not is_html(body):
        return body
    body = _IMAGE.sub(_alternative, body) if "<img" in body else body
    text = _TAG.sub("", _BLOCK.sub(" ", body))
    return html.unescape(_LONG_REFERENCE.sub("\ufffd", text)) if "&" in text else text


def _alternative(image: re.Match[str]) -> str:
    """The text of an image; nothing where it has none."""
    alt = _ALT.search(image[1])
    return "" if alt is None else alt[1]


class _Columns:
    """The columns of one kind of object; what does not fit goes into `Other`."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self._known = frozenset(self.names)
        self._kinds = tuple(int if name in INTEGERS else str for name in self.names)
        self._sound: set[tuple[type, ...]] = set()

    def values(self, record: Document) -> tuple[list[Any], str | None]:
        """The values of the columns, and `Other`."""
        values = list(map(record.get, self.names))
        signature = tuple(map(type, values))
        is_whole = len(record) == len(values) - values.count(None)
        if is_whole and signature in self._sound:
            return values, None
        misfits = [
            place
            for place, (value, kind) in enumerate(zip(values, self._kinds, strict=True))
            if value is not None and type(value) is not kind
        ]
        if is_whole and not misfits:
            self._sound.add(signature)
            return values, None
        for place in misfits:
            values[place] = None
        held = {name for name, value in zip(self.names, values, strict=True) if value is not None}
        other = {name: value for name, value in record.items() if name not in held}
        return values, orjson.dumps(other).decode()


def _of_post(table: str, *extra: str) -> _Columns:
    names = LAYOUTS[table].columns
    return _Columns(name for name in names if name not in (OTHER, *extra))


class TableRows:
    """Collects the rows of documents of one source; `take` hands them out.

    Attributes:
        shape: Paths of the parts that documents of this source hold, such as `Answers.Comments`
            or `Owner`, and `-Answers.ParentId` for keys that they lack and that a row has.
    """

    def __init__(
        self,
        site_field: str | None,
        site: str | None,
        search: Search,
        number_row: Callable[[], int],
    ) -> None:
        """Make an empty collection.

        Args:
            site_field: Column for the site; None in a database of one site.
            site: The site, where documents do not tell.
            search: What words are to be found in.
            number_row: Gives posts their numbers in a database of several sites.
        """
        self.shape: set[str] = set()
        self._site_field, self._site, self._search = site_field, site, search
        self._number_row = number_row
        self._question = _of_post("questions", ANSWERS)
        self._answer = _of_post("answers", "Position")
        self._comment = _Columns(COMMENT_ATTRIBUTES)
        self._link = _Columns(LINK_ATTRIBUTES)
        self._user = _Columns(USER_ATTRIBUTES)
        self._rows: dict[str, list[Row]] = {}
        self._users: dict[Row, Row] = {}
        self._user_shapes: set[Row] = set()
        self.sites: set[str] = set()

    def take(self) -> dict[str, list[Row]]:
        """The rows by table since the last time."""
        taken, self._rows = self._rows, {}
        if self._users:
            taken["users"], self._users = list(self._users.values()), {}
        return taken

    def add(self, document: Document) -> None:
        """Make rows of a document.

        Raises:
            OutputError: It, or something in it, has no `Id`.
        """
        question = dict(document)
        question_id = _id_of(question, "a document")
        site: Row = ()
        if self._site_field is not None:
            name = str(question.pop(self._site_field, self._site))
            site = (name,)
            self.sites.add(name)
        answers = question.pop(ANSWERS, None)
        self._post(self._question, question, "", site, question_id, number=len(answers or ()))
        if answers is None:
            return
        self.shape.add("Answers")
        for position, answer in enumerate(answers):
            answer = dict(answer)  # noqa: PLW2901
            _id_of(answer, f"an answer of question {question_id}")
            if "ParentId" not in answer:
                self.shape.add("-Answers.ParentId")
                answer["ParentId"] = question_id
            self._post(self._answer, answer, "Answers.", site, question_id, number=position)

    def _post(
        self,
        kind: _Columns,
        post: Document,
        path: str,
        site: Row,
        question_id: int,
        *,
        number: int,
    ) -> None:
        """Make rows of a post; `number` is how many answers it has, or its place among them."""
        post_id = post["Id"]
        for name, rows_of in (("Comments", self._comments), ("Links", self._links)):
            if name in post:
                rows_of(post.pop(name), path + name, site, post_id, question_id)
        if "Votes" in post:
            self.shape.add(f"{path}Votes")
            votes = post.pop("Votes").items()
            rows = [(*site, post_id, vote, count, question_id) for vote, count in votes]
            self._rows.setdefault("votes", []).extend(rows)
        self._take_users(post, ("Owner", "LastEditor"), path, site)
        tags = post.get("Tags") if kind is self._question else None
        if tags is not None:
            if not isinstance(tags, list):
                raise OutputError(f"the tags of post {post_id} are no array, as so2docs makes them")
            post["Tags"] = orjson.dumps(tags).decode()
        values, other = kind.values(post)
        row = () if not site else (self._number_row(),)
        table = "questions" if kind is self._question else "answers"
        body = values[-1]
        made = (*site, *values[:-1], number, other, body, *row)
        self._rows.setdefault(table, []).append(made)
        if self._search == "all" or (self._search == "titles" and table == "questions"):
            text = text_of(body or "") if self._search == "all" else None
            words = None if tags is None else " ".join(map(str, tags))
            texts = self._rows.setdefault("texts", [])
            texts.append((*row, *site, post_id, post.get("Title"), words, text))

    def _comments(
        self, comments: list[Document], path: str, site: Row, post_id: int, question_id: int
    ) -> None:
        self.shape.add(path)
        rows = self._rows.setdefault("comments", [])
        for comment in comments:
            comment = dict(comment)  # noqa: PLW2901
            self._take_users(comment, ("User",), f"{path}.", site)
            values, other = self._nested(self._comment, comment, path, post_id)
            rows.append((*site, *values, question_id, other))

    def _links(
        self, links: list[Document], path: str, site: Row, post_id: int, question_id: int
    ) -> None:
        self.shape.add(path)
        rows = self._rows.setdefault("links", [])
        for link in links:
            values, other = self._nested(self._link, dict(link), path, post_id)
            rows.append((*site, *values, question_id, other))

    def _nested(
        self, kind: _Columns, record: Document, path: str, post_id: int
    ) -> tuple[list[Any], str | None]:
        _id_of(record, f"one of the {path} of post {post_id}")
        if "PostId" not in record:
            self.shape.add(f"-{path}.PostId")
            record["PostId"] = post_id
        return kind.values(record)

    def _take_users(self, record: Document, keys: Iterable[str], path: str, site: Row) -> None:
        """Move users into rows of their own; one whose id the record lacks stays in `Other`."""
        for key in keys:
            user = record.get(key)
            if user is None or (user_id := user.get("Id")) is None:
                continue
            if record.get(USERS[key]) != user_id:
                continue
            del record[key]
            names = tuple(user)
            if (path, key, names) not in self._user_shapes:
                self._user_shapes.add((path, key, names))
                self.shape.update((path + key, *(f"{path}{key}.{name}" for name in names)))
            if (*site, user_id, names) not in self._users:
                values, other = self._user.values(user)
                # A row with nothing but an id is of somebody whom documents only name.
                other = "{}" if other is None and values.count(None) == len(values) - 1 else other
                self._users[*site, user_id, names] = (*site, *values, other)


def _id_of(record: Document, what: str) -> int:
    found = record.get("Id")
    if not isinstance(found, int):
        raise OutputError(
            f"{what} has no Id, which the tables need; keep the fields Id, Answers.Id, Comments.Id "
            "and Links.Id when you convert"
        )
    return found
