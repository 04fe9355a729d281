"""Rows of the dump -> posts: of those rows only that the filters keep, with the chosen fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from so2docs.domain import FIRST_FABRICATED_ID, is_date, is_sampled
from so2docs.options.field_paths import FieldChoice
from so2docs.options.option import IdList
from so2docs.options.table import Filters
from so2docs.parse import posts
from so2docs.parse.keys import (
    ANSWER,
    BUCKET_BITS,
    KEY,
    PAIR_BYTES,
    QUESTION,
    REJECTED_ANSWER,
    REJECTED_QUESTION,
)
from so2docs.parse.posts import Posts, Projection, number, tags
from so2docs.schema import ANSWERS, DATES

Row = dict[str, Any]
_Check = Callable[[Row], bool]
_Ids = tuple[int, int, int]
"""Kind, question id and post id."""


class RowFilter:
    """Makes posts of the rows that pass; of the others, only the keys go to the posts.

    Args:
        filters: What rows have to pass.
        projection: What to make of those that do before they are JSON.
        all_keys: Whether the keys of posts that are not sampled go to the buckets too.
    """

    def __init__(
        self, filters: Filters, projection: Projection | None, *, all_keys: bool = False
    ) -> None:
        self._all_keys = all_keys
        self._sample = filters.sample
        self._drops_fabricated = filters.drop_fabricated
        self._dropped_users = ids_to_drop(filters.drop_users)
        self._dropped_posts = ids_to_drop(filters.drop_posts)
        self._drops = filters.drop_users is not None or filters.drop_posts is not None
        self._projection = projection
        self._checks = {QUESTION: _question_checks(filters), ANSWER: _answer_checks(filters)}
        for checks in self._checks.values():
            checks.extend(_post_checks(filters))

    def add(self, posts_read: Posts, rows: list[Row]) -> None:
        """Turn rows into posts, as `posts.add` does.

        Args:
            posts_read: Where they go.
            rows: Attributes of the rows, in the order of the dump; they are changed in place.
        """
        passed: list[Row] = []
        for row in rows:
            ids = _ids(row, posts_read.reserved)
            is_dropped = self._drops and self._is_dropped(row)
            posts_read.dropped += is_dropped
            if ids is None:
                # The made-up answer has no ParentId.
                if is_dropped or (self._drops_fabricated and is_fabricated(row)):
                    posts_read.filtered += 1
                else:
                    passed.append(row)
                continue
            sampled = self._is_sampled(ids[1])
            if sampled and not is_dropped and all(check(row) for check in self._checks[ids[0]]):
                passed.append(row)
                continue
            # Keys have to be in the order of the dump: of repeated ids, the first one counts.
            if passed:
                posts.add(posts_read, passed, self._projection)
                passed = []
            _reject(ids, posts_read, in_bucket=sampled or self._all_keys)
        posts.add(posts_read, passed, self._projection)

    def _is_dropped(self, row: Row) -> bool:
        """Whether a list names the post or its author; of one that stays, forget such an editor."""
        if number(row.get("Id", "")) in self._dropped_posts:
            return True
        if number(row.get("OwnerUserId", "")) in self._dropped_users:
            return True
        if number(row.get("LastEditorUserId", "")) in self._dropped_users:
            del row["LastEditorUserId"]
            row.pop("LastEditorDisplayName", None)
        return False

    def _is_sampled(self, question_id: int) -> bool:
        return self._sample is None or is_sampled(question_id, self._sample)


def ids_to_drop(listed: IdList | None) -> frozenset[int | str]:
    """The ids that a list names; none without a list."""
    return frozenset() if listed is None else listed.ids


def is_fabricated(row: Row) -> bool:
    """Whether the publisher made a row up, by its id."""
    post_id = number(row.get("Id", ""))
    return isinstance(post_id, int) and post_id >= FIRST_FABRICATED_ID


def _reject(ids: _Ids, posts: Posts, *, in_bucket: bool) -> None:
    """Keep the key of a post: in its bucket, unless all posts of its question are rejected."""
    kind, question_id, post_id = ids
    rejected = REJECTED_QUESTION if kind == QUESTION else REJECTED_ANSWER
    key = KEY.pack(question_id, post_id, 0, rejected)
    if in_bucket:
        posts.buckets[question_id >> BUCKET_BITS].keys.extend(key)
    else:
        posts.rejected += key
    posts.pairs += key[:PAIR_BYTES]
    posts.filtered += 1


def _ids(row: Row, reserved: frozenset[str]) -> _Ids | None:
    """Kind, question id and post id; None for a row that will not be a question nor an answer."""
    kind = row.get("PostTypeId")
    kind = QUESTION if kind == "1" else ANSWER if kind == "2" else number(kind or "")
    post_id = _id(row.get("Id", ""))
    question_id = post_id if kind == QUESTION else _id(row.get("ParentId", ""))
    if (
        kind not in (QUESTION, ANSWER)
        or not isinstance(question_id, int)
        or not isinstance(post_id, int)
        or not reserved.isdisjoint(row)
    ):
        return None
    return int(kind), question_id, post_id


def _id(text: str) -> int | str:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 19 else number(text)


def _question_checks(filters: Filters) -> list[_Check]:
    """The checks for questions."""
    checks: list[_Check] = []
    if filters.tags:
        tags = frozenset(filters.tags)
        if filters.all_tags:
            checks.append(lambda row: tags.issubset(_tags(row)))
        else:
            checks.append(lambda row: not tags.isdisjoint(_tags(row)))
    if filters.min_score is not None:
        checks.append(_at_least("Score", filters.min_score))
    if filters.answered:
        checks.append(_at_least("AnswerCount", 1))
    if filters.min_answers is not None:
        checks.append(_at_least("AnswerCount", filters.min_answers))
    if filters.max_answers is not None:
        checks.append(_at_most("AnswerCount", filters.max_answers))
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
    """The checks for answers, apart from those of their question."""
    if not filters.fields.has_answers:
        return [lambda row: False]
    if filters.min_answer_score is not None:
        return [_at_least("Score", filters.min_answer_score)]
    return []


def _post_checks(filters: Filters) -> list[_Check]:
    """The checks for both."""
    checks: list[_Check] = []
    most = filters.max_body
    if most is not None:
        checks.append(lambda row: len(row.get("Body", "").encode()) <= most)
    if filters.drop_fabricated:
        checks.append(lambda row: not is_fabricated(row))
    return checks


def _at_least(name: str, least: int) -> _Check:
    def check(row: Row) -> bool:
        value = number(row.get(name, ""))
        return isinstance(value, int) and value >= least

    return check


def _at_most(name: str, most: int) -> _Check:
    def check(row: Row) -> bool:
        value = number(row.get(name, ""))
        return isinstance(value, int) and value <= most

    return check


def _tags(row: Row) -> list[str]:
    return tags(row.get("Tags", "").lower())


if TYPE_CHECKING:
    from so2docs.options.table import Options


def make_projection(options: Options) -> Projection | None:
    """Make the function that applies the options to a row; None if they change nothing."""
    steps: list[Projection] = []
    if not options.filters.fields.has_whole_posts:
        steps.append(_choice(options))
    if options.form.has_dates:
        steps.append(_with_dates)
    if len(steps) < 2:
        return steps[0] if steps else None

    def all_steps(row: Row) -> Row:
        for step in steps:
            row = step(row)
        return row

    return all_steps


def projection_of_table(options: Options) -> Projection | None:
    """Make the function that applies the options to a row of a table; None if they change nothing.

    Its fields are chosen when it is nested: only then is it known where.
    """
    return _with_dates if options.form.has_dates else None


def _choice(options: Options) -> Projection:
    fields = options.filters.fields
    needed = fields.hidden(options.nest)
    questions = FieldChoice(fields, also=needed)
    answers = FieldChoice(fields, ANSWERS, needed)

    def choose(row: Row) -> Row:
        return (questions if row["PostTypeId"] == QUESTION else answers).of(row)

    return choose


def _with_dates(row: Row) -> Row:
    """Dates as MongoDB's Extended JSON writes them; anything else stays unchanged."""
    return {
        name: {"$date": f"{value}Z"} if name in DATES and is_date(value) else value
        for name, value in row.items()
    }
