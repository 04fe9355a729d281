"""Make rows of the tables from documents, and read documents from a database."""

from __future__ import annotations

import marshal
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from so2docs.counts import Counts
from so2docs.errors import OutputError
from so2docs.escape import strip_tags
from so2docs.extensions.sqlite.accents import list_forms
from so2docs.extensions.sqlite.layout import INTEGERS, LAYOUTS, NESTED, PAGES, Layout
from so2docs.options.choices import Search
from so2docs.parse import core
from so2docs.reader.reading import parse_document
from so2docs.schema import (
    ANSWERS,
    POSTS,
    Table,
)
from so2docs.zstd import decompress, frame_compressor

Values = tuple[Any, ...]
Document = dict[str, Any]
_KINDS: dict[type, str] = {list: "an array", dict: "an object"}

USERS = {key: by for table in (POSTS, *NESTED.values()) for by, key in table.users.items()}
"""Keys of users in an object, with the attribute of the same object that has the user's id."""

OWNERS = tuple(POSTS.users.values())
"""Keys of users in a post."""

# No pattern looks beyond the next `<`, so the time is linear for any body. In bodies from the
# site's sanitizer, every `<` starts a tag.
_CLOSING = re.compile(r"</(?:p|pre|code|a|li|em|strong)>")
_BLOCK = re.compile(
    r"</?(?:p|div|br|hr|li|[uod]l|d[td]|pre|blockquote|h[1-6]|t[dhr]|table)\b[^<>]*>"
)
_IMAGE = re.compile(r"<img\b((?:[^<>\"]|\"[^<\"]*+\")*+)>")
_ALT = re.compile(r"\balt=\"([^\"]*)\"")


def is_html(body: str) -> bool:
    """Whether a body is HTML rather than text or Markdown."""
    return body.lstrip().startswith("<") or _CLOSING.search(body) is not None


def html_to_text(body: str) -> str:
    """Convert a body to text for the index.

    For well-formed bodies, the words are the same as with `--body text`.
    """
    if not is_html(body):
        return body
    body = _IMAGE.sub(_alternative, body) if "<img" in body else body
    text = core.to_text(body)
    return separate_words(body) if text is None else text


def separate_words(body: str) -> str:
    """Convert a body without images to text; the compiled core does the same for usual bodies."""
    return strip_tags(_BLOCK.sub(" ", body))


def _alternative(image: re.Match[str]) -> str:
    """Return the alt text of an image; an empty string if it has none."""
    alt = _ALT.search(image[1])
    return "" if alt is None else alt[1]


_LEAST, _MOST = -(1 << 63), 1 << 63
_LEVEL = 1
"""The zstd compression level of pages. Level 3 saves 1 % of a database for 2 % of the time."""
_PAGE_BYTES = 96 * 1024
"""Bytes of JSON in a page; a larger document has a page of its own."""


class DocumentError(OutputError):
    """A document has a value that the tables cannot hold; the message names the key."""


@dataclass(slots=True)
class Tally(Counts):
    """Counts and names collected from the documents of one source; it does not hold the rows.

    Attributes:
        numbered: Number of posts with a row number; 0 in a database of one site.
        sites: Names of the sites of the documents; empty in a database of one site.
        parts: Keys of the nested parts that documents hold, such as `Comments` and `Owner`.
    """

    numbered: int = 0
    sites: set[str] = field(default_factory=set)
    parts: set[str] = field(default_factory=set)


