"""Users on disk: reading many at once gives the same result as reading one by one."""

from array import array
from itertools import accumulate
from pathlib import Path

import pytest

from so2docs.errors import SpillError
from so2docs.options.table import Options
from so2docs.parse import core
from so2docs.pipeline.filing import Filing
from so2docs.schema import TABLES
from so2docs.store import blocks, users
from so2docs.store.id_map import IdMapWriter
from so2docs.store.users import PLACE_BITS, Users, UserTable

pytestmark = pytest.mark.skipif(core.built() == "python", reason="no compiled core")

LONG = "x" * 40_000
FILES = [[(7, "a"), (-1, "b"), (3, LONG), (4, "c")], [(10**12, "\u00e9"), (5, "")]]


def write(folder: Path, files: list[list[tuple[int, str]]] = FILES) -> UserTable:
    """Write users, unordered, to files, one of them longer than a single read."""
    positions: dict[int, int] = {}
    for number, of_file in enumerate(files):
        filing = Filing(str(folder / str(number)), 1 << 20, TABLES["users"], Options(), "")
        with filing.open() as sink:
            sink.add([{"Id": str(user), "DisplayName": name} for user, name in of_file])
        for line_start, (user, _) in zip(line_starts(folder / str(number)), of_file, strict=False):
            positions[user] = (number << PLACE_BITS) + line_start
    with IdMapWriter(str(folder / "users.map")) as places:
        places.add(list(positions), list(positions.values()))
        places.finish()
    return UserTable(
        str(folder / "users.map"), {n: str(folder / str(n)) for n in range(len(files))}
    )


def line_starts(path: Path) -> list[int]:
    lines = path.read_bytes().split(b"\n")
    return [0, *accumulate(len(line) + 1 for line in lines[:-1])]


@pytest.mark.parametrize("window", [1, 100, users._WINDOW])
def test_all_at_once(window: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "_WINDOW", window)
    ids = array("q", [-2, -1, 3, 4, 5, 6, 7, 10**12, 10**12 + 1])
    with Users(write(tmp_path)) as reader:
        records = reader.get_all(ids)
        assert records == [reader.get(user_id) for user_id in ids]
        assert reader.get_all(array("q")) == []
    assert [json is None for json in records] == [user in (-2, 6, 10**12 + 1) for user in ids]
    assert records[2] == b'{"Id":3,"DisplayName":"%b"}' % LONG.encode()


def test_damage_is_found(tmp_path: Path) -> None:
    table = write(tmp_path)
    file = Path(table.files[0])
    file.write_bytes(file.read_bytes().replace(b'"b"', b'"B"'))
    with Users(table) as reader:
        assert reader.get_all(array("q", [3, 4, 7])).count(None) == 0
        with pytest.raises(SpillError, match=r"damaged \(at byte"):
            reader.get_all(array("q", [-1, 3]))


def test_users_far_apart_take_short_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a large site, hardly two authors of the posts of a bucket are near each other."""
    table = write(tmp_path, [[(user, "name" * 20) for user in range(10_000)]])
    read: list[int] = []
    plain = blocks.read_at

    def read_at(file: int, size: int, offset: int) -> bytes:
        read.append(size)
        return plain(file, size, offset)

    monkeypatch.setattr(blocks, "read_at", read_at)
    with Users(table) as reader:
        assert None not in reader.get_all(array("q", range(0, 10_000, 200)))
    assert sum(read) <= 50 * 2_048
