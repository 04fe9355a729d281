"""What somebody typed into the search field -> words for the full-text index, and filters. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