class _Columns:
    """The columns of one kind of object; values that do not fit go into `Other`."""

    def __init__(self, layout: Layout) -> None:
        self.names = layout.attributes
        self._kinds = tuple(int if name in INTEGERS else str for name in self.names)
        self._integers = [place for place, kind in enumerate(self._kinds) if kind is int]
        self._as_json = [self.names.index(name) for name in layout.as_json]
        self._plans: dict[tuple[Any, ...], tuple[itemgetter[Any], list[int]]] = {}
        """How to order the values of objects with the same keys and types, if all of them fit: the
        position of each column in the values and a last None, and the columns of integers."""

    def values(self, record: Document, path: str) -> tuple[list[Any], str | None]:
        """Return the column values of an object, and the JSON for `Other`; None if all values fit.

        Raises:
            DocumentError: An integer has more than 64 bits, or a value cannot be written as JSON.
        """
        signature = tuple(record), tuple(map(type, record.values()))
        plan = self._plans.get(signature)
        if plan is None:
            values: list[Any] = list(map(record.get, self.names))
        else:
            values = list(plan[0]((*record.values(), None)))
        for place in self._as_json:
            if (value := values[place]) is not None:
                values[place] = _as_json(value, path + self.names[place])
        if plan is not None:
            for place in plan[1]:
                if not _LEAST <= values[place] < _MOST:
                    raise self._too_large(path, place)
            return values, None
        for place in self._integers:
            value = values[place]
            # JSON integers of more than 64 bits are parsed as floats.
            if (isinstance(value, int) and not _LEAST <= value < _MOST) or (
                isinstance(value, float) and abs(value) >= _MOST
            ):
                raise self._too_large(path, place)
        misfits = [
            place
            for place, (value, kind) in enumerate(zip(values, self._kinds, strict=True))
            if value is not None and type(value) is not kind
        ]
        if not misfits and len(record) == len(values) - values.count(None):
            positions = {name: position for position, name in enumerate(record)}
            self._plans[signature] = (
                itemgetter(*(positions.get(name, -1) for name in self.names)),
                [place for place in self._integers if values[place] is not None],
            )
            return values, None
        for place in misfits:
            values[place] = None
        stored_names = {
            name for name, value in zip(self.names, values, strict=True) if value is not None
        }
        other = {name: value for name, value in record.items() if name not in stored_names}
        return values, _as_json(other, ", ".join(path + name for name in other))

    def _too_large(self, path: str, place: int) -> DocumentError:
        return DocumentError(f"{path}{self.names[place]}: has more than 64 bits")


_COLUMNS = {name: _Columns(layout) for name, layout in LAYOUTS.items()}


