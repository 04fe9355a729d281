"""Sorting and joining by the compiled core: as the reference does, and no byte beyond a block."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from so2docs import merge
from so2docs.passes import joined
from so2docs.posts import core
from so2docs.posts.keys import (
    ANSWER,
    BUCKET_BITS,
    KEY,
    QUESTION,
    REJECTED_ANSWER,
    REJECTED_QUESTION,
)

pytestmark = pytest.mark.skipif(core.built() == "python", reason="no compiled core")

IDS = st.integers(0, 6)
KINDS = (QUESTION, ANSWER, ANSWER, REJECTED_QUESTION, REJECTED_ANSWER)
QUESTIONS = (QUESTION, REJECTED_QUESTION)
POST = st.tuples(IDS, IDS, st.integers(-2, 6), st.sampled_from(KINDS), st.integers(0, 2)).map(
    lambda post: (post[1], *post[1:]) if post[3] in QUESTIONS else post
)
BLOCKS = st.lists(st.lists(POST, max_size=12), max_size=4)
FORM = core.JoinedForm(b',"Answers":[', with_answers=True, by_votes=False)


def as_block(posts: list[tuple[int, int, int, int, int]]) -> tuple[bytes, bytes]:
    """Keys and JSON of posts, of which some have no fields."""
    jsons = [
        b"" if post[3] > ANSWER else b"{%b}" % b",".join([b'"Id":%d' % post[1]] * post[4])
        for post in posts
    ]
    keys = [
        KEY.pack(question_id, post_id, rank, len(json) << 4 | kind)
        for (question_id, post_id, rank, kind, _), json in zip(posts, jsons, strict=True)
    ]
    return b"".join(keys), b"".join(jsons)


def outcome(nesting: merge.Nesting) -> Any:
    """What comes of it, in the end."""
    documents = [(found.question_id, b"".join(found.parts), found.size) for found in nesting]
    return documents, nesting.strays, nesting.tally


@given(
    BLOCKS,
    st.sampled_from(["id", "votes"]),
    st.sampled_from([b"", b'"Site":"a"']),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
)
def test_as_the_reference(
    posts: Any, answers_by: Any, extra: bytes, limit: int | None, with_answers: bool
) -> None:
    blocks = [as_block(block) for block in posts]
    options: Any = {"extra": extra, "limit": limit, "with_answers": with_answers}
    records = merge.gather(blocks, range(1 << BUCKET_BITS))
    expected = outcome(merge.Nesting(records, answers_by, **options))
    assert outcome(joined.JoinedNesting(blocks, answers_by, **options)) == expected


def test_a_call_ends_between_two_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joined, "ENOUGH_BYTES", 1)
    blocks = [
        as_block([(n, m, 0, QUESTION if n == m else ANSWER, 1) for n in range(9) for m in range(9)])
    ]
    found = outcome(joined.JoinedNesting(blocks))
    assert found == outcome(merge.Nesting(merge.gather(blocks, range(1 << BUCKET_BITS))))
    assert found[2].questions == 9


@pytest.mark.parametrize(
    "block",
    [
        (KEY.pack(1, 1, 0, 2 << 4 | 1), b"{"),
        (KEY.pack(1, 1, 0, 2 << 4 | 1), b"{}}"),
        (KEY.pack(1, 1, 0, -1), b"{}"),
        (KEY.pack(1, 1, 0, 1 << 62), b"{}"),
        (KEY.pack(1, 1, 0, 2 << 4 | 1)[:-1], b"{}"),
        (b"", b"{}"),
    ],
)
def test_keys_that_are_not_of_their_json(block: tuple[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match="do not belong together"):
        core.sort_posts([(b"", b""), block])


def test_blocks_that_were_not_sorted() -> None:
    blocks = [as_block([(1, 1, 0, QUESTION, 1), (1, 2, 0, ANSWER, 1)])]
    posts = core.sort_posts(blocks)
    shorter = [(blocks[0][0], blocks[0][1][:-1])]
    for others in ([], shorter, [(b"", b"")]):
        with pytest.raises(ValueError, match="not the blocks that were sorted"):
            core.join_posts(others, posts, 0, 1, FORM)
    without_json = [(KEY.pack(1, 1, 0, QUESTION), b"")]
    sorted_ = core.sort_posts(without_json)
    assert core.join_posts(without_json, sorted_, 0, 1, FORM) == [(1, 1, 0, None)]
    for first in (-1, 3):
        with pytest.raises(ValueError, match="there are 2 posts"):
            core.join_posts(blocks, posts, first, 1, FORM)
    for wrong in ([b"", b""], [(b"",)], [(b"", 1)], ["ab"]):
        with pytest.raises(TypeError):
            core.sort_posts(wrong)  # type: ignore[arg-type]
