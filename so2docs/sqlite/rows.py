"""Documents -> rows of the tables, and rows -> the documents that they were made of."""

from __future__ import annotations

import pickle
import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from so2docs.counts import Counts, added_by
from so2docs.errors import OutputError
from so2docs.escape import strip_tags
from so2docs.options.choices import Search
from so2docs.reader.reading import parse_document
from so2docs.schema import (
    ANSWERS,
    OTHER,
    POST_PARTS,
    POSTS,
    VOTE_TYPES,
    Table,
)
from so2docs.sqlite.about import About, SiteAbout
from so2docs.sqlite.layout import (
    ADDED,
    INTEGERS,
    LAYOUTS,
    NESTED,
    Layout,
    name_column,
)

Row = tuple[Any, ...]
Document = dict[str, Any]
_KINDS: dict[type, str] = {list: "an array", dict: "an object"}

USERS = {key: by for table in (POSTS, *NESTED.values()) for by, key in table.users.items()}
"""Where a document holds a user, and which attribute of the same object has the user's id."""

OWNERS = tuple(POSTS.users.values())
"""Where a post holds users."""

USERS_DIFFER = "users: one Id has several values, of which the first comes back everywhere"

# The dump has bodies as the site's sanitizer left them: `<` occurs only before a tag. No pattern
# looks beyond the next one, so that the time is linear whatever else a body holds.
_CLOSING = re.compile(r"</(?:p|pre|code|a|li|em|strong)>")
_BLOCK = re.compile(
    r"</?(?:p|div|br|hr|li|[uod]l|d[td]|pre|blockquote|h[1-6]|t[dhr]|table)\b[^<>]*>"
)
_IMAGE = re.compile(r"<img\b((?:[^<>\"]|\"[^<\"]*+\")*+)>")
_ALT = re.compile(r"\balt=\"([^\"]*)\"")


def is_html(body: str) -> bool:
    """Whether a body is HTML, and not text or Markdown made of it."""
    return body.lstrip().startswith("<") or _CLOSING.search(body) is not None


def html_to_text(body: str) -> str:
    """The text of a body, for finding words: a quarter of the time that a parser of HTML takes.

    On well-formed bodies the words are those of `--body text`.
    """
    if not is_html(body):
        return body
    body = _IMAGE.sub(_alternative, body) if "<img" in body else body
    return strip_tags(_BLOCK.sub(" ", body))


def _alternative(image: re.Match[str]) -> str:
    """The text of an image; nothing where it has none."""
    alt = _ALT.search(image[1])
    return "" if alt is None else alt[1]


_LEAST, _MOST = -(1 << 63), 1 << 63


class DocumentError(OutputError):
    """A document holds what the tables cannot; the text names the key."""