class TableRows:
    """Collects the rows of documents of one source; `take` returns them.

    Attributes:
        tally: Counts of the documents.
    """

    def __init__(self, site_field: str | None, site: str | None, search: Search) -> None:
        """Make an empty collection.

        Args:
            site_field: Column for the site; None in a database of one site.
            site: The site of documents that do not name one.
            search: Texts to index: `titles`, `all` or `none`.
        """
        self.tally = Tally()
        self._site_field, self._site, self._search = site_field, site, search
        self._rows: dict[str, list[Values]] = {}
        self._users: dict[Values, Values] = {}
        self._page: list[bytes] = []
        self._page_bytes = self._page_number = 0

    def take(self) -> dict[str, list[Values]]:
        """Return the rows, by table."""
        self._end_page()
        if self._users:
            self._rows["users"] = list(self._users.values())
        return self._rows

    def add(self, document: Document) -> None:
        """Make the rows of a document, one of which holds its JSON without bodies.

        Raises:
            DocumentError: A value does not fit the tables; discard the rows collected so far.
        """
        question = _object(document, "a line")
        question_id = _require_id(question, "")
        site: Values = ()
        if self._site_field is not None:
            name = question.pop(self._site_field, self._site)
            if not isinstance(name, str):
                raise DocumentError(f"{self._site_field}: is not a string")
            site = (name,)
            self.tally.sites.add(name)
        answers = self._part(question, ANSWERS, list, "")
        row = self._post("questions", question, "", site, question_id, number=len(answers or ()))
        for position, answer in enumerate(answers or ()):
            path = f"{ANSWERS}."
            answer = _object(answer, ANSWERS)  # noqa: PLW2901
            _require_id(answer, path)
            self._belong(answer, path, "ParentId", question_id)
            self._post("answers", answer, path, site, question_id, number=position)
        json = _without_bodies(document)
        if self._page_bytes + len(json) > _PAGE_BYTES:
            self._end_page()
        if not self._page:
            self._page_number = row[0] if row else question_id
        place = self._page_number, len(self._page)
        self._rows.setdefault("documents", []).append((*row, *site, question_id, *place))
        self._page.append(json)
        self._page_bytes += len(json)

    def _end_page(self) -> None:
        if self._page:
            packed = _compress(b"\n".join(self._page))
            self._rows.setdefault(PAGES, []).append((self._page_number, packed))
            self._page, self._page_bytes = [], 0

    def _part(self, record: Document, key: str, kind: type, prefix: str) -> Any:
        """Take a nested part out of an object; None if it is missing.

        Raises:
            DocumentError: The part is neither null nor of this type.
        """
        if key not in record:
            return None
        value = record.pop(key)
        if value is None:
            return None
        if not isinstance(value, kind):
            raise DocumentError(f"{prefix}{key}: is not {_KINDS[kind]}")
        self.tally.parts.add(key)
        return value

    def _belong(self, record: Document, path: str, key: str, post_id: int) -> None:
        """Check that a nested object refers to the post that contains it; add a missing reference.

        Raises:
            DocumentError: The object refers to another post.
        """
        value = record.setdefault(key, post_id)
        if value != post_id or type(value) is not int:
            raise DocumentError(f"{path}{key}: is {record[key]!r} within post {post_id}")

    def _post(
        self,
        name: str,
        post: Document,
        path: str,
        site: Values,
        question_id: int,
        *,
        number: int,
    ) -> Values:
        """Make the rows of a post.

        `number` is the number of answers to a question, or the index of an answer.

        Returns:
            The row number of the post; empty in a database of one site.
        """
        post_id = post["Id"]
        for key, table in NESTED.items():
            if key not in post:
                continue
            if table.shape == "counts":
                self._counts(post, table, path, (*site, post_id), question_id)
            elif (nested := self._part(post, key, list, path)) is not None:
                rows = self._rows.setdefault(key.lower(), [])
                records = self._nested(nested, path + key, table, site, post_id)
                rows += [(*site, *values, question_id, other) for values, other in records]
        self._take_users(post, OWNERS, path, site)
        tags = post.get("Tags") if name == "questions" else None
        if not isinstance(tags, list | None):
            raise DocumentError("Tags: is not an array of strings")
        values, other = _COLUMNS[name].values(post, path)
        row: Values = ()
        if site:
            self.tally.numbered += 1
            row = (self.tally.numbered,)
        self._rows.setdefault(name, []).append((*site, *values, number, other, *row))
        if self._search == "all" or (self._search == "titles" and name == "questions"):
            text = None
            if self._search == "all":
                body = post.get("Body")
                text = html_to_text(str(body)) if isinstance(body, str) else ""
            words = None if tags is None else " ".join(map(str, tags))
            title = post.get("Title")
            title = str(title) if isinstance(title, str) else None
            texts = self._rows.setdefault("texts", [])
            without_accents = list_forms((title, words, text))
            texts.append((*row, *site, post_id, title, words, text, without_accents))
        return row

    def _counts(
        self, post: Document, table: Table, path: str, holder: Values, question_id: int
    ) -> None:
        counts = self._part(post, table.key, dict, path)
        if counts is None:
            return
        for name, count in counts.items():
            if type(count) is not int or not _LEAST <= count < _MOST:
                raise DocumentError(f"{path}{table.key}.{name}: is not an integer of 64 bits")
        rows = [(*holder, name, count, question_id) for name, count in counts.items()]
        self._rows.setdefault(table.key.lower(), []).extend(rows)

    def _nested(
        self, records: list[Document], path: str, table: Table, site: Values, post_id: int
    ) -> Iterator[tuple[list[Any], str | None]]:
        columns, users = _COLUMNS[table.key.lower()], tuple(table.users.values())
        for record in records:
            record = _object(record, path)  # noqa: PLW2901
            _require_id(record, f"{path}.")
            self._take_users(record, users, f"{path}.", site)
            self._belong(record, f"{path}.", "PostId", post_id)
            yield columns.values(record, f"{path}.")

    def _take_users(self, record: Document, keys: Iterable[str], path: str, site: Values) -> None:
        """Move the user objects of a record to the users table.

        A user whose id the record does not reference stays in the record.
        """
        for key in keys:
            user = record.get(key)
            if user is None:
                continue
            if not isinstance(user, dict):
                raise DocumentError(f"{path}{key}: is not an object")
            user_id = user.get("Id")
            if type(user_id) is not int or record.get(USERS[key]) != user_id:
                continue
            del record[key]
            names = tuple(user)
            self.tally.parts.add(key)
            if (*site, user_id, names) in self._users:
                continue
            values, other = _COLUMNS["users"].values(user, f"{path}{key}.")
            # A user object with only an id gets an empty `Other`; users only referenced get none.
            other = "{}" if other is None and values.count(None) == len(values) - 1 else other
            self._users[*site, user_id, names] = (*site, *values, other)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of documents from one source.

    Attributes:
        documents: The documents, parsed or as JSON.
        label: Name of the source in messages.
        unit: Word for a document in messages.
        first: The number of the first document.
        site_field: Column for the site; None in a database of one site.
        site: The site of documents that do not name one.
        search: Texts to index.
    """

    documents: list[Any]
    label: str
    unit: str
    first: int
    site_field: str | None
    site: str
    search: Search

    def document(self, place: int) -> Any:
        """Return the document at an index, parsed."""
        document = self.documents[place]
        if isinstance(document, bytes):
            return parse_document(document, self.label, self.first + place)
        return document

    def where(self, place: int) -> str:
        """Name the document at an index for a message."""
        return f"{self.label}: {self.unit} {self.first + place:,}"


class Made(NamedTuple):
    """The rows made from a batch of documents.

    Attributes:
        rows: Rows by table; packed if they come from another process.
        tally: Counts of the documents.
    """

    rows: dict[str, list[Values]] | bytes
    tally: Tally


def make_rows(batch: Batch) -> Made:
    """Make the rows of a batch of documents.

    Raises:
        OutputError: A document is not JSON, or does not fit the tables.
    """
    collection = TableRows(batch.site_field, batch.site, batch.search)
    for place in range(len(batch.documents)):
        try:
            collection.add(batch.document(place))
        except DocumentError as error:
            raise OutputError(f"{batch.where(place)}: {error}") from None
    return Made(collection.take(), collection.tally)


def make_packed_rows(batch: Batch) -> Made:
    """Make the rows of a batch of documents for another process."""
    made = make_rows(batch)
    return made._replace(rows=pack(made.rows))


def pack(rows: Any) -> bytes:
    """Pack rows for another process or a temporary file.

    `marshal` takes half the time of `pickle`, because it does not look for repeated objects.
    """
    return marshal.dumps(rows, 2)


def unpack(rows: Any) -> Any:
    """Return rows; unpack those that were packed."""
    return marshal.loads(rows) if isinstance(rows, bytes) else rows


def _object(value: object, what: str) -> Document:
    """Copy an object; raise `DocumentError` if the value is not one."""
    if not isinstance(value, dict):
        raise DocumentError(f"{what}: is not an object")
    return dict(value)


def _without_bodies(document: Document) -> bytes:
    """Return the JSON of a document with null instead of bodies, which are columns of posts."""
    answers = document.get(ANSWERS)
    if answers:
        document = {**document, ANSWERS: list(map(_without_body, answers))}
    return _as_json(_without_body(document), "the document").encode()


def _without_body(post: Document) -> Document:
    return {**post, "Body": None} if type(post.get("Body")) is str else post


def _as_json(value: object, path: str) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise DocumentError(f"{path}: cannot be represented as JSON ({error})") from None


def _require_id(record: Document, path: str) -> int:
    value = record.get("Id")
    if type(value) is not int:
        raise DocumentError(
            f"{path}Id: is missing or not an integer, but the tables need it; keep the fields Id, "
            "Answers.Id, Comments.Id and Links.Id when you convert"
        )
    return value


_compress = frame_compressor(_LEVEL)


def stored_documents(
    connection: sqlite3.Connection, question_id: int | None = None
) -> Iterator[Document]:
    """Read the documents of a site in ascending order of `Id`, or only one of them.

    On the connection, the names of tables must refer to the rows of the site; in a database of
    several sites, these names are temporary views.
    """
    sql = "SELECT Page, Position, Body FROM questions JOIN documents USING (Row)"
    where = "" if question_id is None else f" WHERE questions.Id = {question_id:d}"
    number, page = None, list[bytes]()
    for next_number, position, body in connection.execute(f"{sql}{where} ORDER BY questions.Id"):
        if next_number != number:
            number = next_number
            [packed] = connection.execute(
                f"SELECT Documents FROM {PAGES} WHERE Page = ?", (number,)
            ).fetchone()
            page = decompress(packed).split(b"\n")
        document: Document = orjson.loads(page[position])
        answers = document.get(ANSWERS) or ()
        of_answers = "SELECT Id, Body FROM answers WHERE ParentId = ?"
        bodies = dict(connection.execute(of_answers, (document["Id"],))) if answers else {}
        for post, stored in ((document, body), *((post, bodies[post["Id"]]) for post in answers)):
            if post.get("Body", "") is None:
                post["Body"] = stored
        yield document
