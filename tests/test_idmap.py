"""The map on disk: any ids, any values, and what is not there."""

from array import array
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import so2docs
from so2docs.store.id_map import IdMap, IdMapWriter

INT64 = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(-10_000, 10_000)
VALUES = st.integers(-(2**63) + 1, 2**63 - 1)


def write(path: Path, ids: Sequence[int], values: Sequence[int]) -> list[int]:
    with IdMapWriter(str(path)) as writer:
        known = writer.add(ids, values)
        writer.finish()
    return known


@settings(max_examples=40, deadline=None)
@given(pairs=st.lists(st.tuples(INT64 | NEAR, VALUES), max_size=60), others=st.sets(INT64 | NEAR))
def test_first_value_stays(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]], others: set[int]
) -> None:
    path = tmp_path_factory.mktemp("map") / "ids.map"
    known = write(path, [key for key, _ in pairs], [value for _, value in pairs])
    first: dict[int, int] = {}
    repeated = []
    for place, (key, value) in enumerate(pairs):
        if key in first:
            repeated.append(place)
        first.setdefault(key, value)
    assert known == repeated
    with IdMap(str(path)) as found:
        assert found.find({*first, *others}) == first
        assert {key: found.get(key) for key in first} == first
        assert all(found.get(key) is None for key in others - first.keys())


def test_dense_ids_over_many_pages(tmp_path: Path) -> None:
    ids = array("q", range(1, 900_000, 3))
    path = tmp_path / "ids.map"
    assert write(path, ids, array("q", (key // 2 for key in ids))) == []
    assert path.stat().st_size < 8 * 900_000 + 40_000
    with IdMap(str(path)) as found:
        wanted = range(100_000, 120_000)
        assert found.find(wanted) == {key: key // 2 for key in wanted if key % 3 == 1}
        assert found.find([899_998, 4_000_000]) == {899_998: 449_999}


def test_ids_of_ten_digits_cost_no_more(tmp_path: Path) -> None:
    path = tmp_path / "ids.map"
    write(path, [1, 1_000_000_001, -1, 2**62], [0, 7, 8, 9])
    assert path.stat().st_size <= 4 * 8 * 4096
    with IdMap(str(path)) as found:
        assert found.find([1, 2, 1_000_000_001, -1, 2**62]) == {
            1: 0,
            1_000_000_001: 7,
            -1: 8,
            2**62: 9,
        }


def test_values_can_be_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "ids.map")
    with IdMapWriter(path) as writer:
        writer.add([1, 2], [10, 20])
        writer.replace([(2, 0), (3, 30)])
        writer.finish()
    with IdMap(path) as found:
        assert found.find([1, 2, 3]) == {1: 10, 2: 0, 3: 30}


def test_unfinished_map_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(so2docs.SpillError, match=r"cannot be read.*--restart"):
        IdMap(str(tmp_path / "ids.map"))
