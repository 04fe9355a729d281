"""The map on disk with any ids, any values, and missing ids."""

import os
from array import array
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import so2docs
from so2docs.parse import core
from so2docs.store import disk, id_map
from so2docs.store.id_map import IdMap, IdMapWriter

INT64 = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(-10_000, 10_000)
VALUES = st.integers(-(2**63) + 1, 2**63 - 1)


def write(path: Path, ids: Sequence[int], values: Sequence[int]) -> None:
    with IdMapWriter(str(path)) as writer:
        writer.add(ids, values)
        writer.finish()


def replaced(old_map: IdMap, ids: array) -> list[int]:  # type: ignore[type-arg]
    """Return the values that the compiled core finds; the lowest integer for missing ids."""
    nothing = [-(2**63)]
    if core.built() == "python":
        values = old_map.find(ids)
        return [values.get(key, nothing[0]) for key in ids]
    places = array("q", nothing * len(ids))
    old_map.replace(ids, places)
    return places.tolist()


@settings(max_examples=40)
@given(pairs=st.lists(st.tuples(INT64 | NEAR, VALUES), max_size=60), others=st.sets(INT64 | NEAR))
def test_lowest_value_stays(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[int, int]], others: set[int]
) -> None:
    path = tmp_path_factory.mktemp("map") / "ids.map"
    write(path, [key for key, _ in pairs], [value for _, value in pairs])
    lowest: dict[int, int] = {}
    for key, value in pairs:
        lowest[key] = min(value, lowest.get(key, value))
    with IdMap(str(path)) as actual:
        assert actual.find({*lowest, *others}) == lowest
        assert {key: actual.get(key) for key in lowest} == lowest
        assert all(actual.get(key) is None for key in others - lowest.keys())
        expected = array("q", [*others, *lowest, *others])
        assert replaced(actual, expected) == [lowest.get(key, -(2**63)) for key in expected]


def test_dense_ids_over_many_pages(tmp_path: Path) -> None:
    ids = array("q", range(1, 300_000, 3))
    path = tmp_path / "ids.map"
    write(path, ids, array("q", (key // 2 for key in ids)))
    assert path.stat().st_size < 16 * len(ids) * 1.01 + 40
    with IdMap(str(path)) as actual:
        expected = range(100_000, 120_000)
        assert actual.find(expected) == {key: key // 2 for key in expected if key % 3 == 1}
        assert actual.find([299_998, 4_000_000]) == {299_998: 149_999}
        all_values = [key // 2 if key % 3 == 1 else -(2**63) for key in range(300_000)]
        assert replaced(actual, array("q", range(300_000))) == all_values


@pytest.mark.parametrize("order", ["ascending", "overlapping", "scattered"])
def test_runs_in_any_order(order: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(id_map, "_RUN", 100)
    monkeypatch.setattr(id_map, "_BLOCK", 8)
    steps = {"ascending": (1, 5000), "overlapping": (37, 5000), "scattered": (3**38, 2**62)}
    step, end = steps[order]
    ids = [number * step % end for number in range(5000)]
    path = tmp_path / "ids.map"
    again = [*ids, *ids[:300]]
    write(path, again, range(len(again)))
    assert path.stat().st_size < 20 * len(ids)
    with IdMap(str(path)) as actual:
        expected = {key: place for place, key in enumerate(ids)}
        assert actual.find(expected) == expected
        assert [actual.get(key) for key in ids[:600]] == list(range(600))
        assert actual.find([-1, 2**62 + 1]) == {}
    assert [left.name for left in tmp_path.iterdir()] == ["ids.map"]


@pytest.mark.parametrize("count", [0, 3, 10])
def test_every_byte_is_checked(count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # With short blocks, a small file has no block, one block, or two and a partial block.
    monkeypatch.setattr(id_map, "_BLOCK", 4)
    path = tmp_path / "ids.map"
    write(path, range(count), range(count))
    data = path.read_bytes()

    def read() -> None:
        with IdMap(str(path)) as ids_map:
            assert ids_map.find(range(count)) == {key: key for key in range(count)}

    read()
    changed = [
        data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :] for at in range(len(data))
    ]
    for damaged in (*changed, *(data[:size] for size in range(len(data)))):
        path.write_bytes(damaged)
        with pytest.raises(so2docs.SpillError, match=r"ids\.map: .*damaged.*restart=True"):
            read()


def test_unfinished_map_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(so2docs.SpillError, match=r"is damaged.*restart=True"):
        IdMap(str(tmp_path / "ids.map"))


@pytest.mark.skipif(core.built() == "python", reason="no compiled core")
def test_refuses_invalid_maps(tmp_path: Path) -> None:
    path = tmp_path / "ids.map"
    write(path, [1], [2])
    with IdMap(str(path)) as actual, pytest.raises(ValueError, match="as many values as ids"):
        actual.replace(array("q", [1]), array("q"))
    for block, expected in ([], [0, 0]), ([5], [0, 0]), ([6, 1], [0, 0]), ([5, 8], [8, 0]):
        values = array("q", [0, 0])
        words = array("q", block)
        core.compiled.find_values(
            array("q", [5]), array("q", [5, 7]), values, lambda _, words=words: words
        )
        assert values.tolist() == expected
    with pytest.raises(TypeError, match="bytes-like"):
        core.compiled.find_values(values, values, values, lambda _: None)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        core.compiled.find_values(values, values, values, lambda number: {}[number])


@pytest.mark.parametrize("most", [1, 8, 24])
def test_short_reads_lose_nothing(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Network file systems do this after a signal, and Linux beyond 2 GiB."""
    pread = os.pread
    monkeypatch.setattr(disk, "_read_once", lambda file, size, at: pread(file, min(size, most), at))
    test_runs_in_any_order("overlapping", tmp_path, monkeypatch)


@pytest.mark.parametrize("cut", [False, True])
def test_every_byte_of_a_run_is_checked(
    cut: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(id_map, "_RUN", 8)
    monkeypatch.setattr(id_map, "_BLOCK", 2)
    path, ids = tmp_path / "ids.map", [number * 7 % 19 for number in range(19)]
    runs = tmp_path / "ids.map.runs"
    for at in range(16 * len(ids)):
        with IdMapWriter(str(path)) as writer:
            writer.add(ids, ids)
            writer._write_run()
            data = runs.read_bytes()
            assert len(data) == 16 * len(ids)
            after = b"" if cut else bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]
            runs.write_bytes(data[:at] + after)
            with pytest.raises(so2docs.SpillError, match=r"ids\.map\.runs: .*damaged"):
                writer.finish()
