"""Rows of the dump -> the rows that the filters keep, in the first pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from so2docs.filters import Filters, is_sampled
from so2docs.posts import (
    ANSWER,
    BUCKET_BITS,
    KEY,
    PAIR_BYTES,
    QUESTION,
    REJECTED_ANSWER,
    REJECTED_QUESTION,
    Posts,
    new_bucket,
    number,
    tags,
)

Row = dict[str, Any]
_Check = Callable[[Row], bool]


class Selection:
    """Keeps the rows that pass; only the keys of the others go to the posts."""

    def __init__(self, filters: Filters) -> None:
        self._sample = filters.sample
        self._question_checks = _question_checks(filters)
        self._answer_checks = _answer_checks(filters)

    def __call__(self, found: Posts, rows: list[Row]) -> list[Row]:
        """The rows that are to become posts.

        Args:
            found: Gets the keys and the number of those that are not.
            rows: Attributes of the rows, in the order of the dump.
        """
        kept: list[Row] = []
        share = self._sample
        for row in rows:
            ids = _ids(row)
            if ids is None:
                kept.append(row)
                continue
            kind, question_id, post_id = ids
            if share is not None and not is_sampled(question_id, share):
                key = KEY.pack(question_id, post_id, 0, kind)
                found.rejected += key
            elif all(
                check(row)
                for check in (self._question_checks if kind == QUESTION else self._answer_checks)
            ):
                kept.append(row)
                continue
            else:
                rejected = REJECTED_QUESTION if kind == QUESTION else REJECTED_ANSWER
                key = KEY.pack(question_id, post_id, 0, rejected)
                bucket = found.buckets.setdefault(question_id >> BUCKET_BITS, new_bucket())
                bucket.keys.extend(key)
            found.pairs += key[:PAIR_BYTES]
            found.filtered += 1
        return kept


def _ids(row: Row) -> tuple[int, int, int] | None:
    """Kind, question id and post id; None for a row that will not be a question nor an answer."""
    kind = row.get("PostTypeId")
    kind = QUESTION if kind == "1" else ANSWER if kind == "2" else number(kind or "")
    post_id = _id(row.get("Id", ""))
    question_id = post_id if kind == QUESTION else _id(row.get("ParentId", ""))
    if (
        kind not in (QUESTION, ANSWER)
        or not isinstance(question_id, int)
        or not isinstance(post_id, int)
        or "Answers" in row
    ):
        return None
    return int(kind), question_id, post_id


def _id(text: str) -> int | str:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else number(text)


def _question_checks(filters: Filters) -> list[_Check]:
    """What a question has to pass."""
    checks: list[_Check] = []
    if filters.tags:
        wanted = frozenset(filters.tags)
        if filters.all_tags:
            checks.append(lambda row: wanted.issubset(_tags(row)))
        else:
            checks.append(lambda row: not wanted.isdisjoint(_tags(row)))
    if filters.min_score is not None:
        checks.append(_at_least("Score", filters.min_score))
    if filters.answered:
        checks.append(_at_least("AnswerCount", 1))
    if filters.accepted:
        checks.append(lambda row: bool(row.get("AcceptedAnswerId")))
    # The dump's dates sort as text, and a date sorts before every time of its day.
    since, until = filters.since, filters.until
    if since is not None:
        checks.append(lambda row: row.get("CreationDate", "") >= since)
    if until is not None:
        checks.append(lambda row: "" < row.get("CreationDate", "") < until)
    return checks


def _answer_checks(filters: Filters) -> list[_Check]:
    """What an answer has to pass, besides belonging to a question that does."""
    if not filters.fields.has_answers:
        return [lambda row: False]
    if filters.min_answer_score is not None:
        return [_at_least("Score", filters.min_answer_score)]
    return []


def _at_least(name: str, least: int) -> _Check:
    def check(row: Row) -> bool:
        value = number(row.get(name, ""))
        return isinstance(value, int) and value >= least

    return check


def _tags(row: Row) -> list[str]:
    return tags(row.get("Tags", "").lower())
