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
from typing import Literal

from so2docs.domain import FIRST_FABRICATED_ID
from so2docs.dump.dump import Chunk, slices
from so2docs.parse import rows
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


@dataclass(slots=True)
class RowFacts:
    """Facts about some rows of a table.

    Attributes:
        rows: Their number.
        malformed: Those that are not XML.
        repaired: Characters that XML forbids.
        first_date: The earliest date of any.
        last_date: The latest one.
        first_id: `Id` of the first row; None if it has none.
        last_id: `Id` of the last row.
        descents: Rows whose `Id` is not above that of the row before.
        descent: The first of them.
        made_up: Rows with an `Id` that the publisher made up.
        licence: Rows that name a licence.
        pairs: What the audit compares: ids, and a value for each.
        counts: Rows, or what they declare, by the name of a tag.
    """

    rows: int = 0
    malformed: int = 0
    repaired: int = 0
    first_date: str = ""
    last_date: str = ""
    first_id: int | None = None
    last_id: int | None = None
    descents: int = 0
    descent: int | None = None
    made_up: int = 0
    licence: int = 0
    pairs: Pairs = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, other: RowFacts) -> None:
        """Add the rows that follow; pairs stay with them."""
        if self.last_id is not None and other.first_id is not None:
            self._order(other.first_id)
        self.rows += other.rows
        self.malformed += other.malformed
        self.repaired += other.repaired
        self.made_up += other.made_up
        self.licence += other.licence
        self.descents += other.descents
        if self.descent is None:
            self.descent = other.descent
        self._extend(other.first_date, other.last_date)
        self.first_id = other.first_id if self.first_id is None else self.first_id
        self.last_id = self.last_id if other.last_id is None else other.last_id
        self.counts.update(other.counts)

    def _order(self, row_id: int) -> None:
        if self.last_id is not None and row_id <= self.last_id:
            self.descents += 1
            self.descent = row_id if self.descent is None else self.descent

    def _extend(self, first: str, last: str) -> None:
        if first:
            self.first_date = min(self.first_date or first, first)
            self.last_date = max(self.last_date, last)

    def add_rows(self, part: Iterable[Row]) -> None:
        """Count rows: ids, dates, licences."""
        for row in part:
            self.rows += 1
            self.licence += "ContentLicense" in row
            row_id = _number(row.get("Id"))
            is_made_up = row_id is not None and row_id >= FIRST_FABRICATED_ID
            if row_id is not None:
                self._order(row_id)
                self.first_id = row_id if self.first_id is None else self.first_id
                self.last_id = row_id
                self.made_up += is_made_up
            if not is_made_up:
                dates = [row[name] for name in _DATES if name in row]
                self._extend(min(dates, default=""), max(dates, default=""))

    def pair(self, name: str, key: int, value: int) -> None:
        """Note a value of an id."""
        if name not in self.pairs:
            self.pairs[name] = array("q"), array("q")
        keys, values = self.pairs[name]
        keys.append(key)
        values.append(value)


def look(task: tuple[str, Chunk]) -> tuple[Chunk, RowFacts]:
    """Look at a chunk of a table.

    Args:
        task: Name of the table, and the chunk.

    Raises:
        ChangedDumpError: The dump is not what it was.
    """
    table, (_, dump, start, end) = task
    facts, collect = RowFacts(), _COLLECTORS.get(table)
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


def split_tags(text: str) -> list[str]:
    """The tags of a question, in the notation of any year: `<a><b>` or `|a|b|`."""
    return text[1:-1].split("><") if text.startswith("<") else text.strip("|").split("|")


