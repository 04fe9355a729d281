"""What workers find in the chunks of a dump, and the equalities that hold inside every dump.

What is known of an id is kept in files that are mapped into memory, so that the system can take the
memory back: 110 bytes a post for all of it. Numbers travel in arrays.
"""

from __future__ import annotations

import mmap
import os
import re
import tempfile
import zlib
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import add, xor
from typing import Literal, TypeVar

from so2docs.counts import LEAST, MOST, Counts, added_by
from so2docs.domain import FIRST_FABRICATED_ID
from so2docs.dump.dump import Chunk, slices
from so2docs.parse import posts, rows
from so2docs.parse.rows import Row

Pairs = dict[str, tuple["array[int]", "array[int]"]]

_DATES = ("CreationDate", "LastEditDate", "LastActivityDate", "ClosedDate", "Date")
_REVISIONS = frozenset({*"123456789", "24"})
"""Title, body and tags: first ones, edited, rolled back, or edited as somebody suggested. The
`LastEditDate` of the wiki of a tag can be that of its first ones."""

_CLOSED, _REOPENED, _INITIAL_BODY = "10", "11", "2"
_QUESTION_TYPE, _ANSWER_TYPE = "1", "2"
_TEXT_OF_TYPE = {
    **dict.fromkeys("147", "title"),
    **dict.fromkeys("258", "body"),
    **dict.fromkeys("369", "tags"),
}
"""Which text of a post a type of events holds."""

