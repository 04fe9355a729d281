"""Parse searches into words and filters in SQL, and mark words in results. Pure functions.

Words are marked here, because SQLite's `snippet` looks up each result in the full-text index again;
for frequent words, this takes longer than the search.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from so2docs.extensions.sqlite.accents import pair_signs, remove_accents

MOST_WORDS = 32
"""Maximum number of words in a search, including each word of a phrase.

FTS5 looks up all words in one step of SQLite's virtual machine, which no deadline can stop, and
takes memory for the positions of each word in a post. A heap limit of SQLite is no alternative: it
would apply to the whole process, and could make the request of another user fail.
"""

_NUMBER, _DATE = r"-?\d{1,18}", r"\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?"
_RANGES = {
    "score": ("{p}.Score", _NUMBER),
    "answers": ("{q}.AnswerCount", _NUMBER),
    "views": ("{q}.ViewCount", _NUMBER),
    "created": ("{p}.CreationDate", _DATE),
}
"""Columns of filters with a lower and an upper bound, and patterns of a bound."""
_STATES = {
    "answered": "{q}.AnswerCount > 0",
    "unanswered": "{q}.AnswerCount = 0",
    "accepted": "{q}.AcceptedAnswerId IS NOT NULL",
    "closed": "{q}.ClosedDate IS NOT NULL",
}
_BOTH = frozenset({"question", "answer"})
_OTHERS = ("intitle", "code", "closed", "duplicate", "hasaccepted", "isaccepted", "wiki", "locked",
           "migrated", "hascode", "deleted", "lastactive", "inquestion", "url")  # fmt: skip
"""Filters of the sites that are not supported here."""

_PART = re.compile(
    rf"""
    (?P<minus>-(?=[\w"\[]))?
    (?: \[ (?P<tag>[^\s\[\]]+) \] (?P<or> \s+ or (?=\s*\[) )?
      | (?P<name>{"|".join((*_RANGES, *_OTHERS))}|user|is) : (?P<value>\S+)
      | (?: (?P<column>title|body) : )?
        (?: " (?P<phrase>[^"]*) "? | (?P<word>[^\s"\[\]]+ | [\[\]]) ) )
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Split words as FTS5's `unicode61` tokenizer does.
_WORD = re.compile(r"[^\W_]+")
COMMON = frozenset(
    re.findall(
        r"\w+",
        """
        a about all am an and any are as at be been but by can could did do does for
        from get had has have how i if in is it its me my no not of on one or so some
        than that the their them then there these they this to too use was we were what
        when where which while who why will with would you your
        """,
    )
)
"""Frequent English words: posts need not contain them if a search has other words."""


