"""Which questions and answers a conversion keeps, checked once.

Rows are looked at in the first pass, before anything is made of them, so that what is rejected
costs little more than being parsed. A rejected post leaves its key: the second pass must know that
the question of an answer was in the dump, and which of two posts with one id came first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from hashlib import blake2b
from typing import Any, Unpack

from so2docs.domain import is_typed_date
from so2docs.errors import OptionError, flag
from so2docs.options.field_paths import Fields, fields_of
from so2docs.options.keywords import FilterKeywords
from so2docs.options.sizes import size

_WHOLE = 1 << 64

FIRST_FABRICATED_ID = 1_000_000_001
"""Ids from here on are of rows that the publisher made up.

Two releases, of 2025-06-30 and after, have a question and an answer like that on every site; posts
themselves are numbered by the site, and Stack Overflow, the largest, is far from here."""


@dataclass(frozen=True, slots=True)
class Filters:
    """What is kept; `convert` says what each option means. All that are given must hold.

    Attributes:
        tags: Tags in lower case.
        all_tags: Whether a question needs all of them, not any.
        min_score: Least score of a question.
        min_answer_score: Least score of an answer.
        min_answers: Least number of answers of a question.
        max_body: Most bytes of a body, of questions and of answers.
        drop_fabricated: Whether to leave out what the publisher made up.
        answered: Whether a question needs an answer.
        accepted: Whether a question needs an accepted answer.
        since: Earliest creation date of a question, in the form of the dump.
        until: The date that it must be before.
        sample: Share of the questions, of 2^64; None for all.
        limit: Most documents.
        fields: What posts keep of their attributes.
    """

    tags: tuple[str, ...] = ()
    all_tags: bool = False
    min_score: int | None = None
    min_answer_score: int | None = None
    min_answers: int | None = None
    max_body: int | None = None
    drop_fabricated: bool = False
    answered: bool = False
    accepted: bool = False
    since: str | None = None
    until: str | None = None
    sample: int | None = None
    limit: int | None = None
    fields: Fields = field(default_factory=Fields)

    @property
    def select(self) -> bool:
        """Whether the first pass leaves out rows."""
        return self != Filters(limit=self.limit, fields=self.fields) or not self.fields.has_answers

    @property
    def expected_share(self) -> float:
        """Share of the dump that is at least left; 0 where that cannot be told beforehand."""
        if self != Filters(sample=self.sample):
            return 0.0
        return 1.0 if self.sample is None else self.sample / _WHOLE


def filters_of(**given: Unpack[FilterKeywords]) -> Filters:
    """The filters that some keywords ask for.

    Raises:
        OptionError: A value is not allowed, or two contradict each other.
    """
    asked: dict[str, Any] = {**given}
    tags = asked.pop("tags", ())
    names = tuple(_tag(tag) for tag in ([tags] if isinstance(tags, str) else tags))
    fields = fields_of(asked.pop("fields", None), asked.pop("without", None))
    for name in ("since", "until"):
        asked[name] = _date(name, asked.get(name))
    share = _share(asked.pop("sample", None))
    asked["max_body"] = _most_bytes(asked.get("max_body"))
    filters = Filters(**asked, tags=names, sample=share, fields=fields)
    if filters.all_tags and not names:
        raise OptionError(f"{flag('all_tags', True)} needs {flag('tags')}")
    if filters.since is not None and filters.until is not None and filters.since >= filters.until:
        raise OptionError(
            f"{flag('since', filters.since)} and {flag('until', filters.until)} leave nothing "
            "between them"
        )
    if filters.limit is not None and filters.limit < 1:
        raise OptionError(f"{flag('limit')} is {filters.limit}; it must be 1 or more")
    if filters.min_answer_score is not None and not fields.has_answers:
        raise OptionError(f"{flag('min_answer_score')} contradicts leaving out the answers")
    return filters


def _tag(text: str) -> str:
    if not text or re.search(r"[<>|,\s]", text):
        raise OptionError(
            f"{flag('tags')} is {text!r}; it must be one tag, such as python, or several"
        )
    return text.lower()


def _date(name: str, given: str | date | None) -> str | None:
    """A date or time in the form of the dump, UTC."""
    if given is None:
        return None
    if isinstance(given, datetime):
        if given.tzinfo is not None:
            given = given.astimezone(UTC)
        return given.replace(tzinfo=None).isoformat(timespec="milliseconds")
    text = str(given)
    found = text.strip().replace(" ", "T").removesuffix("Z")
    try:
        if not is_typed_date(found):
            raise ValueError
        datetime.fromisoformat(found)
    except ValueError:
        raise OptionError(
            f"{flag(name)} is {text!r}; it must be a date such as 2020-01-31 or "
            "2020-01-31T12:00:00, UTC"
        ) from None
    return found


def _most_bytes(given: str | int | None) -> int | None:
    found = None if given is None else size(given)
    if given is not None and not found:
        raise OptionError(
            f"{flag('max_body')} is {given!r}; it must be a size such as 20000 or 20kB"
        )
    return found


def _share(sample: str | float | None) -> int | None:
    if sample is None:
        return None
    text = str(sample).strip()
    try:
        percent = text.endswith("%")
        share = Decimal(text.removesuffix("%")) / (100 if percent else 1)
        if not 0 < share <= 1 or (share == 1 and not percent):
            raise ValueError
    except (InvalidOperation, ValueError):
        raise OptionError(
            f"{flag('sample')} is {sample!r}; it must be above 0% and at most 100%, such as "
            "1% or 0.01"
        ) from None
    return int(share * _WHOLE)


def is_sampled(question_id: int, share: int) -> bool:
    """Whether a question is in the sample of this share, of 2^64.

    Depends on the id only: the first eight bytes of the BLAKE2b hash of its decimal digits, read as
    a big-endian number, are below the share. So a sample is the same from every dump, and part of
    every larger one.
    """
    digest = blake2b(b"%d" % question_id, digest_size=8).digest()
    return int.from_bytes(digest, "big") < share
