"""Parse searches into words and filters in SQL, and mark words in results. Pure functions.

Frequent filters need only the indexes of questions and answers, not their rows. Words are marked
here, because SQLite's `snippet` looks up each result in the full-text index again; for frequent
words, this takes longer than the search.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from so2docs.sqlite.accents import pair_signs, remove_accents

KINDS = ("question", "answer", "answered", "unanswered", "accepted", "closed", "duplicate")
MOST_WORDS = 32
"""Maximum number of words in a search, including each word of a phrase.

FTS5 looks up all words in one step of SQLite's virtual machine, which no deadline can stop, and
takes memory for the positions of each word in a post. A heap limit of SQLite is no alternative: it
would apply to the whole process, and could make the request of another user fail.
"""

TEXT_FILTERS = ("title", "intitle", "body", "code")
_COLUMN = {"title": "Title : ", "intitle": "Title : ", "body": "Body : "}
FILTERS = ("score", "answers", "views", "created", "user", "is", "closed", "duplicate",
           "hasaccepted", "isaccepted", *TEXT_FILTERS)  # fmt: skip
"""Supported filters."""
OTHER_FILTERS = ("wiki", "locked", "migrated", "hascode", "hasnotice", "deleted", "lastactive",
                 "inquestion", "inbookmarks", "infavorites", "saves", "url")  # fmt: skip
"""Filters of the sites that are not supported here."""

_NAME = "|".join((*FILTERS, *OTHER_FILTERS))
_PART = re.compile(
    rf"""
    (?P<minus>-(?![->=]) (?:\s+ (?=\[ | (?:{_NAME}):) )? )?
    (?: \[ \s* (?P<tag>[^\s\[\]]+) \s* \] (?P<or> \s+ or (?=\s*\[) )?
      | (?P<name>{_NAME}) : (?P<value>"[^"]*"|\S+)
      | " (?P<phrase>[^"]*) "?
      | (?P<word>[^\s"\[\]]+ | [\[\]]) )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_RANGE = re.compile(r"(-?\d{1,18})?(?:(\.\.)(-?\d{1,18})?)?")
_DATE = r"(\d{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12]\d|3[01]))?)?)"
_DATES = re.compile(rf"{_DATE}?(?:(\.\.){_DATE}?)?")
_LETTER = re.compile(r"\w")
# Words that are code, with characters that the full-text index ignores: `c++`, `foo_bar`,
# `--force`, `a.b()`, but not `don't`, `well-known`, `end.` or `(so`.
_CODE = re.compile(r"\w[+#_$@\\/=<>&:()]|[+#_$@\\/=<>&:]\w|^(?:--?|\.)\w|\w\.\w")
# Operators such as `->` and `!=`, but neither punctuation such as `...` and `),` nor a single
# character between words, such as `&`.
_OPERATOR = re.compile(r"--|::|\?[.?:]|(?=\S*[#$%&*+/<=>@\\^`{|}~])[^\w\s]{2,}")
_AROUND_WORDS = ".,;:!?'\""
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
_SHORT_KINDS = {"q": "question", "a": "answer"}
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_AFTER_DATES = "~"
"""A character that sorts after every character in a date."""


class Filter(NamedTuple):
    """A condition on a post or its question, except for words and tags.

    Attributes:
        name: `is`, `score`, `answers`, `views`, `created` or `user`.
        low: Lower bound; for `is`, one of `KINDS` or `isaccepted`; for `user`, an id or a name.
        high: Upper bound; None for `is` and `user`.
        is_unwanted: Whether posts that meet the condition are left out.
    """

    name: str
    low: Any
    high: Any = None
    is_unwanted: bool = False


class TextTest(NamedTuple):
    """A test of the texts of a post beyond the full-text index.

    Attributes:
        is_exact: Whether `text` is a pattern for words in their exact form; otherwise, it is found
            character by character, ignoring case.
        text: The pattern or the characters.
        is_unwanted: Whether posts with this text are left out.
    """

    is_exact: bool
    text: str
    is_unwanted: bool


@dataclass(slots=True)
class Query:
    """A parsed search.

    Attributes:
        plain: Words as typed, of which posts should have at least one.
        required: Phrases, quoted for the index, that posts must have.
        unwanted: Phrases, quoted for the index, that posts must not have.
        tests: Tests of the texts of posts.
        tags: Groups of tags; the question must have a tag of each group.
        without_tags: Tags that the question must not have.
        conditions: Conditions other than words and tags; posts must meet all of them.
        words: Words and phrases to find, as typed.
        filters: Tags and conditions as typed.
        problems: Messages for the user, such as those about ignored parts.
    """

    plain: list[str] = field(default_factory=list)
    required: list[str] = field(default_factory=list)
    unwanted: list[str] = field(default_factory=list)
    tests: list[TextTest] = field(default_factory=list)
    tags: list[tuple[str, ...]] = field(default_factory=list)
    without_tags: list[str] = field(default_factory=list)
    conditions: list[Filter] = field(default_factory=list)
    words: list[str] = field(default_factory=list, compare=False)
    filters: list[str] = field(default_factory=list, compare=False)
    problems: list[str] = field(default_factory=list, repr=False)

    @property
    def has_words(self) -> bool:
        """Whether there are words to find in the full-text index."""
        return bool(self.plain or self.required)

    @property
    def has_text(self) -> bool:
        """Whether the search needs the full-text index of a database."""
        return bool(self.has_words or self.tests)

    @property
    def has_wanted_text(self) -> bool:
        """Whether there is text to find without the full-text index."""
        return any(not test.is_unwanted for test in self.tests)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to search for."""
        is_filtered = self.tags or self.without_tags or self.conditions
        return not (self.has_words or self.has_wanted_text or is_filtered)

    def kinds(self) -> set[str]:
        """Return the kinds of posts that may match: `question`, `answer`, both or neither."""
        kinds = {"question", "answer"}
        for name, kind, _, is_unwanted in self.conditions:
            if name == "is" and kind in ("question", "answer"):
                kinds &= {"question", "answer"} - {kind} if is_unwanted else {kind}
        return kinds

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
    is_alternative = False
    for part in _PART.finditer(text.replace("\0", " ")):
        has_minus = part["minus"] is not None
        name, value = (part["name"] or "").lower(), (part["value"] or "").strip('"')
        if part["tag"] is not None:
            _add_tag(query, part, is_alternative=is_alternative)
        elif name and name not in TEXT_FILTERS:
            _add_filter(query, name, value, part[0], is_unwanted=has_minus)
        else:
            words = part["word"] if part["word"] is not None else part["phrase"] or value
            is_word = part["word"] is not None
            _add_words(query, name, words, is_word=is_word, is_unwanted=has_minus)
        is_alternative = part["or"] is not None and not has_minus
    few = _few(query, query.plain + query.required)
    query.plain, query.required = few[: len(query.plain)], few[len(query.plain) :]
    query.unwanted = _few(query, query.unwanted)
    if (query.unwanted and not query.has_words) or (query.tests and query.is_empty):
        query.problems.append("to exclude words, also give words to search for")
        query.tests.clear()
        query.unwanted.clear()
    if query.is_empty and text.strip() and not query.problems:
        query.problems.append('single symbols are ignored, except as in code:"&"')
    return query


def _add_words(query: Query, name: str, words: str, *, is_word: bool, is_unwanted: bool) -> None:
    """Add a word, a phrase, or the value of `title:`, `body:` or `code:`."""
    has_letter = _LETTER.search(words) is not None
    code = words.lower() if name == "code" else ""
    if not name and (is_word or not has_letter):
        code = _code(words)
    is_exact = not (name or is_word or words.endswith("*") or pair_signs(words)) and has_letter
    if code or is_exact:
        query.tests.append(TextTest(is_exact, _exactly(words) if is_exact else code, is_unwanted))
    if not has_letter or (is_unwanted and (code or is_exact)):
        return
    phrase = _COLUMN.get(name, "") + quote_phrase(words)
    if is_unwanted:
        query.unwanted.append(phrase)
        return
    query.words.append(words)
    is_plain = is_word and not code
    parts, part = (query.plain, words) if is_plain else (query.required, phrase)
    if part not in parts:
        parts.append(part)


def _add_tag(query: Query, part: re.Match[str], *, is_alternative: bool) -> None:
    """Add a tag to the query; after an `or`, add it to the group of the previous tag."""
    tag = part["tag"].lower()
    if part["minus"] is not None:
        if part["or"]:
            query.problems.append(f"or after -[{tag}] is not supported; tags after it are required")
        query.without_tags.append(tag)
    elif is_alternative:
        query.tags[-1] = (*query.tags[-1], tag)
        query.filters[-1] += f" {part[0]}"
        return
    else:
        query.tags.append((tag,))
    query.filters.append(part[0])


def _few(query: Query, phrases: list[str]) -> list[str]:
    """Return the first phrases with `MOST_WORDS` words in all; report those left out."""
    counts = accumulate(len(_WORD.findall(phrase)) for phrase in phrases)
    few = [phrase for phrase, count in zip(phrases, counts, strict=True) if count <= MOST_WORDS]
    problem = f"only the first {MOST_WORDS} words were searched for"
    if len(few) < len(phrases) and problem not in query.problems:
        query.problems.append(problem)
    return few


def _add_filter(query: Query, name: str, value: str, typed: str, *, is_unwanted: bool) -> None:
    """Add a filter to the conditions, or report that it was not understood."""
    condition: Filter | None = None
    if name == "is":
        kind = _SHORT_KINDS.get(value.lower(), value.lower())
        condition = Filter(name, kind) if kind in KINDS else None
    elif name == "user":
        is_number = value.removeprefix("-").isdecimal() and len(value) < 19
        condition = Filter(name, int(value) if is_number else value)
    elif name == "created":
        if (match := _DATES.fullmatch(value)) and value.strip("."):
            low, dots, high = match.groups()
            condition = Filter(name, low or "", f"{high or ('' if dots else low)}{_AFTER_DATES}")
    elif name in ("closed", "duplicate", "hasaccepted", "isaccepted"):
        kind = "accepted" if name == "hasaccepted" else name
        if value.lower() in ("yes", "no", "1", "0"):
            condition = Filter("is", kind)
            is_unwanted ^= value.lower() in ("no", "0")
    elif name in _COLUMNS and (match := _RANGE.fullmatch(value)) and value.strip("."):
        low, dots, high = match.groups()
        # As on the sites, `answers:0` means none; any other number is a minimum.
        end = 0 if (name, value) == ("answers", "0") else _MOST
        condition = Filter(
            name, int(low) if low else _LEAST, int(high) if high else _MOST if dots else end
        )
    if condition is None:
        query.problems.append(f"{typed} was not understood")
        return
    query.conditions.append(condition._replace(is_unwanted=is_unwanted))
    query.filters.append(typed)


def _code(word: str) -> str:
    """Return a word of code in lower case; an empty string for an ordinary word."""
    if _OPERATOR.fullmatch(word):
        return word
    word = word.rstrip("*").rstrip(_AROUND_WORDS)
    return word.lower() if _CODE.search(word) else ""


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


def _exactly(words: str) -> str:
    """Make the pattern that finds the words of a phrase in folded texts, in their exact form."""
    inner = r"[\W_]+".join(_WORD.findall(fold(words)))
    return rf"(?<![^\W_]){inner}(?![^\W_])"


def has_match(pattern: str, *texts: str | None) -> bool:
    """Whether a pattern matches in one of the texts, in lower case and without accents."""
    return any(text and re.search(pattern, fold(text)) for text in texts)


_OF_QUESTION = {
    "answered": "{p}.Answers > 0",
    "unanswered": "{p}.Answers = 0",
    "accepted": "{p}.AcceptedAnswerId IS NOT NULL",
    "closed": "{p}.ClosedDate IS NOT NULL",
    "duplicate": "EXISTS (SELECT 1 FROM links l WHERE l.PostId = {p}.Id "
    "AND l.LinkType = 'duplicate')",
}
_COLUMNS = {
    "score": "{Score}",
    "created": "{CreationDate}",
    "answers": "{p}.Answers",
    "views": "{p}.ViewCount",
}


_OF_POST = ("Id", "Score", "CreationDate", "OwnerUserId", "OwnerDisplayName")


@dataclass(slots=True)
class Conditions:
    """The conditions of a query in SQL.

    Attributes:
        of_post: Conditions on a question or an answer, in terms of its columns: `{Score} > 3`.
        of_question: Conditions on the question `{p}` of the post.
        of_text: Conditions on the text `x` of a post, matched character by character.
        tag: A tag that all matching questions have, used to narrow the search; may be empty.
        has_owner: Whether posts are selected by the ids of their owners.
        values: Values of the SQL parameters, by name.
    """

    of_post: list[str] = field(default_factory=list)
    of_question: list[str] = field(default_factory=list)
    of_text: list[str] = field(default_factory=list)
    tag: str = ""
    has_owner: bool = False
    values: dict[str, Any] = field(default_factory=dict)

    def key(self, value: Any) -> str:
        """Add a value, and return the SQL parameter for it, such as `:v0`."""
        name = f"v{len(self.values)}"
        self.values[name] = value
        return f":{name}"

    def on(self, post: str, question: str) -> str:
        """Return all conditions on posts and questions as one SQL expression.

        Args:
            post: SQL for a column of the post; the column's name replaces `{0}`.
            question: Alias of the table with its question.
        """
        columns = {"p": question, **{name: post.format(name) for name in _OF_POST}}
        parts = ("1", *self.of_post, *self.of_question)
        return " AND ".join(part.format_map(columns) for part in parts)


def parse_conditions(query: Query, tables: Collection[str]) -> Conditions:
    """Translate the conditions of a query to SQL, except for words of the full-text index.

    Args:
        query: The query; conditions that need a missing table are reported in its problems.
        tables: Tables of the database.
    """
    conditions = Conditions()
    groups = [(tags, "") for tags in query.tags] + [((tag,), "NOT ") for tag in query.without_tags]
    for tags, word in groups:
        keys = ", ".join(map(conditions.key, tags))
        conditions.of_question.append(
            f"{word}EXISTS (SELECT 1 FROM question_tags t WHERE t.Tag IN ({keys}) "
            "AND t.QuestionId = {p}.Id)"
        )
        if not word and len(tags) == 1:
            conditions.tag = conditions.tag or tags[0]
    for condition in query.conditions:
        if condition.name == "user":
            _add_owner(conditions, condition, tables)
        elif condition.name == "is":
            _add_kind(query, conditions, condition, tables)
        else:
            low, high = conditions.key(condition.low), conditions.key(condition.high)
            is_of_post = condition.name in ("score", "created")
            parts = conditions.of_post if is_of_post else conditions.of_question
            column = _COLUMNS[condition.name]
            sql = f"{column} BETWEEN {low} AND {high}"
            # A post without a value fails the filter, so it must pass the negated filter.
            parts.append(f"NOT coalesce({sql}, 0)" if condition.is_unwanted else sql)
    if not query.kinds():
        conditions.of_question.append("0")
    for is_exact, text, is_unwanted in query.tests:
        # Ignore case only if the word has letters, because converting a column to lower case takes
        # as long as searching it. Do not use LIKE, which takes seconds for a megabyte of one
        # character.
        column = "lower(x.{})" if _LETTER.search(text) else "x.{}"
        columns = (column.format(name) for name in ("Title", "Tags", "Body"))
        key = conditions.key(text)
        sql = " OR ".join(f"instr({column}, {key})" for column in columns)
        if is_exact:
            sql = f"has_match({key}, x.Title, x.Tags, x.Body)"
        conditions.of_text.append(f"NOT coalesce({sql}, 0)" if is_unwanted else f"({sql})")
    return conditions


def _add_owner(conditions: Conditions, condition: Filter, tables: Collection[str]) -> None:
    """Add a condition on the owner of a post: an id, or a name in any case."""
    key = conditions.key(condition.low)
    if isinstance(condition.low, int):
        sql = f"{{OwnerUserId}} = {key}"
    elif "users" in tables:
        names = f"DisplayName = {key} COLLATE NOCASE"
        sql = f"{{OwnerUserId}} IN (SELECT Id FROM users WHERE {names})"
    else:
        sql = f"{{OwnerDisplayName}} = {key} COLLATE NOCASE"
    conditions.has_owner |= "OwnerUserId" in sql and not condition.is_unwanted
    conditions.of_post.append(f"NOT coalesce({sql}, 0)" if condition.is_unwanted else sql)


def _add_kind(
    query: Query, conditions: Conditions, condition: Filter, tables: Collection[str]
) -> None:
    """Add an `is:` condition: on the state of the question, or on whether an answer is accepted."""
    word = "NOT " * condition.is_unwanted
    if condition.low == "duplicate" and "links" not in tables:
        query.problems.append("duplicates are unknown, because the documents have no links")
    elif condition.low == "isaccepted":
        conditions.of_post.append(f"{word}coalesce({{Id}} = {{p}}.AcceptedAnswerId, 0)")
    elif condition.low in _OF_QUESTION:
        conditions.of_question.append(f"{word}({_OF_QUESTION[condition.low]})")


START, END = "\x02", "\x03"

# Split words as FTS5's `unicode61` tokenizer does.
_WORD = re.compile(r"[^\W_]+")
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
