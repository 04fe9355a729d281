"""What a worker finds in a chunk of a table: rows, dates, ids, and what the audit compares.

Numbers travel in arrays; what the audit makes of them is in `audit`.
"""

from __future__ import annotations

import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

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
_QUESTION, _ANSWER = "1", "2"
_TEXTS = {
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
    """What is in some rows of a table.

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
    facts.pair("kind", post_id, int(kind) if kind in (_QUESTION, _ANSWER) else 3)
    facts.pair("created", post_id, _date(row.get("CreationDate")))
    facts.pair("comments declared", post_id, _number(row.get("CommentCount")) or 0)
    facts.pair("owner", post_id, _hash(row.get("OwnerUserId", "")))
    facts.pair("body", post_id, _hash_words(row.get("Body", ""), _HTML))
    if "LastEditDate" in row:
        facts.pair("edited", post_id, _date(row["LastEditDate"]))
    if kind == _ANSWER and (parent := _number(row.get("ParentId"))) is not None:
        facts.pair("parent", post_id, parent)
    if kind != _QUESTION:
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
    if name := _TEXTS.get(kind):
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
