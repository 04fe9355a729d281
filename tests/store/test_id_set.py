"""Sets of ids on disk, compared with plain sets, and the ids that several questions share."""

import struct
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from so2docs.parse.id_set import IdSet, IdSetWriter, count_pages, ids_in_pages
from so2docs.parse.keys import PAIR, integers
from so2docs.pipeline.maps import count_shared_ids

IDS = st.one_of(
    st.integers(-2, 20), st.integers(4090, 4100), st.integers(-(2**63), 2**63 - 1), st.just(1 << 32)
)


@settings(max_examples=40)
@given(st.lists(st.lists(IDS, max_size=8), max_size=4), IDS)
def test_a_set_has_the_ids_of_all_chunks(
    tmp_path: Path, chunks: list[list[int]], other: int
) -> None:
    path = str(tmp_path / "ids")
    with IdSetWriter(path) as writer:
        for ids in chunks:
            for pages in count_pages(ids):
                writer.add(pages)
        known = [number for ids in chunks for number in ids]
        assert set(ids_in_pages(writer.repeated)) == {n for n in known if known.count(n) > 1}
        assert all(number in writer for number in known)
        writer.finish()
    ids = IdSet(path)
    assert all(number in ids for number in known)
    for number in (other, other + 1, -1, 0, 4096):
        assert (number in ids) == (number in known)
    assert "1" not in ids
    assert ids.find([*known, None, other]) == [True] * len(known) + [False, other in known]
    pages = dict(ids.pages())
    assert set(ids_in_pages(pages)) == set(known)
    assert all(ids.page(number) == bits for number, bits in pages.items())
    assert ids.page(1 << 19) == 0


def test_an_unfinished_set_is_removed(tmp_path: Path) -> None:
    with IdSetWriter(str(tmp_path / "ids")) as writer:
        writer.add_id(7)
    assert not list(tmp_path.iterdir())


class Keys:
    """A spill with the pairs of some chunks."""

    def __init__(self, chunks: list[list[tuple[int, int]]]) -> None:
        self.chunks = chunks
        self.reads = 0

    def pairs(self) -> list[bytes]:
        self.reads += 1
        return [b"".join(PAIR.pack(*pair) for pair in pairs) for pairs in self.chunks]


@settings(max_examples=40)
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), IDS), max_size=12), max_size=4))
def test_ids_under_several_questions_are_counted(
    tmp_path: Path, chunks: list[list[tuple[int, int]]]
) -> None:
    with IdSetWriter(str(tmp_path / "ids")) as seen:
        for chunk in chunks:
            for pages in count_pages([post_id for _, post_id in chunk]):
                seen.add(pages)
        repeated = dict(seen.repeated)
    questions: dict[int, set[int]] = {}
    for question_id, post_id in (pair for chunk in chunks for pair in chunk):
        questions.setdefault(post_id, set()).add(question_id)
    expected = sum(len(of_post) > 1 for of_post in questions.values())
    keys = Keys(chunks)
    assert count_shared_ids(keys, repeated, at_once=2) == expected  # type: ignore[arg-type]
    assert keys.reads == -(-len(set(ids_in_pages(repeated))) // 2)


def test_keys_are_little_endian_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(integers(struct.pack("<3q", 1, -2, 1 << 40))) == [1, -2, 1 << 40]
    if sys.byteorder == "little":
        # Simulate a machine with the other byte order.
        monkeypatch.setattr(sys, "byteorder", "big")
        assert list(integers(struct.pack(">3q", 1, -2, 1 << 40))) == [1, -2, 1 << 40]
