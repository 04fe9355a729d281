"""Blocks on disk, by bucket, are committed or absent, and verified when read."""

import sys
from pathlib import Path

import pytest

from so2docs.counts import ChunkTally
from so2docs.errors import DiskFullError, SpillError, SpillTakenError
from so2docs.spill import Spill
from so2docs.store.blocks import Block, BlockReader, BlockWriter


def fill(
    spill: Spill, chunk: int, buckets: dict[int | None, tuple[bytes, bytes]], room: int = 0
) -> str:
    path = spill.new_file(chunk)
    with BlockWriter(path, room) as writer:
        for bucket, (keys, json) in buckets.items():
            writer.write(bucket, bytearray(keys), bytearray(json))
    spill.commit(chunk, writer.blocks, ChunkTally(rows=len(buckets)))
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "x.spill"


def test_blocks_are_read_back(folder: Path) -> None:
    spill = Spill(folder)
    fill(spill, 0, {5: (b"k" * 32, b"{}"), -3: (b"l" * 32, b"[]"), None: (b"p" * 16, b"stray\n")})
    fill(spill, 2, {5: (b"m" * 32, b"{}{}")})
    spill.close()
    spill = Spill(folder)
    spill.index()
    assert spill.buckets() == [(-3, 2), (5, 6)]
    with BlockReader() as reader:
        assert [reader.read(*block) for block in spill.blocks(5)] == [
            (b"k" * 32, b"{}"),
            (b"m" * 32, b"{}{}"),
        ]
        assert [reader.read(*block) for block in spill.blocks(None)] == [(b"p" * 16, b"stray\n")]
    assert list(spill.pairs()) == [b"p" * 16]
    assert spill.tallies() == {0: ChunkTally(rows=3), 2: ChunkTally(rows=1)}
    assert spill.size() > 0
    spill.check()
    spill.remove()
    assert not folder.exists()


def test_blocks_are_compressed_beyond_the_room_for_others(folder: Path) -> None:
    spill = Spill(folder)
    json = b'{"Body":"%s"}' % (b"x" * 500)
    fill(spill, 0, dict.fromkeys(range(5), (b"k" * 32, json)), 3 * (32 + len(json)))
    stored = [block for bucket in range(5) for _, block in spill.blocks(bucket)]
    assert [block.packed for block in stored] == [0, 0, 0, 1, 1]
    assert {block.raw_size for block in stored} == {len(json)}
    with BlockReader() as reader:
        for bucket in range(5):
            ((path, block),) = spill.blocks(bucket)
            assert reader.read(path, block) == (b"k" * 32, json)
            assert reader.read_keys(path, block) == b"k" * 32
    assert spill.block_sizes() == (
        3 * (32 + len(json)),
        sum(block.keys_size + block.json_size for block in stored[3:]),
    )
    spill.close()


def test_a_budget_is_divided_and_used_up(folder: Path) -> None:
    spill = Spill(folder)
    # The blocks of an earlier session, with any budget.
    fill(spill, 0, {1: (b"k" * 32, b"{}")}, 1000)
    spill.budget.allow(100_000)
    first = spill.budget.grant(1, 20_000)
    assert 20_000 < first < 100_000
    assert spill.budget.grant(2, 80_000) == 100_000 - first
    assert spill.budget.grant(3, 80_000) == 0
    fill(spill, 1, {1: (b"k" * 32, b"{}")}, first)
    assert spill.budget.grant(4, 10_000_000) == first - 34
    spill.close()


def test_removes_uncommitted_files(folder: Path) -> None:
    spill = Spill(folder)
    kept = fill(spill, 0, {1: (b"k" * 32, b"{}")})
    Path(spill.new_file(1)).write_bytes(b"half")
    Path(spill.temporary(1)).write_bytes(b"half")
    before = spill.new_file(2)
    spill.start_run()
    assert sorted(folder.glob("*.blocks")) == [Path(kept)]
    assert not Path(spill.temporary(1)).exists()
    assert spill.new_file(2) != before
    spill.close()