_HTML = re.compile(r"<a\b.{0,2000}?</a>|<[^<>]*>|\[[^\[\]]*\]|https?://\S*|&#?\w+;", re.DOTALL)
_MARKDOWN = re.compile(
    r"""
      ^[ ]{0,3}\[[^\]\n]+\]:[ \t]*\S+[^\n]*$  # The address of a link.
    | !?\[(?:[^\[\]]|!?\[[^\[\]]*\](?:\([^()]*\))?)*\]
      (?:\((?:[^()]|\([^()]*\))*\)|\s?\[[^\[\]]*\])?
    | <a\b.{0,2000}?</a> | <[a-zA-Z/!][^<>]*> | https?://[^\s<>]* | &\#?\w+;
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGITS = str.maketrans("", "", "-T:.")
_DATE_DIGITS = 17


def _keep_first(one: object, more: object) -> object:
    return more if one is None else one


def _keep_last(one: object, more: object) -> object:
    return one if more is None else more


def _keep_own(one: object, more: object) -> object:
    return one


@dataclass(slots=True, kw_only=True)
class RowFacts(Counts):
    """Facts about some rows of a table.

    Attributes:
        rows: Number of rows.
        first_date: The earliest date of any row that the publisher did not make up.
        last_date: The latest one.
        descents: Rows whose `Id` is not above that of the row before.
        first_descent: `Id` of the first of them.
        made_up: Rows that the publisher made up, by their ids.
        with_licence: Rows that name a licence.
        malformed: Rows that are not XML.
        repaired: Characters that XML or the encoding forbids.
    """

    rows: int = 0
    first_date: str = field(default="", metadata=LEAST)
    last_date: str = field(default="", metadata=MOST)
    descents: int = 0
    first_descent: int | None = field(default=None, metadata=added_by(_keep_first))
    made_up: int = 0
    with_licence: int = 0
    malformed: int = 0
    repaired: int = 0


@dataclass(slots=True, kw_only=True)
class ChunkFacts(RowFacts):
    """Facts about the rows of a chunk, or of all chunks so far.

    Attributes:
        first_id: `Id` of the first row that has one.
        last_id: `Id` of the last one.
        pairs: What the audit compares, of one chunk: ids, and a value for each.
        tags: Rows of one chunk, or what they declare, by the name of a tag.
    """

    first_id: int | None = field(default=None, metadata=added_by(_keep_first))
    last_id: int | None = field(default=None, metadata=added_by(_keep_last))
    pairs: Pairs = field(default_factory=dict, metadata=added_by(_keep_own))
    tags: Counter[str] = field(default_factory=Counter, metadata=added_by(_keep_own))

    def check_order(self, row_id: int | None) -> None:
        """Compare the `Id` of the next row with the last one."""
        if row_id is not None and self.last_id is not None and row_id <= self.last_id:
            self.descents += 1
            self.first_descent = row_id if self.first_descent is None else self.first_descent

    def add_rows(self, part: Iterable[Row]) -> None:
        """Count rows: ids, dates, licences."""
        for row in part:
            self.rows += 1
            self.with_licence += "ContentLicense" in row
            row_id = _number(row.get("Id"))
            is_made_up = row_id is not None and row_id >= FIRST_FABRICATED_ID
            if row_id is not None:
                self.check_order(row_id)
                self.first_id = row_id if self.first_id is None else self.first_id
                self.last_id = row_id
                self.made_up += is_made_up
            dates = () if is_made_up else [row[name] for name in _DATES if name in row]
            if dates:
                self.first_date = min(self.first_date or dates[0], *dates)
                self.last_date = max(self.last_date, *dates)

    def pair(self, name: str, key: int, value: int) -> None:
        """Note a value of an id."""
        if name not in self.pairs:
            self.pairs[name] = array("q"), array("q")
        keys, values = self.pairs[name]
        keys.append(key)
        values.append(value)


def look(task: tuple[str, Chunk]) -> tuple[Chunk, ChunkFacts]:
    """Look at a chunk of a table.

    Args:
        task: Name of the table, and the chunk.

    Raises:
        ChangedDumpError: The dump is not what it was.
    """
    table, (_, dump, start, end) = task
    facts, collect = ChunkFacts(), _COLLECTORS.get(table)
    for _, data in slices(dump, start, end):
        for part in rows.parse(data):
            if isinstance(part, rows.Malformed):
                facts.malformed += 1
                continue
            facts.repaired += part.repaired
            facts.add_rows(part.rows)
            if collect is not None:
                for row in part.rows:
                    collect(facts, row)
    return task[1], facts


def _number(text: str | None) -> int | None:
    """A number of a row that fits an id; None if it is not one."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 12
    return int(text) if is_number and text else None


def _date(text: str | None) -> int:
    """Convert a date to a number with the same digits; 0 without a date."""
    digits = (text or "").translate(_DIGITS)[:_DATE_DIGITS]
    if not (digits.isascii() and digits.isdigit()):
        return 0
    return int(digits.ljust(_DATE_DIGITS, "0"))


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _hash_tags(text: str) -> int:
    return _hash("\n".join(sorted(posts.tags(text))))


def _hash_words(text: str, left_out: re.Pattern[str]) -> int:
    """The letters of a body, without those of links, of which the site changes some, and digits."""
    return _hash("".join(_LETTERS.findall(left_out.sub(" ", text))).lower())


def _hash_text(name: str, text: str) -> int:
    """The title, the tags or the body of a post in its history."""
    if name == "body":
        return _hash_words(text, _MARKDOWN)
    return _hash_tags(text) if name == "tags" else _hash(text)


def _collect_post(facts: ChunkFacts, row: Row) -> None:
    post_id, kind = _number(row.get("Id")), row.get("PostTypeId", "")
    if post_id is None:
        return
    facts.pair("kind", post_id, int(kind) if kind in (_QUESTION_TYPE, _ANSWER_TYPE) else 3)
    facts.pair("created", post_id, _date(row.get("CreationDate")))
    facts.pair("comments", post_id, _number(row.get("CommentCount")) or 0)
    facts.pair("owner", post_id, _hash(row.get("OwnerUserId", "")))
    facts.pair("body", post_id, _hash_words(row.get("Body", ""), _HTML))
    if "LastEditDate" in row:
        facts.pair("edited", post_id, _date(row["LastEditDate"]))
    if kind == _ANSWER_TYPE and (parent := _number(row.get("ParentId"))) is not None:
        facts.pair("parent", post_id, parent)
        facts.pair("answers", parent, -1)
    if kind != _QUESTION_TYPE:
        return
    facts.pair("title", post_id, _hash(row.get("Title", "")))
    facts.pair("tags", post_id, _hash_tags(row.get("Tags", "")))
    facts.pair("answers", post_id, _number(row.get("AnswerCount")) or 0)
    if "ClosedDate" in row:
        facts.pair("closed", post_id, 1)
    if (answer := _number(row.get("AcceptedAnswerId"))) is not None:
        facts.pair("accepted", post_id, answer)
    facts.tags.update(posts.tags(row.get("Tags", "")))


def _collect_comment(facts: ChunkFacts, row: Row) -> None:
    if (post_id := _number(row.get("PostId"))) is not None:
        facts.pair("comments", post_id, -1)


def _collect_history(facts: ChunkFacts, row: Row) -> None:
    post_id, kind = _number(row.get("PostId")), row.get("PostHistoryTypeId", "")
    if post_id is None:
        return
    date = _date(row.get("CreationDate"))
    if kind in _REVISIONS:
        facts.pair("last revision", post_id, date)
    if name := _TEXT_OF_TYPE.get(kind):
        facts.pair(f"date of {name}", post_id, date)
        facts.pair(f"last {name}", post_id, _hash_text(name, row.get("Text", "")))
    if kind == _INITIAL_BODY:
        facts.pair("created", post_id, date)
        facts.pair("owner", post_id, _hash(row.get("UserId", "")))
    elif kind in (_CLOSED, _REOPENED):
        facts.pair("closing", post_id, date << 1 | (kind == _CLOSED))


def _collect_tag(facts: ChunkFacts, row: Row) -> None:
    if name := row.get("TagName"):
        facts.tags[name] += _number(row.get("Count")) or 0


_COLLECTORS = {
    "posts": _collect_post,
    "comments": _collect_comment,
    "posthistory": _collect_history,
    "tags": _collect_tag,
}


_QUESTION, _ANSWER, _OTHER = 1, 2, 3
_EXAMPLES = 5
_FIRST_IDS = 1 << 16
_AT_ONCE = 1 << 12
_TEXTS = ("title", "tags", "body")

_Form = Literal["b", "i", "I", "q"]
_Change = Callable[[int, int], int]


def _set(before: int, value: int) -> int:
    return value


_COLLECTED: dict[str, tuple[_Form, _Change]] = {
    **dict.fromkeys(("kind", "closed"), ("b", _set)),
    **dict.fromkeys(("parent", "accepted", "edited"), ("q", _set)),
    **dict.fromkeys(_TEXTS, ("I", _set)),
    # What is declared less what there is: 0 is left.
    **dict.fromkeys(("answers", "comments"), ("i", add)),
    # What two rows have, as in the post and in its first revision: 0 is left of the same twice.
    "created": ("q", xor),
    "owner": ("I", xor),
    # Ids are not in the order of dates after a migration.
    **dict.fromkeys(("last revision", "closing"), ("q", max)),
}
"""Numbers of posts: the form of each, and how a value changes it."""

_LAST_TEXTS = {text: (f"date of {text}", f"last {text}") for text in _TEXTS}
"""Date and hash of the newest revision of each text."""


@dataclass(frozen=True, slots=True)
class Check:
    """An equality that was held against the rows.

    Attributes:
        name: What should hold.
        checked: Rows that it is about.
        differ: Those for which it does not hold.
        examples: The first ids of those, or the names of tags.
    """

    name: str
    checked: int
    differ: int
    examples: tuple[int | str, ...]


class ById:
    """A number for each id, 0 at first."""

    def __init__(self, folder: str, form: _Form) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._form, self._width = form, array(form).itemsize
        self._map: mmap.mmap | None = None
        self._grow(_FIRST_IDS)

    def _grow(self, ids: int) -> None:
        self._close_view()
        os.ftruncate(self._file.fileno(), ids * self._width)
        self._map = mmap.mmap(self._file.fileno(), ids * self._width)
        self.values = memoryview(self._map).cast("B").cast(self._form)

    def _close_view(self) -> None:
        if self._map is not None:
            self.values.release()
            self._map.close()
            self._map = None

    def close(self) -> None:
        """Remove the file."""
        self._close_view()
        self._file.close()

    def reserve(self, keys: Iterable[int]) -> None:
        """Make room for some ids."""
        highest = max((key for key in keys if key < FIRST_FABRICATED_ID), default=0)
        if highest >= len(self.values):
            self._grow(max(highest + 1, 2 * len(self.values)))

    def update(self, keys: Iterable[int], values: Iterable[int], change: _Change) -> None:
        """Change the numbers of some ids, each by a value."""
        self.reserve(keys)
        numbers = self.values
        for key, value in zip(keys, values, strict=True):
            if key < FIRST_FABRICATED_ID:
                numbers[key] = change(numbers[key], value)

    def __getitem__(self, key: int) -> int:
        return self.values[key] if key < len(self.values) else 0

    def nonzero_ids(self) -> Iterator[int]:
        """Ids whose number is not 0, in ascending order."""
        size = _AT_ONCE * self._width
        blank = bytes(size)
        raw = self.values.cast("B")
        for start in range(0, len(self.values), _AT_ONCE):
            at = start * self._width
            if raw[at : at + size] != blank[: len(raw) - at]:
                end = min(start + _AT_ONCE, len(self.values))
                yield from (key for key in range(start, end) if self.values[key])
        raw.release()


class Audit:
    """Compares what rows declare with the rows that there are."""

    def __init__(self, folder: str) -> None:
        forms = {name: form for name, (form, _) in _COLLECTED.items()}
        for date, text in _LAST_TEXTS.values():
            forms |= {date: "q", text: "I"}
        self._by_id = {name: ById(folder, form) for name, form in forms.items()}
        self._tags: Counter[str] = Counter()
        self._declared_tags: Counter[str] = Counter()
        self._tables: set[str] = set()

    def close(self) -> None:
        """Remove the files."""
        for numbers in self._by_id.values():
            numbers.close()

    def add(self, table: str, facts: ChunkFacts) -> None:
        """Add a chunk of a table; the chunks of a table come in their order."""
        self._tables.add(table)
        (self._declared_tags if table == "tags" else self._tags).update(facts.tags)
        for name, (_, change) in _COLLECTED.items():
            if name in facts.pairs:
                self._by_id[name].update(*facts.pairs[name], change)
        for names in _LAST_TEXTS.values():
            if names[0] in facts.pairs:
                self._update_last(*names, facts.pairs)

    def _update_last(self, date_name: str, text_name: str, pairs: Pairs) -> None:
        """Keep the newest text of each post; of those with one date, that of the last row."""
        (keys, dates), (_, hashes) = pairs[date_name], pairs[text_name]
        newest, last = self._by_id[date_name], self._by_id[text_name]
        newest.reserve(keys)
        last.reserve(keys)
        for key, date, value in zip(keys, dates, hashes, strict=True):
            if key < FIRST_FABRICATED_ID and date >= newest.values[key]:
                newest.values[key], last.values[key] = date, value

    def checks(self) -> list[Check]:
        """The checks that the read tables allow, with their results."""
        if "posts" not in self._tables:
            return []
        numbers = self._by_id
        accepted, parent, edited = numbers["accepted"], numbers["parent"], numbers["edited"]
        checks = [
            self._check_zero("AnswerCount is the number of answers", "answers", {_QUESTION}),
            _check(
                "AcceptedAnswerId is an answer to the question",
                accepted.nonzero_ids(),
                lambda key: parent[accepted[key]] != key,
            ),
        ]
        if "comments" in self._tables:
            every = {_QUESTION, _ANSWER, _OTHER}
            checks.append(
                self._check_zero("CommentCount is the number of comments", "comments", every)
            )
        if "tags" in self._tables:
            checks.append(
                _check(
                    "Count of a tag is the number of questions with it",
                    sorted(self._tags.keys() | self._declared_tags.keys()),
                    lambda name: self._tags[name] != self._declared_tags[name],
                )
            )
        if "posthistory" in self._tables:
            last, closing, closed = (
                numbers[name] for name in ("last revision", "closing", "closed")
            )
            both = {_QUESTION, _ANSWER}
            questions = {key for key in closing.nonzero_ids() if numbers["kind"][key] == _QUESTION}
            checks += [
                self._check_zero("a first revision has the date of its post", "created", both),
                self._check_zero("a first revision has the owner of its post", "owner", both),
                self._check_text("Title is that of the last revision", "title", {_QUESTION}),
                self._check_text("Tags are those of the last revision", "tags", {_QUESTION}),
                self._check_text("the words of Body are those of the last revision", "body", both),
                _check(
                    "LastEditDate is not after the last revision",
                    edited.nonzero_ids(),
                    lambda key: edited[key] > last[key],
                ),
                _check(
                    "ClosedDate is there where the history ends closed",
                    sorted(questions.union(closed.nonzero_ids())),
                    lambda key: closing[key] & 1 != closed[key],
                ),
            ]
        return checks

    def _check_zero(self, name: str, number: str, kinds: set[int]) -> Check:
        """Check that a number of posts of some kinds is 0."""
        numbers = self._by_id[number]
        return _check(name, self._posts(kinds), lambda key: numbers[key] != 0)

    def _check_text(self, name: str, text: str, kinds: set[int]) -> Check:
        """Check that posts of some kinds have the newest text of their history."""
        own, last = self._by_id[text], self._by_id[f"last {text}"]
        return _check(name, self._posts(kinds), lambda key: own[key] != last[key])

    def _posts(self, kinds: set[int]) -> Iterator[int]:
        kind = self._by_id["kind"]
        return (key for key in kind.nonzero_ids() if kind[key] in kinds)


_Key = TypeVar("_Key", int, str)


def _check(name: str, keys: Iterable[_Key], differs: Callable[[_Key], bool]) -> Check:
    """Check ids or names one by one."""
    checked, differ, examples = 0, 0, list[_Key]()
    for key in keys:
        checked += 1
        if differs(key):
            differ += 1
            if len(examples) < _EXAMPLES:
                examples.append(key)
    return Check(name, checked, differ, tuple(examples))
