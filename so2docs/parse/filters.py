"""The filters of questions and answers: the attribute that each filter tests, and the test.

These definitions apply to the rows of a dump, whose values are texts, to finished documents, and to
the columns of flat tables, whose values are typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import Any, NamedTuple

from so2docs.domain import FIRST_FABRICATED_ID, is_sampled, sample_place
from so2docs.options.table import PartFilters
from so2docs.parse.posts import READ
from so2docs.schema import POSTS

_ID_BITS, _KEY_BITS = 64, 128
_LOWEST_ID = 1 << 63
_MOST_UNSORTED = 1 << 16


class Condition(NamedTuple):
    """A condition on an attribute of a post.

    Attributes:
        attribute: Name of the attribute.
        passes: Tests the typed value, in which dates are Unix times in milliseconds; the value is
            None if the attribute is missing or does not fit its type.
    """

    attribute: str
    passes: Callable[[Any], bool]

    def holds(self, post: Mapping[str, Any]) -> bool:
        """Test a row or a document, whose values are texts or typed."""
        value = post.get(self.attribute)
        if isinstance(value, str):
            value = READ[POSTS.attributes[self.attribute]](value)
        return self.passes(value)


NOT_FABRICATED = Condition("Id", lambda post_id: post_id is None or post_id < FIRST_FABRICATED_ID)
"""The condition that the publisher did not make a post up."""


def question_conditions(filters: PartFilters) -> list[Condition]:
    """Return the conditions on the attributes of a question."""
    since, until = map(limit_milliseconds, (filters.since, filters.until))
    limits = (
        ("Score", filters.min_score, None),
        ("AnswerCount", 1 if filters.answered else None, None),
        ("AnswerCount", filters.min_answers, filters.max_answers),
        ("CreationDate", since, None if until is None else until - 1),
    )
    conditions = []
    if filters.tags:
        conditions.append(Condition("Tags", _tag_test(filters.tags, all_tags=filters.all_tags)))
    conditions += [
        Condition(name, partial(_is_within, lowest, highest))
        for name, lowest, highest in limits
        if (lowest, highest) != (None, None)
    ]
    if filters.accepted:
        conditions.append(Condition("AcceptedAnswerId", bool))
    share = filters.sample
    if share is not None:
        conditions.append(Condition("Id", lambda post_id: is_sampled(post_id, share)))
    return conditions


def answer_conditions(filters: PartFilters) -> list[Condition]:
    """Return the conditions on the attributes of an answer, apart from those of its question."""
    lowest = filters.min_answer_score
    return [] if lowest is None else [Condition("Score", partial(_is_within, lowest, None))]


def post_conditions(filters: PartFilters) -> list[Condition]:
    """Return the conditions on the attributes of both questions and answers."""
    conditions = [NOT_FABRICATED] if filters.drop_fabricated else []
    limit = filters.max_body
    if limit is not None:
        conditions.append(Condition("Body", lambda body: len((body or "").encode()) <= limit))
    return conditions


def sample_key(question_id: int) -> int:
    """Return the key of a question, the hash and the id; a sample has those of smallest key."""
    return sample_place(question_id) << _ID_BITS | question_id + _LOWEST_ID


def choose_sample(question_ids: Iterable[int], size: int) -> list[int]:
    """Return the keys of the `size` questions with the smallest hashes, in ascending order.

    Memory depends on the size of the sample, not on the number of questions. Hash and id in one
    integer take a third of the memory of a pair.
    """
    keys: list[int] = []
    greatest = 1 << _KEY_BITS
    for key in map(sample_key, question_ids):
        if key < greatest:
            keys.append(key)
            if len(keys) > size + size // 4 + _MOST_UNSORTED:
                keys = sorted(keys)[:size]
                greatest = keys[-1]
    return sorted(keys)[:size]


def sampled_id(key: int) -> int:
    """Return the question id in a key of a sample."""
    return (key & (1 << _ID_BITS) - 1) - _LOWEST_ID


def _is_within(lowest: int | None, highest: int | None, value: Any) -> bool:
    """Whether a value is an integer within the limits; None means no limit."""
    return (
        isinstance(value, int)
        and (lowest is None or value >= lowest)
        and (highest is None or value <= highest)
    )


def limit_milliseconds(limit: str | None) -> int | None:
    """Convert a date, possibly without a time, to Unix time in milliseconds."""
    if limit is None:
        return None
    return round(datetime.fromisoformat(limit).replace(tzinfo=UTC).timestamp() * 1000)


def _tag_test(wanted: tuple[str, ...], *, all_tags: bool) -> Callable[[Any], bool]:
    """Make a test whether tags match one of the wanted tags and patterns, or all of them."""

    @lru_cache(maxsize=1 << 16)
    def find_wanted(tag: str) -> frozenset[str]:
        return frozenset(name for name in wanted if fnmatchcase(tag.lower(), name))

    def passes(tags: Iterable[str] | None) -> bool:
        matched = frozenset().union(*map(find_wanted, tags or ()))
        return len(matched) == len(wanted) if all_tags else bool(matched)

    return passes
