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


@dataclass(slots=True)
class Query:
    """A parsed search.

    Attributes:
        match: Query for the full-text index; empty if there are no words to find.
        tags: Groups of tags; the question must have a tag of each group.
        without_tags: Tags that the question must not have.
        conditions: Conditions other than words and tags; posts must meet all of them.
        code: Words that posts must contain character by character, ignoring case.
        without_code: Words that posts must not contain, matched in the same way as `code`.
        filters: Tags and conditions as typed.
        problems: Messages for the user, such as those about ignored parts.
        words: Words to find, as typed.
        plain: Words that match in any form: those without quotes or signs.
        others: Phrases, quoted for the index, that posts must have besides the plain words.
        unwanted: Phrases, quoted for the index, that posts must not have.
    """

    match: str = ""
    tags: list[tuple[str, ...]] = field(default_factory=list)
    without_tags: list[str] = field(default_factory=list)
    conditions: list[Filter] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    without_code: list[str] = field(default_factory=list)
    filters: list[str] = field(default_factory=list, compare=False)
    problems: list[str] = field(default_factory=list, repr=False)
    words: list[str] = field(default_factory=list, compare=False)
    plain: list[str] = field(default_factory=list, compare=False)
    others: list[str] = field(default_factory=list, compare=False)
    unwanted: list[str] = field(default_factory=list, compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to search for."""
        is_filtered = self.tags or self.without_tags or self.conditions
        return not (self.match or self.code or is_filtered)

    @property
    def has_text(self) -> bool:
        """Whether the search needs the full-text index of a database."""
        return bool(self.match or self.code or self.without_code)

    def kinds(self) -> set[str]:
        """Return the kinds of posts that may match: `question`, `answer`, both or neither."""
        kinds = {"question", "answer"}
        for name, kind, _, is_unwanted in self.conditions:
            if name == "is" and kind in ("question", "answer"):
                kinds &= {"question", "answer"} - {kind} if is_unwanted else {kind}
        return kinds

    def match_forms(self, groups: Sequence[Sequence[str]], joint: str) -> str:
        """Make the query for the full-text index, with the given forms of the plain words.

        Args:
            groups: The forms of each word.
            joint: `AND` if posts must have all words, `OR` if one is enough.
        """
        words = [" OR ".join(f'"{form}"' for form in forms) for forms in groups]
        required = [f"({f' {joint} '.join(f'({word})' for word in words)})", *self.others]
        end = f" NOT ({' OR '.join(self.unwanted)})" if self.unwanted else ""
        return f"({' AND '.join(required)}){end}"


def parse(text: str) -> Query:
    """Parse a search such as `[tag] score:5 -is:answered "a phrase" word -word title:word`."""
    query = Query()
    required: list[str] = []
    unwanted: list[str] = []
    is_alternative = False
    for part in _PART.finditer(text.replace("\0", " ")):
        has_minus = part["minus"] is not None
        name, value = (part["name"] or "").lower(), (part["value"] or "").strip('"')
        name = "title" if name == "intitle" else name
        if part["tag"] is not None:
            _add_tag(query, part, is_alternative=is_alternative)
        elif name and name not in TEXT_FILTERS:
            _add_filter(query, name, value, part[0], is_unwanted=has_minus)
        else:
            words = part["word"] if part["word"] is not None else part["phrase"] or value
            if name or (part["word"] is None and _LETTER.search(words)):
                code = words.lower() if name == "code" else ""
            else:
                code = _code(words)
            if code:
                (query.without_code if has_minus else query.code).append(code)
            if not (code and has_minus):
                column = f"{name.title()} : " if name in ("title", "body") else ""
                phrases = [column + phrase for phrase in _quote_phrase(words)]
                (unwanted if has_minus else required).extend(phrases)
                if (
                    part["word"]
                    and not has_minus
                    and not code
                    and _WORD.fullmatch(words)
                    and not pair_signs(words)
                ):
                    query.plain.append(fold(words))
                elif not has_minus:
                    query.others.extend(phrases)
            query.words += [] if has_minus else [words]
        is_alternative = part["or"] is not None and not has_minus
    query.plain = list(dict.fromkeys(query.plain))[:MOST_WORDS]
    query.others = _few(query, query.others)
    query.unwanted = _few(query, unwanted)
    _set_match(query, _few(query, required), query.unwanted)
    if query.is_empty and text.strip() and not query.problems:
        query.problems.append('single symbols are ignored, except as in code:"&"')
    return query


def _set_match(query: Query, required: list[str], unwanted: list[str]) -> None:
    """Set the query for the full-text index, or report that it would only exclude words."""
    query.match = " AND ".join(required)
    if unwanted and required:
        query.match = f"({query.match}) NOT ({' OR '.join(unwanted)})"
    elif unwanted or (query.without_code and query.is_empty):
        query.problems.append("to exclude words, also give words to search for")
        query.without_code.clear()


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
    """Return the phrases without duplicates, up to `MOST_WORDS` words; report those left out."""
    count, few = 0, []
    for phrase in dict.fromkeys(phrases):
        count += len(_WORD.findall(phrase.split('"')[1]))
        if count > MOST_WORDS:
            problem = f"only the first {MOST_WORDS} words were searched for"
            query.problems += [problem] * (problem not in query.problems)
            break
        few.append(phrase)
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


def _quote_phrase(words: str) -> list[str]:
    """Quote a phrase for the index, as a list of one string; empty without a letter or digit."""
    if not _LETTER.search(words):
        return []
    end = " *" if words.endswith("*") and len(words) > 3 else ""
    phrase = words.rstrip("*").replace('"', " ")
    # The index removes the accents of Latin letters itself.
    phrases = [f'"{form}"{end}' for form in dict.fromkeys((phrase, remove_accents(phrase)))]
    if pairs := pair_signs(words):
        # The last pair depends on the character after the phrase, so drop it, or match it as a
        # prefix.
        pairs = pairs[:-1] or [f"{pairs[0]}*"]
        signs = (f'"{pair.removesuffix("*")}"{" *" * pair.endswith("*")}' for pair in pairs)
        phrases.append(f"({' AND '.join(signs)})")
    return phrases if len(phrases) == 1 else [f"({' OR '.join(phrases)})"]


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
    for words, sql in ((query.code, "({})"), (query.without_code, "NOT coalesce({}, 0)")):
        for text in words:
            # Ignore case only if the word has letters, because converting a column to lower case
            # takes as long as searching it. Do not use LIKE, which takes seconds for a megabyte of
            # one character.
            column = "lower(x.{})" if _LETTER.search(text) else "x.{}"
            columns = (column.format(name) for name in ("Title", "Tags", "Body"))
            tests = (f"instr({column}, {conditions.key(text)})" for column in columns)
            conditions.of_text.append(sql.format(" OR ".join(tests)))
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
_ENDING = re.compile(r"(?:ing|ed|es|s|e|y|ies|ly|er|ation|ment)$")


def fold(word: str) -> str:
    """Normalize a word as the full-text index does: in lower case, without accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part))