def _keep_first(one: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    return more | one


@dataclass(slots=True)
class Tally(Counts):
    """What is counted of documents of one source, besides their rows.

    Attributes:
        numbered: Posts that have got a number, in a database of several sites.
        sites: Names of the sites that documents are from.
        losses: What does not come back the same.
        first_losses: For each of those, the number of the first document.
        holding: By path, how many objects hold it, or lack it where it starts with a hyphen.
        objects: By path with a dot at its end, how many objects are there.
        user_paths: Paths of the users that documents hold, and of their attributes.
    """

    numbered: int = 0
    sites: set[str] = field(default_factory=set)
    losses: Counter[str] = field(default_factory=Counter)
    first_losses: dict[str, int] = field(default_factory=dict, metadata=added_by(_keep_first))
    holding: Counter[str] = field(default_factory=Counter)
    objects: Counter[str] = field(default_factory=Counter)
    user_paths: set[str] = field(default_factory=set)

    def note(self, what: str, number: int) -> None:
        """Count a loss in a document."""
        self.losses[what] += 1
        self.first_losses.setdefault(what, number)

    @property
    def shape(self) -> set[str]:
        """Paths of the parts that documents of this source hold, such as `Answers.Comments`.

        Also `Owner`, and `-Answers.ParentId` for keys that they lack and that a row has.
        """
        return self.user_paths | set(self.holding)

    def lost(self) -> list[str]:
        """A line for each kind of thing that does not come back the same, of all documents."""
        lines = [
            f"{what} ({count:,} times, first in line {self.first_losses[what]:,})"
            for what, count in self.losses.items()
        ]
        for path, count in sorted(self.holding.items()):
            name = path.removeprefix("-")
            total = self.objects[name[: name.rfind(".") + 1]]
            if count < total:
                is_lack = name != path
                have = total - count if is_lack else count
                end = "left out of all" if is_lack else "comes back empty where it is missing"
                lines.append(f"{name}: in {have:,} of {total:,}; {end}")
        return lines


class _Columns:
    """The columns of one kind of object; what does not fit goes into `Other`."""

    def __init__(self, layout: Layout) -> None:
        self.names = layout.attributes
        self._kinds = tuple(int if name in INTEGERS else str for name in self.names)
        self._integers = [place for place, kind in enumerate(self._kinds) if kind is int]
        self._as_json = [self.names.index(name) for name in layout.as_json]
        self._fitting: set[tuple[type, ...]] = set()

    def values(self, record: Document, path: str) -> tuple[list[Any], str | None]:
        """The values of the columns, and `Other`.

        Raises:
            DocumentError: An integer has more than 64 bits, or a value cannot be written as JSON.
        """
        values = list(map(record.get, self.names))
        for place in self._as_json:
            if (value := values[place]) is not None:
                values[place] = _as_json(value, path + self.names[place])
        signature = tuple(map(type, values))
        is_whole = len(record) == len(values) - values.count(None)
        if is_whole and signature in self._fitting:
            for place in self._integers:
                if (value := values[place]) is not None and not _LEAST <= value < _MOST:
                    raise self._too_large(path, place)
            return values, None
        for place in self._integers:
            value = values[place]
            # A JSON number of more than 64 bits is read as a float.
            if (isinstance(value, int) and not _LEAST <= value < _MOST) or (
                isinstance(value, float) and abs(value) >= _MOST
            ):
                raise self._too_large(path, place)
        misfits = [
            place
            for place, (value, kind) in enumerate(zip(values, self._kinds, strict=True))
            if value is not None and type(value) is not kind
        ]
        if is_whole and not misfits:
            self._fitting.add(signature)
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


class TableRows:
    """Collects the rows of documents of one source; `take` hands them out.

    Attributes:
        tally: What is counted besides, since the last time.
    """

    def __init__(self, site_field: str | None, site: str | None, search: Search) -> None:
        """Make an empty collection.

        Args:
            site_field: Column for the site; None in a database of one site.
            site: The site, where documents do not tell.
            search: What words are to be found in.
        """
        self.tally = Tally()
        self._number = 0
        self._site_field, self._site, self._search = site_field, site, search
        self._columns = {name: _Columns(layout) for name, layout in LAYOUTS.items()}
        self._rows: dict[str, list[Row]] = {}
        self._users: dict[Row, tuple[Document, Row]] = {}
        self._user_shapes: set[Row] = set()

    def take(self) -> tuple[dict[str, list[Row]], Tally]:
        """The rows by table since the last time; posts of several sites are numbered from 1."""
        rows, self._rows = self._rows, {}
        if self._users:
            rows["users"] = [row for _, row in self._users.values()]
        tally, self.tally = self.tally, Tally()
        self._users, self._user_shapes = {}, set()
        return rows, tally

    def add(self, document: Document, number: int) -> None:
        """Make rows of a document, which messages call by its number.

        Raises:
            DocumentError: It holds what the tables cannot; what was added of it is to be discarded.
        """
        self._number = number
        question = _object(document, "a line")
        question_id = _require_id(question, "")
        site: Row = ()
        if self._site_field is not None:
            name = question.pop(self._site_field, self._site)
            if not isinstance(name, str):
                raise DocumentError(f"{self._site_field}: is not a string")
            site = (name,)
            self.tally.sites.add(name)
        answers = self._part(question, ANSWERS, list, "")
        self._post("questions", question, "", site, question_id, number=len(answers or ()))
        for position, answer in enumerate(answers or ()):
            path = f"{ANSWERS}."
            answer = _object(answer, ANSWERS)  # noqa: PLW2901
            _require_id(answer, path)
            self._belong(answer, path, "ParentId", question_id)
            self._post("answers", answer, path, site, question_id, number=position)

    def _part(self, record: Document, key: str, kind: type, prefix: str) -> Any:
        """Take a nested part out of an object; None if it is not there.

        Raises:
            DocumentError: It is neither of this kind nor null.
        """
        if key not in record:
            return None
        value = record.pop(key)
        if value is None:
            self.tally.note(f"{prefix}{key}: null comes back as if it were missing", self._number)
        elif isinstance(value, kind):
            self.tally.holding[prefix + key] += 1
            return value
        else:
            raise DocumentError(f"{prefix}{key}: is not {_KINDS[kind]}")
        return None

    def _belong(self, record: Document, path: str, key: str, post_id: int) -> None:
        """Make sure that a nested object names the post that it is in.

        Raises:
            DocumentError: It names another one.
        """
        self.tally.objects[path] += 1
        if key not in record:
            self.tally.holding[f"-{path}{key}"] += 1
            record[key] = post_id
        elif record[key] != post_id or type(record[key]) is not int:
            raise DocumentError(f"{path}{key}: is {record[key]!r} within post {post_id}")

    def _post(
        self,
        name: str,
        post: Document,
        path: str,
        site: Row,
        question_id: int,
        *,
        number: int,
    ) -> None:
        """Make rows of a post; `number` is how many answers it has, or its place among them."""
        post_id = post["Id"]
        if not path:
            self.tally.objects[path] += 1
        for key, table in NESTED.items():
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
        values, other = self._columns[name].values(post, path)
        row: Row = ()
        if site:
            self.tally.numbered += 1
            row = (self.tally.numbered,)
        self._rows.setdefault(name, []).append((*site, *values, number, other, *row))
        if self._search == "all" or (self._search == "titles" and name == "questions"):
            text = None
            if self._search == "all":
                body = post.get("Body")
                text = html_to_text(body) if isinstance(body, str) else ""
            words = None if tags is None else " ".join(map(str, tags))
            title = post.get("Title")
            title = title if isinstance(title, str) else None
            texts = self._rows.setdefault("texts", [])
            texts.append((*row, *site, post_id, title, words, text))

    def _counts(
        self, post: Document, table: Table, path: str, holder: Row, question_id: int
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
        self, records: list[Document], path: str, table: Table, site: Row, post_id: int
    ) -> Iterator[tuple[list[Any], str | None]]:
        columns, users = self._columns[table.key.lower()], tuple(table.users.values())
        last: list[tuple[int, Any]] = []
        for record in records:
            record = _object(record, path)  # noqa: PLW2901
            _require_id(record, f"{path}.")
            place = [_in_order(record.get(name)) for name in table.order]
            if place < last:
                self.tally.note(f"{path}: come back in ascending {table.order[0]}", self._number)
            last = place
            self._take_users(record, users, f"{path}.", site)
            self._belong(record, f"{path}.", "PostId", post_id)
            yield columns.values(record, f"{path}.")

    def _take_users(self, record: Document, keys: Iterable[str], path: str, site: Row) -> None:
        """Move users into rows of their own; one whose id the record lacks stays in `Other`."""
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
            if (path, key, names) not in self._user_shapes:
                self._user_shapes.add((path, key, names))
                self.tally.user_paths.update(
                    (path + key, *(f"{path}{key}.{name}" for name in names))
                )
            earlier = self._users.get((*site, user_id, names))
            if earlier is not None:
                if earlier[0] != user:
                    self.tally.note(USERS_DIFFER, self._number)
                continue
            values, other = self._columns["users"].values(user, f"{path}{key}.")
            # A row with only an id is a user that other rows refer to.
            other = "{}" if other is None and values.count(None) == len(values) - 1 else other
            self._users[*site, user_id, names] = (user, (*site, *values, other))


@dataclass(frozen=True, slots=True)
class Batch:
    """Some documents of a source, to make rows of.

    Attributes:
        documents: They, or their JSON.
        label: What messages call the source.
        unit: What they call a document.
        first: The number of the first document.
        site_field: Column for the site; None in a database of one site.
        site: The site, where documents do not tell.
        search: What words are to be found in.
    """

    documents: list[Any]
    label: str
    unit: str
    first: int
    site_field: str | None
    site: str
    search: Search

    def document(self, place: int) -> Any:
        """A document, by its place among these."""
        document = self.documents[place]
        if isinstance(document, bytes):
            return parse_document(document, self.label, self.first + place)
        return document

    def where(self, place: int) -> str:
        """What messages call the document at a place."""
        return f"{self.label}: {self.unit} {self.first + place:,}"


class Made(NamedTuple):
    """What is made of a batch.

    Attributes:
        rows: Rows by table, but for those of the texts.
        texts: These, pickled: two processes take them, and one of them only passes them on.
        tally: What is counted besides.
    """

    rows: dict[str, list[Row]]
    texts: bytes
    tally: Tally


_collections: dict[Any, TableRows] = {}


def make_rows(batch: Batch) -> Made:
    """Make rows of some documents.

    Raises:
        OutputError: One is not JSON, or holds what the tables cannot.
    """
    key = batch.site_field, batch.site, batch.search
    collection = _collections.pop(key, None) or TableRows(*key)
    for place in range(len(batch.documents)):
        document = batch.document(place)
        try:
            collection.add(document, batch.first + place)
        except DocumentError as error:
            raise OutputError(f"{batch.where(place)}: {error}") from None
    rows, tally = collection.take()
    _collections.clear()
    _collections[key] = collection
    texts = rows.pop("texts", [])
    return Made(rows, pickle.dumps(texts, pickle.HIGHEST_PROTOCOL) if texts else b"", tally)


def _object(value: object, what: str) -> Document:
    """A copy of an object."""
    if not isinstance(value, dict):
        raise DocumentError(f"{what}: is not an object")
    return dict(value)


def _as_json(value: object, path: str) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError as error:
        raise DocumentError(f"{path}: cannot be represented as JSON ({error})") from None


def _in_order(value: Any) -> tuple[int, Any]:
    """The sort key of a value in SQLite."""
    kind = {int: 1, str: 2}.get(type(value), 0)
    return kind, value if kind else 0


def _require_id(record: Document, path: str) -> int:
    value = record.get("Id")
    if type(value) is not int:
        raise DocumentError(
            f"{path}Id: is missing or not an integer, and the tables need it; keep the fields Id, "
            "Answers.Id, Comments.Id and Links.Id when you convert"
        )
    return value


_KEYS = tuple(dict.fromkeys(part.key for part in POST_PARTS))
_NUMBER_OF_VOTE = {name: number for number, name in VOTE_TYPES.items()}
_MOST_VALUES = 500


class RebuiltDocuments:
    """The documents of one site in a database.

    The connection has the tables of the site under their names: in a database of several sites,
    temporary views of them.
    """

    def __init__(self, connection: sqlite3.Connection, about: About, site: SiteAbout) -> None:
        self._connection, self._shape = connection, site.shape
        self._site = {} if about.site_field is None else {about.site_field: site.name}
        self._columns = {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            for name in LAYOUTS
        }

    def get(
        self,
        question_id: int,
        answer_ids: list[int] | None = None,
        without: Collection[str] = (),
    ) -> Document | None:
        """Rebuild the document of a question; None if it does not exist.

        Args:
            question_id: Its id.
            answer_ids: Answers that it is to have, in this order; all of them if None.
            without: Keys of tables that are not read; its posts have them empty.
        """
        matches = self._select("questions", "Id", [question_id])
        if not matches:
            return None
        document = self._record("questions", matches[0])
        if answer_ids is None:
            rows = self._select("answers", "ParentId", [question_id], "ORDER BY Position")
        else:
            by_id = {row["Id"]: row for row in self._select("answers", "Id", answer_ids)}
            rows = [by_id[answer_id] for answer_id in answer_ids if answer_id in by_id]
        answers = [self._record("answers", row) for row in rows]
        self._nest(document, answers, without)
        document |= self._site
        if "Answers" in self._shape:
            document["Answers"] = answers
        return document

    def __iter__(self) -> Iterator[Document]:
        for (question_id,) in self._connection.execute("SELECT Id FROM questions ORDER BY Id"):
            document = self.get(question_id)
            assert document is not None
            yield document

    def _nest(self, question: Document, answers: list[Document], without: Collection[str]) -> None:
        posts = [("", question), *(("Answers.", answer) for answer in answers)]
        ids = [post["Id"] for _, post in posts]
        nested = {
            key: self._by_post(table, ids)
            if self._columns[key.lower()] and key not in without
            else {}
            for key, table in NESTED.items()
        }
        rows = [
            row
            for key, by_post in nested.items()
            if NESTED[key].users
            for of_post in by_post.values()
            for row in of_post
        ]
        users = self._users(posts, rows)
        for path, post in posts:
            post_id = post["Id"]
            if f"-{path}ParentId" in self._shape:
                del post["ParentId"]
            for key, table in NESTED.items():
                if path + key not in self._shape:
                    continue
                of_post = nested[key].get(post_id, [])
                if table.shape == "counts":
                    post[key] = _counts(of_post, name_column(table))
                else:
                    post[key] = [self._nested(row, path + key, table, users) for row in of_post]
            self._name_users(post, path, OWNERS, users)
            if not post.keys().isdisjoint(ADDED):  # They come with the attributes.
                for key in _KEYS:
                    if key in post:
                        post[key] = post.pop(key)

    def _nested(
        self, row: Document, path: str, table: Table, users: dict[int, Document]
    ) -> Document:
        if f"-{path}.PostId" in self._shape:
            del row["PostId"]
        self._name_users(row, f"{path}.", table.users.values(), users)
        return row

    def _name_users(
        self, record: Document, path: str, keys: Iterable[str], users: dict[int, Document]
    ) -> None:
        for key in keys:
            user = users.get(record.get(USERS[key], ""))
            if user is not None and path + key in self._shape:
                names = (name for name in user if f"{path}{key}.{name}" in self._shape)
                record[key] = {name: user[name] for name in names}

    def _users(
        self, posts: list[tuple[str, Document]], rows: list[Document]
    ) -> dict[int, Document]:
        if not self._columns["users"]:
            return {}
        user_ids = {
            record[attribute]
            for record in (*(post for _, post in posts), *rows)
            for attribute in USERS.values()
            if attribute in record
        }
        # Who is in the table only because somebody refers to them has nothing but an id.
        return {
            row["Id"]: self._record("users", row)
            for row in self._select("users", "Id", sorted(user_ids))
            if not row.keys().isdisjoint(LAYOUTS["users"].columns[1:])
        }

    def _by_post(self, table: Table, post_ids: list[int]) -> dict[int, list[Document]]:
        records: dict[int, list[Document]] = defaultdict(list)
        order = "" if table.shape == "counts" else f"ORDER BY {', '.join(table.order)}"
        name = table.key.lower()
        for row in self._select(name, "PostId", post_ids, order):
            records[row["PostId"]].append(self._record(name, row))
        return records

    def _select(
        self, table: str, column: str, values: list[int], order: str = ""
    ) -> list[Document]:
        """Rows as dictionaries of what is not null."""
        names = self._columns[table]
        records: list[Document] = []
        for start in range(0, len(values), _MOST_VALUES):
            some = values[start : start + _MOST_VALUES]
            marks = ",".join("?" * len(some))
            for row in self._connection.execute(
                f"SELECT * FROM {table} WHERE {column} IN ({marks}) {order}", some
            ):
                pairs = zip(names, row, strict=True)
                records.append({name: value for name, value in pairs if value is not None})
        return records

    def _record(self, table: str, row: Document) -> Document:
        """The object that a row was made of, in the order of the dump's attributes."""
        other: Document = orjson.loads(row.get(OTHER, "{}"))
        layout = LAYOUTS[table]
        record: Document = {name: row[name] for name in layout.attributes if name in row}
        for name in layout.as_json:
            if name in record:
                record[name] = orjson.loads(record[name])
        return record | other


def _counts(rows: list[Document], column: str) -> Document:
    """Counts by name, votes in the order of their types."""
    ordered = sorted(rows, key=lambda row: _vote_order(row[column]))
    return {row[column]: row["Count"] for row in ordered}


def _vote_order(vote_type: str) -> int:
    number = _NUMBER_OF_VOTE.get(vote_type)
    return number if number is not None else int(vote_type) if vote_type.isdigit() else 1 << 62
