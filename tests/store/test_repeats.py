"""Repeated ids, compared with plain sets, and their memory."""

import struct
import sys
import tracemalloc
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from so2docs.parse import repeats
from so2docs.parse.keys import KEY, integers

IDS = st.one_of(st.integers(0, 20), st.integers(4090, 4100), st.integers(-(2**63), 2**63 - 1))
PAIRS = st.lists(st.tuples(st.integers(1, 5), IDS), max_size=30)


def columns(pairs: list[tuple[int, int]]) -> tuple["array[int]", "array[int]"]:
    return array("q", [question for question, _ in pairs]), array("q", [post for _, post in pairs])


def keys_of(pairs: list[tuple[int, int]]) -> bytes:
    return b"".join(KEY.pack(question_id, post_id, 0, 0) for question_id, post_id in pairs)


@settings(max_examples=40)
@given(st.lists(PAIRS, max_size=5), st.integers(1, 4))
def test_owners_are_the_first_questions(chunks: list[list[tuple[int, int]]], at_once: int) -> None:
    seen, within = repeats.SeenIds(), {}
    for number, pairs in enumerate(chunks):
        pages, first_questions = repeats.of_chunk(*columns(pairs))
        seen.add(pages)
        if first_questions:
            within[number] = first_questions
    # The blocks of a chunk are in the order of buckets, not of the dump.
    keys = [(number, keys_of(sorted(pairs))) for number, pairs in enumerate(chunks)]
    owners = repeats.first_questions(lambda: keys, seen.repeated, within, at_once)
    first: dict[int, int] = {}
    several: set[int] = set()
    for question_id, post_id in [pair for pairs in chunks for pair in pairs]:
        if first.setdefault(post_id, question_id) != question_id:
            several.add(post_id)
    assert owners == {post_id: first[post_id] for post_id in several}


@pytest.mark.long
def test_repeated_ids_take_bounded_memory() -> None:
    """Each id takes one bit, and only the questions of one run are in memory."""
    count = 6_000
    pages, _ = repeats.of_chunk(*columns([(post_id, post_id) for post_id in range(count)]))
    keys = keys_of([(post_id, post_id) for post_id in range(count)])

    def peak(at_once: int) -> int:
        seen = repeats.SeenIds()
        tracemalloc.start()
        try:
            seen.add(pages)
            seen.add(dict(pages))
            assert not repeats.first_questions(
                lambda: [(0, keys), (1, keys)], seen.repeated, {}, at_once
            )
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(count // 10) < peak(count) / 4


def test_keys_are_little_endian_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(integers(struct.pack("<3q", 1, -2, 1 << 40))) == [1, -2, 1 << 40]
    if sys.byteorder == "little":
        # Simulate a machine with the other byte order.
        monkeypatch.setattr(sys, "byteorder", "big")
        assert list(integers(struct.pack(">3q", 1, -2, 1 << 40))) == [1, -2, 1 << 40]
