"""Turn rows that pass the filters into posts with the selected fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from fnmatch import fnmatchcase
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from so2docs.domain import FIRST_FABRICATED_ID, is_date, is_sampled
from so2docs.options.field_paths import FieldChoice
from so2docs.options.option import tag_filter
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
from so2docs.parse.opt_outs import OptOuts
from so2docs.parse.posts import Projection, RecordBuffer, number, tags
from so2docs.schema import ANSWERS, BODY_FROM, DATES, POSTS

Row = dict[str, Any]
_Check = Callable[[Row], bool]
_Ids = tuple[int, int, int]
"""Kind, question id and post id."""


class RowFilter:
    """Turns the posts that pass the filters into records; keeps only the keys of other posts."""

    def __init__(
        self, filters: Filters, projection: Projection | None, *, all_keys: bool = False
    ) -> None:
        self._all_keys = all_keys
        self._sample = filters.sample
        self._drops_fabricated = filters.drop_fabricated
        self._opt_outs = OptOuts(filters, POSTS)
        self._projection = projection
        self._is_similar = lru_cache(1 << 16)(partial(is_similar, filters.tags))
        self._tags = frozenset(filters.tags)
        self._has_tags = tag_filter(self._tags, all_tags=filters.all_tags)
        self._checks = {QUESTION: _question_checks(filters), ANSWER: _answer_checks(filters)}
        for checks in self._checks.values():
            checks.extend(_post_checks(filters))

    def add(self, buffer: RecordBuffer, rows: list[Row]) -> None:
        """Turn rows into posts, as `posts.add` does.

        Args:
            buffer: The buffer to add the posts to.
            rows: Attributes of the rows, in the order of the dump; they are changed in place.
        """
        passed: list[Row] = []
        for row in rows:
            ids = find_ids(row, buffer.reserved)
            is_dropped = bool(self._opt_outs) and self._opt_outs.drops(row, buffer)
            if ids is None:
                # Check rows without ids too, since one of the made-up answers has no ParentId.
                if is_dropped or (self._drops_fabricated and is_fabricated(row)):
                    buffer.filtered += 1
                    if is_dropped:
                        _reject_rows_of(row, buffer)
                else:
                    passed.append(row)
                continue
            sampled = self._is_sampled(ids[1])
            passes = self.passes(ids[0], row, buffer.similar_tags)
            if passes and sampled and not is_dropped:
                passed.append(row)
                continue
            # Keep the keys in the order of the dump, because the first post with a repeated id is
            # kept.
            if passed:
                posts.add(buffer, passed, self._projection)
                passed = []
            _reject(ids, buffer, in_bucket=sampled or self._all_keys)
        posts.add(buffer, passed, self._projection)

    def passes(self, kind: int, row: Row, similar_tags: Counter[str]) -> bool:
        """Whether the attributes of a question or an answer, typed or not, pass the filters.

        Args:
            kind: The type of the post.
            row: The attributes.
            similar_tags: Counts of the tags similar to a wanted tag, to add to.
        """
        is_tagged = not self._tags or kind != QUESTION or self._match_tags(row, similar_tags)
        return is_tagged and all(check(row) for check in self._checks[kind])

    def _match_tags(self, row: Row, similar_tags: Counter[str]) -> bool:
        """Whether the tags of a question pass the filter; count tags similar to a wanted tag."""
        value = row.get("Tags", "")
        tag_names = [tag.lower() for tag in (tags(value) if isinstance(value, str) else value)]
        similar_tags.update(filter(self._is_similar, tag_names))
        return self._has_tags(tag_names)

    def _is_sampled(self, question_id: int) -> bool:
        return self._sample is None or is_sampled(question_id, self._sample)


def is_fabricated(row: Row) -> bool:
    """Whether a row was made up by the publisher, according to its id."""
    post_id = number(row.get("Id", ""))
    return isinstance(post_id, int) and post_id >= FIRST_FABRICATED_ID


def _reject(ids: _Ids, buffer: RecordBuffer, *, in_bucket: bool) -> None:
    """Store the key of a rejected post: in its bucket if `in_bucket`, otherwise in `rejected`."""
    kind, question_id, post_id = ids
    rejected = REJECTED_QUESTION if kind == QUESTION else REJECTED_ANSWER
    key = KEY.pack(question_id, post_id, 0, rejected)
    if in_bucket:
        buffer.buckets[question_id >> BUCKET_BITS].keys.extend(key)
    else:
        buffer.rejected += key
    buffer.pairs += key[:PAIR_BYTES]
    buffer.filtered += 1


def _reject_rows_of(row: Row, buffer: RecordBuffer) -> None:
    """Add the key of a dropped post that is neither question nor answer, as a rejected question.

    Because of this key, the rows of this post in other tables are filtered, not strays.
    """
    post_id = _id(row.get("Id", ""))
    if isinstance(post_id, int):
        key = KEY.pack(post_id, post_id, 0, REJECTED_QUESTION)
        buffer.buckets[post_id >> BUCKET_BITS].keys.extend(key)


def find_ids(row: Row, reserved: frozenset[str]) -> _Ids | None:
    """Return kind, question id and post id; None if a row is not a usable question or answer."""
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
    """Return the checks that a question must pass."""
    limits = (
        ("Score", filters.min_score, None),
        ("AnswerCount", 1 if filters.answered else None, None),
        ("AnswerCount", filters.min_answers, filters.max_answers),
    )
    checks = [_within(*limit) for limit in limits if limit[1:] != (None, None)]
    if filters.accepted:
        checks.append(lambda row: bool(row.get("AcceptedAnswerId")))
    # Dates in a dump sort as text, and a date without a time sorts before all times of that day.
    since, until = filters.since, filters.until
    if since is not None:
        checks.append(lambda row: row.get("CreationDate", "") >= since)
    if until is not None:
        checks.append(lambda row: "" < row.get("CreationDate", "") < until)
    return checks


def _answer_checks(filters: Filters) -> list[_Check]:
    """Return the checks that an answer must pass, apart from those of its question."""
    if not filters.fields.has_answers:
        return [lambda row: False]
    if filters.min_answer_score is not None:
        return [_within("Score", filters.min_answer_score, None)]
    return []


def _post_checks(filters: Filters) -> list[_Check]:
    """Return the checks that both questions and answers must pass."""
    checks: list[_Check] = []
    limit = filters.max_body
    if limit is not None:
        checks.append(lambda row: len(row.get("Body", "").encode()) <= limit)
    if filters.as_of is not None:
        before = filters.before
        checks.append(lambda row: row.get("CreationDate", before) < before)
    if filters.drop_fabricated:
        checks.append(lambda row: not is_fabricated(row))
    return checks


def _within(name: str, lowest: int | None, highest: int | None) -> _Check:
    """Return a check that an attribute is an integer within the limits; None means no limit."""

    def check(row: Row) -> bool:
        value = row.get(name, "")
        value = number(value) if isinstance(value, str) else value
        if not isinstance(value, int):
            return False
        return (lowest is None or value >= lowest) and (highest is None or value <= highest)

    return check


def is_similar(wanted: Iterable[str], tag: str) -> bool:
    """Whether a tag equals, contains, matches or resembles a wanted tag."""
    from difflib import get_close_matches

    stems = [name.strip("*?%") for name in wanted]
    contains = any(stem and stem in tag for stem in stems)
    return (
        contains
        or any(fnmatchcase(tag, name) for name in wanted)
        or bool(get_close_matches(tag, stems, 1, 0.7))
    )


if TYPE_CHECKING:
    from so2docs.options.table import Options


def make_projection(options: Options) -> Projection | None:
    """Return a function that selects the fields of a post and converts its dates.

    None if the options keep all fields and leave dates unchanged.
    """
    steps: list[Projection] = []
    fields = options.filters.fields
    if not fields.has_whole_posts or (options.filters.as_of and not fields.has(BODY_FROM.key)):
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
    """Return a function that converts the dates in rows of a table; None if they stay unchanged.

    The fields of the row are selected later, when it is nested, because they depend on its position
    in the document.
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
    """Convert dates to MongoDB's Extended JSON; other values stay unchanged."""
    return {
        name: {"$date": f"{value}Z"} if name in DATES and is_date(value) else value
        for name, value in row.items()
    }