def _hash(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def _hash_tags(text: str) -> int:
    return _hash("\n".join(sorted(split_tags(text))))


def _hash_words(text: str, left_out: re.Pattern[str]) -> int:
    """The letters of a body, without those of links, of which the site changes some, and digits."""
    return _hash("".join(_LETTERS.findall(left_out.sub(" ", text))).lower())


def _hash_text(name: str, text: str) -> int:
    """The title, the tags or the body of a post in its history."""
    if name == "body":
        return _hash_words(text, _MARKDOWN)
    return _hash_tags(text) if name == "tags" else _hash(text)


def _collect_post(facts: RowFacts, row: Row) -> None:
    post_id, kind = _number(row.get("Id")), row.get("PostTypeId", "")
    if post_id is None:
        return
    facts.pair("kind", post_id, int(kind) if kind in (_QUESTION_TYPE, _ANSWER_TYPE) else 3)
    facts.pair("created", post_id, _date(row.get("CreationDate")))
    facts.pair("comments declared", post_id, _number(row.get("CommentCount")) or 0)
    facts.pair("owner", post_id, _hash(row.get("OwnerUserId", "")))
    facts.pair("body", post_id, _hash_words(row.get("Body", ""), _HTML))
    if "LastEditDate" in row:
        facts.pair("edited", post_id, _date(row["LastEditDate"]))
    if kind == _ANSWER_TYPE and (parent := _number(row.get("ParentId"))) is not None:
        facts.pair("parent", post_id, parent)
    if kind != _QUESTION_TYPE:
        return
    facts.pair("title", post_id, _hash(row.get("Title", "")))
    facts.pair("tags", post_id, _hash_tags(row.get("Tags", "")))
    facts.pair("answers declared", post_id, _number(row.get("AnswerCount")) or 0)
    if "ClosedDate" in row:
        facts.pair("closed", post_id, 1)
    if (answer := _number(row.get("AcceptedAnswerId"))) is not None:
        facts.pair("accepted", post_id, answer)
    if tags := row.get("Tags"):
        facts.counts.update(split_tags(tags))


def _collect_comment(facts: RowFacts, row: Row) -> None:
    if (post_id := _number(row.get("PostId"))) is not None:
        facts.pair("comment", post_id, 1)


def _collect_history(facts: RowFacts, row: Row) -> None:
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
        facts.pair("first revision", post_id, date)
        facts.pair("first owner", post_id, _hash(row.get("UserId", "")))
    elif kind in (_CLOSED, _REOPENED):
        facts.pair("closing", post_id, date << 1 | (kind == _CLOSED))


def _collect_tag(facts: RowFacts, row: Row) -> None:
    if name := row.get("TagName"):
        facts.counts[name] += _number(row.get("Count")) or 0


_COLLECTORS = {
    "posts": _collect_post,
    "comments": _collect_comment,
    "posthistory": _collect_history,
    "tags": _collect_tag,
}


_QUESTION, _ANSWER = 1, 2
_EXAMPLES = 5
_FIRST_IDS = 1 << 16
_AT_ONCE = 1 << 12
_TEXTS = ("title", "tags", "body")

_Form = Literal["b", "i", "I", "q"]


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
        self._form, self._width = form, {"b": 1, "i": 4, "I": 4, "q": 8}[form]
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

    def update(
        self, facts: RowFacts, name: str, change: Callable[[int, int], int], sign: int = 1
    ) -> None:
        """Change the numbers of the ids of a chunk.

        Args:
            facts: What was found in it.
            name: Which of its pairs.
            change: The number that was there, and the value of the pair -> the number.
            sign: What values are multiplied by.
        """
        keys, values = facts.pairs.get(name, ((), ()))
        self.reserve(keys)
        there = self.values
        for key, value in zip(keys, values, strict=True):
            if key < FIRST_FABRICATED_ID:
                there[key] = change(there[key], sign * value)

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


def _add(before: int, value: int) -> int:
    return before + value


def _set(before: int, value: int) -> int:
    return value


_FORMS: dict[str, _Form] = {
    "kind": "b",
    "closed": "b",
    "answers": "i",
    "comments": "i",
    "parent": "q",
    "accepted": "q",
    "created": "q",
    "edited": "q",
    "last revision": "q",
    "closing": "q",
    "owner": "I",
    **dict.fromkeys(("title", "tags", "body", "last title", "last tags", "last body"), "I"),
    **dict.fromkeys(("date of title", "date of tags", "date of body"), "q"),
}


class Audit:
    """Compares what rows declare with the rows that there are."""

    def __init__(self, folder: str) -> None:
        self._by_id = {name: ById(folder, form) for name, form in _FORMS.items()}
        self._tags: Counter[str] = Counter()
        self._declared_tags: Counter[str] = Counter()
        self._tables: set[str] = set()

    def close(self) -> None:
        """Remove the files."""
        for numbers in self._by_id.values():
            numbers.close()

    def add(self, table: str, facts: RowFacts) -> None:
        """Add a chunk of a table; the chunks of a table come in their order."""
        self._tables.add(table)
        values = self._by_id
        if table == "posts":
            for name in ("kind", "closed", "parent", "accepted", "edited", *_TEXTS):
                values[name].update(facts, name, _set)
            # Both dates are the same: what is left is 0.
            values["created"].update(facts, "created", int.__xor__)
            values["owner"].update(facts, "owner", int.__xor__)
            values["answers"].update(facts, "answers declared", _add)
            values["comments"].update(facts, "comments declared", _add)
            keys, parents = facts.pairs.get("parent", ((), ()))
            swapped = RowFacts(pairs={"answer": (parents, [1] * len(keys))})  # type: ignore[dict-item]
            values["answers"].update(swapped, "answer", _add, -1)
            self._tags.update(facts.counts)
        elif table == "comments":
            values["comments"].update(facts, "comment", _add, -1)
        elif table == "posthistory":
            values["created"].update(facts, "first revision", int.__xor__)
            values["owner"].update(facts, "first owner", int.__xor__)
            for text in _TEXTS:
                self._update_last(facts, text)
            values["last revision"].update(facts, "last revision", max)
            # Ids are not in the order of dates after a migration.
            values["closing"].update(facts, "closing", max)
        elif table == "tags":
            self._declared_tags.update(facts.counts)

    def _update_last(self, facts: RowFacts, text: str) -> None:
        """Keep the newest text of each post; of those with one date, that of the last row."""
        keys, dates = facts.pairs.get(f"date of {text}", ((), ()))
        _, hashes = facts.pairs.get(f"last {text}", ((), ()))
        newest, last = self._by_id[f"date of {text}"], self._by_id[f"last {text}"]
        newest.reserve(keys)
        last.reserve(keys)
        for key, date, value in zip(keys, dates, hashes, strict=True):
            if key < FIRST_FABRICATED_ID and date >= newest.values[key]:
                newest.values[key], last.values[key] = date, value

    def checks(self) -> list[Check]:
        """The checks that the read tables allow, with their results."""
        if "posts" not in self._tables:
            return []
        values = self._by_id
        kind, parent, accepted = values["kind"], values["parent"], values["accepted"]
        checks = [
            self._check("AnswerCount is the number of answers", values["answers"], {_QUESTION}),
            self._check_ids(
                "AcceptedAnswerId is an answer to the question",
                _count(accepted),
                (key for key in accepted.nonzero_ids() if parent[accepted[key]] != key),
            ),
        ]
        if "comments" in self._tables:
            every = {_QUESTION, _ANSWER, 3}
            checks.append(
                self._check("CommentCount is the number of comments", values["comments"], every)
            )
        if "tags" in self._tables:
            names = self._tags.keys() | self._declared_tags.keys()
            differ = sorted(n for n in names if self._tags[n] != self._declared_tags[n])
            checks.append(
                Check(
                    "Count of a tag is the number of questions with it",
                    len(names),
                    len(differ),
                    tuple(differ[:_EXAMPLES]),
                )
            )
        if "posthistory" in self._tables:
            edited, last, closing = values["edited"], values["last revision"], values["closing"]
            closed_posts = values["closed"]
            questions = [key for key in closing.nonzero_ids() if kind[key] == _QUESTION]
            both = {_QUESTION, _ANSWER}
            either = sorted({*questions, *closed_posts.nonzero_ids()})
            checks += [
                self._check(
                    "a first revision has the date of its post",
                    values["created"],
                    both,
                ),
                self._check("a first revision has the owner of its post", values["owner"], both),
                self._check_text("Title is that of the last revision", "title", {_QUESTION}),
                self._check_text("Tags are those of the last revision", "tags", {_QUESTION}),
                self._check_text("the words of Body are those of the last revision", "body", both),
                self._check_ids(
                    "LastEditDate is not after the last revision",
                    _count(edited),
                    (key for key in edited.nonzero_ids() if edited[key] > last[key]),
                ),
                self._check_ids(
                    "ClosedDate is there where the history ends closed",
                    len(either),
                    (key for key in either if closing[key] & 1 != closed_posts[key]),
                ),
            ]
        return checks

    def _check(self, name: str, numbers: ById, kinds: set[int]) -> Check:
        """Check that the numbers of some kinds of posts are 0."""
        kind = self._by_id["kind"]
        differ = (key for key in numbers.nonzero_ids() if kind[key] in kinds)
        count = sum(1 for key in kind.nonzero_ids() if kind[key] in kinds)
        return self._check_ids(name, count, differ)

    def _check_text(self, name: str, text: str, kinds: set[int]) -> Check:
        """Check that posts of some kinds have the newest text of their history."""
        own, last, kind = self._by_id[text], self._by_id[f"last {text}"], self._by_id["kind"]
        count = sum(1 for key in kind.nonzero_ids() if kind[key] in kinds)
        differ = (key for key in kind.nonzero_ids() if kind[key] in kinds and own[key] != last[key])
        return self._check_ids(name, count, differ)

    @staticmethod
    def _check_ids(name: str, count_checked: int, differ: Iterator[int]) -> Check:
        examples: list[int] = []
        count = 0
        for key in differ:
            count += 1
            if len(examples) < _EXAMPLES:
                examples.append(key)
        return Check(name, count_checked, count, tuple(examples))


def _count(numbers: ById) -> int:
    """How many ids have a number."""
    return sum(1 for _ in numbers.nonzero_ids())
