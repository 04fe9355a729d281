"""Nesting of posts in any order of their rows, compared with the oracle."""

import json
import random
import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.dumps import answer, dump_of, question
from support.oracle import AnswersBy, nest

from so2docs import merge
from so2docs.counts import RowCounts
from so2docs.parse import posts
from so2docs.parse.keys import KEY, QUESTION
from so2docs.parse.table_rows import count_votes
from so2docs.schema import VOTE

SMALL = st.integers(1, 9)
ROWS = st.lists(
    st.one_of(
        st.builds(question, SMALL, AcceptedAnswerId=SMALL),
        st.builds(question, SMALL),
        st.builds(answer, SMALL, SMALL, Score=st.integers(-2, 2)),
    ),
    max_size=25,
)


def as_posts(rows: list[bytes]) -> posts.RecordBuffer:
    """Turn rows into the posts of a chunk."""
    parsed = posts.RecordBuffer()
    attributes = [dict(re.findall(r'(\w+)="([^"]*)"', row.decode())) for row in rows]
    posts.add(parsed, attributes)
    return parsed


def nested(
    rows: list[bytes], cuts: list[int], answers_by: AnswersBy, parts: int
) -> tuple[list[Any], list[Any], RowCounts]:
    """Nest rows from several chunks, in several parts; return documents and strays."""
    edges = [0, *sorted(cut % (len(rows) + 1) for cut in cuts), len(rows)]
    chunks = [as_posts(rows[a:b]) for a, b in pairwise(edges)]
    documents, strays, tally = [], [], RowCounts()
    for part in range(parts):
        ids = range(part * 10 // parts, (part + 1) * 10 // parts)
        blocks = [(bytes(b.keys), bytes(b.json)) for c in chunks for b in c.buckets.values()]
        nesting = merge.DocumentBuilder(merge.gather(blocks, ids), answers_by)
        for document in nesting:
            line = b"".join((*document.parts, b"}"))
            assert line.endswith(b"]}")
            assert document.question_id in ids
            documents.append(json.loads(line))
        strays += map(json.loads, nesting.strays)
        tally.questions += nesting.counts.questions
        tally.answers += nesting.counts.answers
        tally.strays += nesting.counts.strays
    return documents, strays, tally


@given(ROWS, st.lists(st.integers(0, 30), max_size=4), st.sampled_from(["id", "votes"]), SMALL)
def test_any_rows_in_any_chunks(
    rows: list[bytes], cuts: list[int], answers_by: AnswersBy, parts: int
) -> None:
    oracle = nest(dump_of(*rows), answers_by)
    documents, strays, tally = nested(rows, cuts, answers_by, parts)
    assert documents == oracle.documents
    assert strays == oracle.strays
    assert (tally.questions, tally.answers) == (oracle.questions, oracle.answers)
    assert dict(tally.strays) == oracle.strays_by_reason
    assert len(rows) == tally.questions + tally.answers + tally.strays.total()


def test_sums_votes_while_reading_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Votes in random order: every block has votes of every post."""
    monkeypatch.setattr(merge, "_MOST_VOTE_BYTES", merge._MOST_VOTE_BYTES // 10)
    rng = random.Random(1)
    others = [(KEY.pack(1, 1, 1, 2 << 4 | QUESTION), b"{}"), (KEY.pack(2, 2, 0, 3), b"")]
    blocks = [others[0]]
    for _ in range(100):
        votes = [(rng.randrange(50), rng.choice((2, 3))) for _ in range(300)]
        keys = b"".join(KEY.pack(n, n, kind << 32 | 1, VOTE) for n, kind in votes)
        blocks.append((keys, b""))
    blocks.append(others[1])
    sums: list[int] = []

    def count(keys: bytes) -> bytes:
        sums.append(len(keys))
        return count_votes(keys)

    *before, (votes_keys, json) = merge.merge_votes(blocks, count)
    assert before == others
    assert json == b""
    assert votes_keys == count_votes(b"".join(keys for keys, _ in blocks[1:-1]))
    assert len(sums) > 2
    assert max(sums) < sum(sums) / 3
