"""Rows of tables as records, and memory left after parsing."""

import gc
import tracemalloc
from collections.abc import Iterable

from so2docs.parse import rows
from so2docs.parse.keys import KEY
from so2docs.parse.posts import RecordBuffer, type_numbers
from so2docs.parse.table_rows import add_votes, unpack_votes

NUMBERS = frozenset({"Id", "PostId"})


def questions(post_ids: Iterable[int]) -> dict[int, int]:
    """Map posts below 100 to question 1; other posts are not in the dump."""
    return {post_id: 1 for post_id in post_ids if post_id < 100}


def records(parsed: RecordBuffer) -> list[tuple[int, int, int, int]]:
    return [
        key for _, bucket in sorted(parsed.buckets.items()) for key in KEY.iter_unpack(bucket.keys)
    ]


def test_numbers() -> None:
    numbers = {"7": 7, "-7": -7, "007": 7, "9223372036854775807": 2**63 - 1}
    texts = ("9223372036854775808", "", "1e3", "\u0661", " 1")
    for text, value in {**numbers, **dict(zip(texts, texts, strict=True))}.items():
        row = {"Id": text, "PostId": "5", "Text": text}
        type_numbers(row, NUMBERS)
        assert row == {"Id": value, "PostId": 5, "Text": text}


def test_votes_out_of_the_ordinary_are_counted_as_well() -> None:
    parsed = RecordBuffer()
    pairs = [("-7", "-2"), ("0000000000000000000000008", "2"), ("8", "2147483647"), ("x", "2")]
    add_votes(parsed, [{"PostId": post, "VoteTypeId": kind} for post, kind in pairs], questions)
    add_votes(parsed, [{"PostId": "8", "VoteTypeId": "2147483648"}, {"PostId": "8"}], questions)
    counted = [(key[1], unpack_votes(key[2])) for key in records(parsed)]
    assert counted == [(-7, (-2, 1)), (8, (2, 1)), (8, (2147483647, 1))]
    assert parsed.stray_reasons == {
        "vote_invalid_post_id": 1,
        "vote_invalid_vote_type_id": 1,
        "vote_missing_vote_type_id": 1,
    }


def test_a_slice_is_freed_after_its_last_use() -> None:
    data = b"".join(
        b'<row Id="%d" PostId="7" VoteTypeId="2" />\n' % number for number in range(500)
    )
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        sizes = []
        for _ in range(8):
            assert sum(len(part.rows) for part in rows.parse(data)) == 500
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
        gc.enable()
    assert sizes[-1] - sizes[0] < 100_000
