"""Tables of an archive with a stream for each are decompressed at once, in bounded memory."""

import gzip
import threading
from pathlib import Path
from typing import Any

import py7zr
import pytest
from support.packed import LZMA2

import so2docs
from so2docs.dump.seven_zip import SevenZip
from so2docs.dump.stream import StreamDump
from so2docs.extensions.tables import tables

CHUNK_BYTES = 4_000
JOBS = 2


def rows_of(root: str, count: int) -> bytes:
    rows = "".join(f'  <row Id="{number}" PostId="7" />\n' for number in range(count))
    return f'<?xml version="1.0" encoding="utf-8"?>\n<{root}>\n{rows}</{root}>'.encode()


FILES = {
    "Comments.xml": rows_of("comments", 4_000),
    "PostLinks.xml": rows_of("postlinks", 10),
    "Votes.xml": rows_of("votes", 4_000),
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Make an archive with a stream for each file, as sites are published since August 2024."""
    path = tmp_path / "tea.7z"
    for name, data in FILES.items():
        with py7zr.SevenZipFile(path, "a" if path.exists() else "w", filters=LZMA2) as packed:
            packed.writestr(data, name)
    return path


def written(archive: Path, jobs: int) -> dict[str, bytes]:
    """Write the tables of an archive, and return the files without their records."""
    folder = archive.parent / f"by-{jobs}"
    report = so2docs.tables(archive, folder, format="csv", jobs=jobs)
    assert list(report) == ["comments", "links", "votes"]
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*")}


def test_streams_are_open_at_once_in_bounded_memory(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = written(archive, 1)
    first_two, opened, held, most = threading.Barrier(JOBS, timeout=600), [], [0], [0]
    open_block, make, free = SevenZip.open_block, StreamDump._piece, StreamDump.progress
    lock = threading.Lock()

    def open_together(self: SevenZip, number: int, *arguments: Any) -> Any:
        opened.append(number)
        if len(opened) <= JOBS:
            first_two.wait()  # It never ends if one stream is read after another.
        return open_block(self, number, *arguments)

    def hold(size: int) -> None:
        with lock:
            held[0] += size
            most[0] = max(most[0], held[0])

    def make_piece(*arguments: Any) -> Any:
        piece = make(*arguments)
        hold(piece.end)
        return piece

    def free_piece(dump: StreamDump, chunk: Any) -> int:
        hold(-chunk.end)
        return free(dump, chunk)

    monkeypatch.setattr(SevenZip, "open_block", open_together)
    monkeypatch.setattr(StreamDump, "_piece", make_piece)
    monkeypatch.setattr(StreamDump, "progress", free_piece)
    monkeypatch.setattr(tables, "LARGE_CHUNK_BYTES", CHUNK_BYTES)
    found = written(archive, JOBS)
    assert {name: gzip.decompress(data) for name, data in found.items()} == {
        name: gzip.decompress(data) for name, data in expected.items()
    }
    assert sorted(opened) == [0, 1, 2]
    # Waiting or running tasks, and for each stream, a piece being written and one being freed.
    pieces = JOBS + 2 + 3 * JOBS
    assert held[0] == 0
    assert most[0] <= pieces * (CHUNK_BYTES + 100) < len(FILES["Votes.xml"]) / 2


def test_several_streams_give_the_bytes_of_one_process(archive: Path) -> None:
    assert written(archive, 3) == written(archive, 1)


def test_the_error_is_that_of_the_first_table(archive: Path) -> None:
    data = bytearray(archive.read_bytes())
    size = len(data)
    data[40:44] = bytes(4)
    data[size // 2 : size // 2 + 4] = bytes(4)
    archive.write_bytes(data)
    messages = set()
    for jobs in (1, 3):
        with pytest.raises(so2docs.DumpError) as caught:
            written(archive, jobs)
        messages.add(str(caught.value))
        assert not list(archive.parent.glob(f"by-{jobs}/*Comments*"))
    assert len(messages) == 1