@dataclass(slots=True)
class Query:
    """A parsed search.

    Attributes:
        plain: Words as typed, of which posts should have at least one.
        required: Phrases, quoted for the index, that posts must have.
        unwanted: Phrases, quoted for the index, that posts must not have.
        words: Words and phrases to find, as typed.
        kinds: Kinds of posts that may match: `question`, `answer`, both or neither.
        where: Conditions in SQL on the post `{p}` and its question `{q}`.
        values: Values of the SQL parameters, by name.
        has_owner: Whether the search names the owner of the posts.
        problems: Messages for the user, such as those about ignored parts.
    """

    plain: list[str] = field(default_factory=list)
    required: list[str] = field(default_factory=list)
    unwanted: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list, compare=False)
    kinds: frozenset[str] = _BOTH
    where: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    has_owner: bool = False
    problems: list[str] = field(default_factory=list, repr=False)

    def __hash__(self) -> int:
        return hash(repr(self))

    @property
    def has_words(self) -> bool:
        """Whether there are words to find in the full-text index."""
        return bool(self.plain or self.required)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to search for."""
        return not (self.has_words or self.where) and self.kinds == _BOTH

    def significant(self) -> list[str]:
        """Return the plain words, folded, without frequent English words if there are others."""
        words = list(dict.fromkeys(map(fold, self.plain)))
        return [word for word in words if word not in COMMON] or words

    def add(self, sql: str, *values: Any, is_unwanted: bool = False) -> None:
        """Add a condition, in which `?` stands for the next of the values."""
        for value in values:
            name = f"v{len(self.values)}"
            self.values[name] = value
            sql = sql.replace("?", f":{name}", 1)
        # A post without a value fails the condition, so it must pass the negated condition.
        self.where.append(f"NOT coalesce({sql}, 0)" if is_unwanted else sql)

    def add_tags(self, *tags: str, is_unwanted: bool = False) -> None:
        """Require that the question has at least one of some tags, or none of them."""
        names = ", ".join("?" for _ in tags)
        sql = f"{{q}}.Id IN (SELECT QuestionId FROM question_tags WHERE Tag IN ({names}))"
        self.add(sql, *tags, is_unwanted=is_unwanted)

    def match(self, plain: Sequence[str], joint: str) -> str:
        """Make the query for the full-text index.

        Args:
            plain: The plain words, quoted for the index.
            joint: `AND` if posts must have all of them, `OR` if one is enough.
        """
        plain = [f"({f' {joint} '.join(plain)})"] * bool(plain)
        end = f" NOT ({' OR '.join(self.unwanted)})" if self.unwanted else ""
        return f"({' AND '.join([*plain, *self.required])}){end}"


def parse(text: str) -> Query:
    """Parse a search such as `[tag] score:5 -is:answered "a phrase" word -word title:word`."""
    query = Query()
    left, tags = MOST_WORDS, list[str]()
    for part in _PART.finditer(text.replace("\0", " ")):
        is_unwanted = part["minus"] is not None
        if part["tag"]:
            tags.append(part["tag"].lower())
            if is_unwanted or not part["or"]:
                query.add_tags(*tags, is_unwanted=is_unwanted)
                tags = []
        elif part["name"]:
            name = part["name"].lower()
            if not _add_filter(query, name, part["value"], is_unwanted=is_unwanted):
                query.problems.append(f"{part[0]} was not understood")
        else:
            left -= _add_words(query, part, left)
    if tags:
        query.add_tags(*tags)
    if left < 0:
        query.problems.append(f"only the first {MOST_WORDS} words were searched for")
    if query.unwanted and not query.has_words:
        query.problems.append("to exclude words, also give words to search for")
        query.unwanted.clear()
    return query


def _add_words(query: Query, part: re.Match[str], most: int) -> int:
    """Add a word or a phrase if it has at most `most` words; return their number."""
    words = part["word"] or part["phrase"] or ""
    column = f"{part['column'].title()} : " if part["column"] else ""
    phrase = column + quote_phrase(words)
    count = len(_WORD.findall(phrase)) - bool(column)
    if not count or count > most:
        return count
    if part["minus"]:
        query.unwanted.append(phrase)
        return count
    query.words.append(words)
    is_plain = part["word"] and not column
    parts, added = (query.plain, words) if is_plain else (query.required, phrase)
    if added not in parts:
        parts.append(added)
    return count


def _add_filter(query: Query, name: str, value: str, *, is_unwanted: bool) -> bool:
    """Add a filter to the conditions; return whether it was understood."""
    if name == "is":
        kind = value.lower()
        if kind in _BOTH:
            query.kinds &= _BOTH - {kind} if is_unwanted else {kind}
        elif kind in _STATES:
            query.add(_STATES[kind], is_unwanted=is_unwanted)
        return kind in (*_BOTH, *_STATES)
    if name in _OTHERS:
        return False
    if name == "user":
        is_id = re.fullmatch(_NUMBER, value) is not None
        if is_id:
            query.add("{p}.OwnerUserId = ?", int(value), is_unwanted=is_unwanted)
            query.has_owner |= not is_unwanted
        return is_id
    column, bound = _RANGES[name]
    match = re.fullmatch(rf"({bound})?(?:(\.\.)({bound})?)?", value)
    if match is None or not value.strip("."):
        return False
    low, dots, high = match.groups()
    limits: tuple[Any, Any]
    if name == "created":  # `~` sorts after every character in a date.
        limits = low or "", f"{high or ('' if dots else low)}~"
    else:
        # As on the sites, `answers:0` means none; any other number is a minimum.
        end = 0 if (name, value) == ("answers", "0") else (1 << 63) - 1
        limits = int(low) if low else -(1 << 63), int(high) if high else end
    query.add(f"{column} BETWEEN ? AND ?", *limits, is_unwanted=is_unwanted)
    return True


def quote_phrase(words: str) -> str:
    """Quote a phrase for the full-text index, with its forms without accents and in pairs."""
    end = " *" if words.endswith("*") and len(words) > 3 else ""
    phrase = words.rstrip("*").replace('"', " ")
    # The index removes the accents of Latin letters itself.
    forms = [f'"{form}"{end}' for form in dict.fromkeys((phrase, remove_accents(phrase)))]
    if pairs := pair_signs(words):
        # The last pair depends on the character after the phrase, so drop it, or match it as a
        # prefix.
        pairs = pairs[:-1] or [f"{pairs[0]}*"]
        signs = (f'"{pair.removesuffix("*")}"{" *" * pair.endswith("*")}' for pair in pairs)
        forms.append(f"({' AND '.join(signs)})")
    return forms[0] if len(forms) == 1 else f"({' OR '.join(forms)})"


START, END = "\x02", "\x03"
_WORDS = 36


def fold(word: str) -> str:
    """Normalize a word as the full-text index does: in lower case, without accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part))


Matcher = Callable[[str], bool]
"""A function that checks whether a folded word is one of the words of a search."""


def make_matcher(words: Sequence[str], stem: Callable[[str], str]) -> Matcher:
    """Make the function that finds the words of a search in any form.

    Args:
        words: The words and phrases; those that end in `*` match any ending.
        stem: Function that returns the stem of a word.
    """
    parts = [(fold(match[0]), text) for text in words for match in _WORD.finditer(text)]
    starts = tuple(word for word, text in parts if text.endswith("*"))
    stems = {stem(word) for word, text in parts if not text.endswith("*")}
    # Stem only words that begin like one of the stems, because stemming takes long.
    near = tuple(word[:2] for word in stems)
    return lambda word: word.startswith(starts) or (word.startswith(near) and stem(word) in stems)


def mark(text: str, is_found: Matcher) -> str:
    """Put `START` and `END` around the matching words of a text."""

    def mark_word(match: re.Match[str]) -> str:
        return f"{START}{match[0]}{END}" if is_found(fold(match[0])) else match[0]

    return _WORD.sub(mark_word, text.replace(START, " ").replace(END, " "))


def snippet(text: str, is_found: Matcher = lambda _: False) -> str:
    """Return the part of a text with the most matching words, marked; or else its start."""
    places = [match.span() for match in _WORD.finditer(text)]
    words = ((number, fold(text[start:end])) for number, (start, end) in enumerate(places))
    hits = [(number, word) for number, word in words if is_found(word)]
    best, most = 0, 0
    for at, (number, _) in enumerate(hits):
        near = {word for other, word in hits[at : at + _WORDS] if other < number + _WORDS - 4}
        if len(near) > most:
            best, most = max(0, number - 4), len(near)
    part = places[best : best + _WORDS]
    if not part:
        return ""
    before = "… " if best else ""
    after = " …" if best + _WORDS < len(places) else text[part[-1][1] :].strip()[:3]
    return before + mark(text[part[0][0] : part[-1][1]], is_found) + after
