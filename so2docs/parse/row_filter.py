"""Turn rows that pass the filters into posts with the selected fields."""

from __future__ import annotations

from dataclasses import replace

from so2docs.domain import is_sampled
from so2docs.options.field_paths import FieldChoice
from so2docs.options.table import Filters, Options
from so2docs.parse import posts
from so2docs.parse.filters import (
    NOT_FABRICATED,
    answer_conditions,
    post_conditions,
    question_conditions,
)
from so2docs.parse.keys import (
    ANSWER,
    PAIR,
    QUESTION,
    REJECTED_ANSWER,
    REJECTED_QUESTION,
)
from so2docs.parse.opt_outs import OptOuts
from so2docs.parse.posts import Projection, RecordBuffer, number
from so2docs.schema import ANSWERS, BODY_FROM, POSTS, Row

_Ids = tuple[int, int, int]
"""Kind, question id and post id."""


class RowFilter:
    """Turns the posts that pass the filters into records; keeps only the keys of other posts.

    Args:
        filters: The filters.
        projection: Changes the posts that pass; None to leave them unchanged.
    """

    def __init__(self, filters: Filters, projection: Projection | None) -> None:
        self._sample = filters.sample
        self._drops_fabricated = filters.drop_fabricated
        self._opt_outs = OptOuts(filters, POSTS)
        self._projection = projection
        # The sample is tested here, because the answers to a question are in the sample with it.
        of_questions = question_conditions(replace(filters, sample=None))
        of_posts = post_conditions(filters)
        self._conditions = {
            QUESTION: of_questions + of_posts,
            ANSWER: answer_conditions(filters) + of_posts,
        }
        self._with_answers = filters.selected.has_answers

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
                if is_dropped or (self._drops_fabricated and not NOT_FABRICATED.holds(row)):
                    buffer.filtered += 1
                    if is_dropped:
                        _reject_rows_of(row, buffer)
                else:
                    passed.append(row)
                continue
            sampled = self._sample is None or is_sampled(ids[1], self._sample)
            if sampled and not is_dropped and self.passes(ids[0], row):
                passed.append(row)
                continue
            # Keep the keys in the order of the dump, because the first post with a repeated id is
            # kept.
            if passed:
                posts.add(buffer, passed, self._projection)
                passed = []
            kind, question_id, post_id = ids
            rejected = REJECTED_QUESTION if kind == QUESTION else REJECTED_ANSWER
            json = self.keep_of_rejected(kind, row)
            buffer.pairs += buffer.add(question_id, post_id, 0, rejected, json)[: PAIR.size]
            buffer.filtered += 1
        posts.add(buffer, passed, self._projection)

    def passes(self, kind: int, row: Row) -> bool:
        """Whether the attributes of a question or an answer, typed or not, pass the filters."""
        if kind == ANSWER and not self._with_answers:
            return False
        return all(condition.holds(row) for condition in self._conditions[kind])

    def keep_of_rejected(self, kind: int, row: Row) -> bytes:
        """Return the JSON to keep of a rejected post; usually only its key is kept."""
        return b""


def _reject_rows_of(row: Row, buffer: RecordBuffer) -> None:
    """Add the key of a dropped post that is neither question nor answer, as a rejected question.

    Because of this key, the rows of this post in other tables are filtered, not strays.
    """
    post_id = number(row.get("Id", ""))
    if isinstance(post_id, int):
        buffer.pairs += buffer.add(post_id, post_id, 0, REJECTED_QUESTION, b"")[: PAIR.size]


def find_ids(row: Row, reserved: frozenset[str]) -> _Ids | None:
    """Return kind, question id and post id; None if a row is not a usable question or answer."""
    kind, post_id = number(row.get("PostTypeId", "")), number(row.get("Id", ""))
    question_id = post_id if kind == QUESTION else number(row.get("ParentId", ""))
    if (
        kind not in (QUESTION, ANSWER)
        or not isinstance(question_id, int)
        or not isinstance(post_id, int)
        or not reserved.isdisjoint(row)
    ):
        return None
    return int(kind), question_id, post_id


def make_projection(options: Options) -> Projection | None:
    """Return a function that selects the fields of a post; None if the options keep all fields."""
    fields = options.filters.selected
    if fields.has_whole_posts and not (options.filters.as_of and not fields.has(BODY_FROM.key)):
        return None
    needed = fields.hidden(options.nest)
    questions = FieldChoice(fields, also=needed)
    answers = FieldChoice(fields, ANSWERS, needed)

    def choose(row: Row) -> Row:
        return (questions if row["PostTypeId"] == QUESTION else answers).of(row)

    return choose