def test_a_transaction_is_whole_or_not_there(folder: Path) -> None:
    spill = Spill(folder)
    fill(spill, 0, {1: (b"k" * 32, b"{}")})
    with pytest.raises(SpillError, match=r"index .* damaged"):
        spill.commit(0, [], ChunkTally())
    spill.put("a", [1])
    spill.put("b", None, commits=False)
    assert (spill.get("a"), spill.get("b"), spill.get("c")) == ([1], None, None)
    spill.check()
    spill.close()


@pytest.mark.parametrize("room", [0, 1000])
def test_every_byte_of_a_block_is_checked(room: int, folder: Path) -> None:
    spill = Spill(folder)
    path = Path(fill(spill, 0, {1: (bytes(range(64)), b'{"Id":1}')}, room))
    ((_, block),) = spill.blocks(1)
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with BlockReader() as reader:
            with pytest.raises(
                SpillError, match=r"damaged \(at byte 0\); run the command again with restart=True"
            ):
                reader.read(str(path), block)
            if at < block.keys_size:
                with pytest.raises(SpillError, match=r"damaged \(at byte 0"):
                    reader.read_keys(str(path), block)
    path.unlink()
    with BlockReader() as reader, pytest.raises(SpillError, match=r"is damaged .No such file"):
        reader.read(str(path), block)
    spill.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE state SET value = '[2]'",
        "UPDATE state SET crc = crc + 1",
        "UPDATE chunks SET tally = '{}'",
        "UPDATE chunks SET chunk = 7",
        "UPDATE blocks SET raw_size = raw_size + 1",
        "UPDATE blocks SET bucket = 2",
        "UPDATE blocks SET chunk = 9",
        "DELETE FROM blocks",
        "DELETE FROM chunks",
    ],
)
def test_every_row_of_the_index_is_checked(change: str, folder: Path) -> None:
    spill = Spill(folder)
    fill(spill, 0, {1: (b"k" * 32, b"{}")})
    spill.put("a", [1])
    spill._database._connection.execute(change)
    with pytest.raises(SpillError, match="the index of the spill is damaged"):  # noqa: PT012
        spill.get("a")
        spill.check()
    spill.close()


def test_a_full_disk_while_writing_the_index(folder: Path) -> None:
    spill = Spill(folder)
    run = spill._database._connection.execute
    (pages,) = run("PRAGMA page_count").fetchone()
    run(f"PRAGMA max_page_count={pages + 1}")
    with pytest.raises(DiskFullError, match=r"x\.spill: ") as full:
        spill.put("big", "x" * 300_000)
    assert full.value.retry == "free some space"
    spill.put("small", 1)
    spill.close()


def test_removes_only_its_own_files(folder: Path) -> None:
    spill = Spill(folder)
    fill(spill, 0, {1: (b"k" * 32, b"{}")})
    (folder / "thesis.txt").touch()
    spill.remove()
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]
    with pytest.raises(SpillTakenError, match="neither a spill nor empty; choose another work_dir"):
        Spill(folder)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the bytes read are in /proc")
def test_the_second_pass_reads_its_index_in_one_walk(tmp_path: Path) -> None:
    """With many chunks and buckets, the blocks of all buckets are read from a few pages each."""
    spill = Spill(tmp_path / "x.spill")
    for chunk in range(400):
        path = spill.new_file(chunk)
        blocks_of_chunk = [Block(bucket, bucket, 1, 0, 9, 0, 0, 0) for bucket in range(400)]
        Path(path).write_bytes(b"")
        spill.commit(chunk, blocks_of_chunk, ChunkTally())
    spill.index()
    size = (tmp_path / "x.spill" / "index.sqlite").stat().st_size
    before = read_bytes()
    assert [bucket for bucket, _ in spill.buckets()] == list(range(400))
    for bucket in range(400):
        assert len(spill.blocks(bucket)) == 400
    assert read_bytes() - before < 3 * size
    spill.close()


def read_bytes() -> int:
    """Return the number of bytes that this process has read."""
    return int(Path("/proc/self/io").read_text().split()[1])