def split_terms(words: Sequence[str], *, stemming: bool = False) -> list[str]:
    """Split search words into terms; a term that ends in `*` is a prefix.

    Args:
        words: The words of the query.
        stemming: Whether the index stems English words. If so, each term is a prefix: a word
            without its ending.
    """
    terms = []
    for text in words:
        for match in _WORD.finditer(text):
            word = fold(match[0])
            stem = _ENDING.sub("", word) if stemming and len(word) > 4 else word
            terms.append(stem + "*" * (text.endswith("*") or stem != word or stemming))
    return terms


def mark(text: str, terms: Sequence[str]) -> str:
    """Put `START` and `END` around the words of a text that match the terms."""
    is_found = _matcher(terms)

    def mark_word(match: re.Match[str]) -> str:
        return f"{START}{match[0]}{END}" if is_found(fold(match[0])) else match[0]

    return _WORD.sub(mark_word, text.replace(START, " ").replace(END, " "))


def snippet(text: str, terms: Sequence[str]) -> str:
    """Return the part of a text with the most terms, marked; without a match, its start."""
    is_found = _matcher(terms)
    places = [match.span() for match in _WORD.finditer(text)]
    words = ((number, fold(text[start:end])) for number, (start, end) in enumerate(places))
    hits = [(number, word) for number, word in words if is_found(word)] if terms else []
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
    return before + mark(text[part[0][0] : part[-1][1]], terms) + after


def _matcher(terms: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that checks whether a folded word matches a term."""
    whole = {term for term in terms if not term.endswith("*")}
    starts = tuple(term[:-1] for term in terms if term.endswith("*"))
    return lambda word: word in whole or word.startswith(starts)
