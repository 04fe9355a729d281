"""A search: what was typed -> words, filters in SQL, and marked words in the results. Pure.

All that filters ask of posts is in the indexes of questions and answers that start with their ids.
SQLite's own `snippet` looks every result up in the full-text index again, which for frequent words
takes longer than the search.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

KINDS = ("question", "answer", "answered", "unanswered", "accepted")

_PART = re.compile(
    r"""
    (?P<minus>-(?!-))?
    (?: \[ \s* (?P<tag>[^\s\[\]]+) \s* \]
      | (?P<name>score|answers|user|is|title) : (?P<value>"[^"]*"|\S+)
      | " (?P<phrase>[^"]*) "?
      | (?P<word>[^\s"\[\]]+ | [\[\]]) )
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"-?\d{1,18}")
_LETTER = re.compile(r"\w")
# Words of code: with signs that the full-text index does not know, as `c++`, `foo_bar`, `--force`,
# `a.b()`, but not `don't`, `well-known`, `end.` or `(so`.
_CODE = re.compile(r"\w[+#_$@\\/=<>&:()]|[+#_$@\\/=<>&:]\w|^(?:--?|\.)\w|\w\.\w")
_AROUND_WORDS = ".,;:!?'\""


@dataclass(slots=True)
class Query:
    """A search.

    Attributes:
        match: For the full-text index; empty if no words were given.
        tags: Tags that the question must have.
        without_tags: Tags that it must not have.
        kinds: Of `KINDS`; all must hold.
        score: Least score of the post; None if any will do.
        answers: Least number of answers of the question.
        user: Id of the owner.
        code: Words that posts must hold letter by letter, whatever their case.
        without_code: Such words that they must not hold.
        filters: Tags and conditions, as they were typed.
        problems: Parts that were not understood, and are left out.
        words: What is to be found, as it was typed.
    """

    match: str = ""
    tags: list[str] = field(default_factory=list)
    without_tags: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    score: int | None = None
    answers: int | None = None
    user: int | None = None
    code: list[str] = field(default_factory=list)
    without_code: list[str] = field(default_factory=list)
    filters: list[str] = field(default_factory=list, compare=False)
    problems: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list, compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was asked for."""
        terms = (self.match, self.tags, self.without_tags, self.kinds)
        numbers = (self.score, self.answers, self.user)
        return not any(terms) and all(number is None for number in numbers)


def parse(text: str) -> Query:
    """Understand a search: `[tag] score:5 is:answered "a phrase" word -word title:word`."""
    query = Query()
    required: list[str] = []
    unwanted: list[str] = []
    for part in _PART.finditer(text.replace("\0", " ")):
        has_minus = part["minus"] is not None
        if part["tag"] is not None:
            tags = query.without_tags if has_minus else query.tags
            tags.append(part["tag"].lower())
            query.filters.append(part[0])
        elif part["name"] is not None:
            required += _filter(query, part["name"], part["value"].strip('"'), part[0])
        else:
            words = part["phrase"] if part["phrase"] is not None else part["word"]
            code = _code(words) if part["phrase"] is None else ""
            if code:
                (query.without_code if has_minus else query.code).append(code)
            if not (code and has_minus):
                (unwanted if has_minus else required).extend(_quote_phrase(words))
            query.words += [] if has_minus else [words]
    query.match = " AND ".join(required)
    if unwanted and required:
        query.match = f"({query.match}) NOT ({' OR '.join(unwanted)})"
    elif unwanted or (query.without_code and not required):
        query.without_code.clear()
        query.problems.append("words to leave out need others to find")
    return query


def _filter(query: Query, name: str, value: str, whole: str) -> list[str]:
    """Note a filter; returns words for the index, where it is one over titles."""
    if name == "title":
        query.words.append(value)
        return [f"Title : {words}" for words in _quote_phrase(value)]
    if name == "is" and value in KINDS:
        query.kinds.append(value)
        query.filters.append(whole)
    elif name != "is" and _NUMBER.fullmatch(value):
        setattr(query, name, int(value))
        query.filters.append(whole)
    else:
        query.problems.append(f"{whole} was not understood")
    return []


def _code(word: str) -> str:
    """A word of code, in lower case; empty if it is a word as any other."""
    word = word.rstrip("*").rstrip(_AROUND_WORDS)
    return word.lower() if _CODE.search(word) else ""


def _quote_phrase(words: str) -> list[str]:
    """A phrase in the language of the index; none if there is no letter or digit in it."""
    if not _LETTER.search(words):
        return []
    end = " *" if words.endswith("*") and len(words) > 3 else ""
    return ['"' + words.rstrip("*").replace('"', '""') + '"' + end]


_OF_QUESTION = {
    "answered": "{p}.Answers > 0",
    "unanswered": "{p}.Answers = 0",
    "accepted": "{p}.AcceptedAnswerId IS NOT NULL",
}
_NEVER = "0"


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a query.

    Attributes:
        of_post: What a question or an answer must be itself, in terms of `{score}` and `{owner}`.
        of_question: What its question must be, in terms of `{p}`.
        of_text: What the text `x` of a post must contain, letter by letter.
        tag: A tag of the question, to select by first; may be empty.
        values: Their values.
    """

    of_post: list[str]
    of_question: list[str]
    of_text: list[str]
    tag: str
    values: dict[str, Any]

    def on(self, score: str, owner: str, question: str) -> str:
        """The conditions in SQL, where these are the columns of the post and its question."""
        parts = ["1", *self.of_post, *self.of_question]
        return " AND ".join(part.format(score=score, owner=owner, p=question) for part in parts)


def parse_conditions(query: Query) -> Conditions:
    """The conditions of a query, apart from its words."""
    of_post: list[str] = []
    of_text: list[str] = []
    of_question = [_OF_QUESTION[kind] for kind in query.kinds if kind in _OF_QUESTION]
    values: dict[str, Any] = {}
    for names, word in ((query.tags, ""), (query.without_tags, "NOT ")):
        for name in names:
            key = f"tag{len(values)}"
            values[key] = name
            of_question.append(
                f"{word}EXISTS (SELECT 1 FROM question_tags t WHERE t.Tag = :{key} "
                "AND t.QuestionId = {p}.Id)"
            )
    if query.score is not None:
        values["score"] = query.score
        of_post.append("{score} >= :score")
    if query.user is not None:
        values["user"] = query.user
        of_post.append("{owner} = :user")
    if query.answers is not None:
        values["answers"] = query.answers
        of_question.append("{p}.Answers >= :answers")
    if {"question", "answer"} <= set(query.kinds):
        of_post.append(_NEVER)
    for words, end in ((query.code, "> 0"), (query.without_code, "= 0")):
        for word in words:
            key = f"code{len(values)}"
            values[key] = word
            texts = "coalesce(x.Title, '') || ' ' || coalesce(x.Tags, '') || ' ' || "
            of_text.append(f"instr(lower({texts}coalesce(x.Body, '')), :{key}) {end}")
    return Conditions(of_post, of_question, of_text, query.tags[0] if query.tags else "", values)


START, END = "\x02", "\x03"

# As the tokenizer unicode61 of FTS5 tells words apart.
_WORD = re.compile(r"[^\W_]+")
_WORDS = 36
_ENDING = re.compile(r"(?:ing|ed|es|s|e|y|ies|ly|er|ation|ment)$")


def fold(word: str) -> str:
    """A word as the full-text index compares it: without case and accents."""
    if word.isascii():
        return word.lower()
    parts = unicodedata.normalize("NFKD", word.casefold())
    return "".join(part for part in parts if not unicodedata.combining(part))


def split_terms(words: Sequence[str], *, stemming: bool = False) -> list[str]:
    """The single words of what was asked for, `*` after those that others may start with.

    Args:
        words: What was asked for.
        stemming: Whether other forms of an English word were found, too: with which the first
            letters are the same, all but its ending.
    """
    terms = []
    for text in words:
        for match in _WORD.finditer(text):
            word = fold(match[0])
            stem = _ENDING.sub("", word) if stemming and len(word) > 4 else word
            terms.append(stem + "*" * (text.endswith("*") or stem != word or stemming))
    return terms


def mark(text: str, terms: Sequence[str]) -> str:
    """Text with the words that were found between `START` and `END`."""
    is_found = _matcher(terms)

    def mark_word(match: re.Match[str]) -> str:
        return f"{START}{match[0]}{END}" if is_found(fold(match[0])) else match[0]

    return _WORD.sub(mark_word, text.replace(START, " ").replace(END, " "))


def snippet(text: str, terms: Sequence[str]) -> str:
    """The part of a text with most of the words, marked; its start, if it has none."""
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
    """A test whether a folded word is one of some terms."""
    whole = {term for term in terms if not term.endswith("*")}
    starts = tuple(term[:-1] for term in terms if term.endswith("*"))
    return lambda word: word in whole or word.startswith(starts)
