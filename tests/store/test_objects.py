"""JSON objects by id on disk: any ids, long objects, every byte checked, short reads."""

from array import array
from pathlib import Path

import pytest

from so2docs.errors import SpillError
from so2docs.parse import core
from so2docs.store import objects
from so2docs.store.objects import Objects, ObjectWriter

pytestmark = pytest.mark.skipif(core.built() == "python", reason="no compiled core")

LONG = "x" * 40_000
NAMES = {-1: "b", 3: LONG, 4: "c 7 {", 5: "", 7: "a", 10**12: "\u00e9"}


def write(folder: Path, names: dict[int, str]) -> str:
    """Write users in two parts, as two workers sort them."""
    path = str(folder / "users.map")
    objects = [(key, b'{"DisplayName":"%b"}' % name.encode()) for key, name in names.items()]
    with ObjectWriter(path) as writer:
        for part in (objects[:2], objects[2:]):
            writer.add(part)
        writer.finish()
    return path


@pytest.mark.parametrize("full_block", [1, 60, objects._FULL_BLOCK])
def test_all_at_once(full_block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_FULL_BLOCK", full_block)
    ids = array("q", [-2, *NAMES, 10**12 + 1])
    with Objects(write(tmp_path, NAMES)) as reader:
        found = reader.get_all(ids)
        assert found == [reader.get(user_id) for user_id in ids]
        assert reader.get_all(array("q")) == []
        assert [reader.get(key) for key in (-(2**70), 1, 6, 2**70)] == [None] * 4
    names = [b'{"DisplayName":"%b"}' % name.encode() for name in NAMES.values()]
    assert found == [None, *names, None]


def test_every_byte_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "_FULL_BLOCK", 60)
    names = NAMES | {3: "d"}
    path = Path(write(tmp_path, names))
    data = path.read_bytes()
    for at in range(len(data)):
        for damaged in (data[:at], data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]):
            path.write_bytes(damaged)
            with pytest.raises(SpillError, match="damaged"), Objects(str(path)) as reader:
                reader.get_all(array("q", names))


def test_users_far_apart_take_short_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a large site, hardly two authors of the posts of a bucket are near each other."""
    path = write(tmp_path, dict.fromkeys(range(10000), "name" * 20))
    read: list[int] = []
    plain = objects.read_at

    def read_at(file: int, size: int, offset: int) -> bytes:
        read.append(size)
        return plain(file, size, offset)

    with Objects(path) as reader:
        monkeypatch.setattr(objects, "read_at", read_at)
        assert None not in reader.get_all(array("q", range(0, 10_000, 400)))
    assert len(read) == 25
    assert sum(read) <= 25 * 5_500
