"""Tables of an archive with a stream for each are decompressed at once, in bounded memory."""

import _thread
import gzip
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import py7zr
import pytest
from support.interruptions import kill_command
from support.packed import LZMA2
from support.processes import children

import so2docs
from so2docs.dump.dump import PIECES
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
    "Votes.xml": rows_of("votes", 4_000),
    "PostLinks.xml": rows_of("postlinks", 10),
    "Posts.xml": b'<posts><row Id="7" PostTypeId="1" /></posts>',
}


def packed(path: Path, files: dict[str, bytes] = FILES) -> Path:
    """Make an archive of several streams, as sites are published since August 2024."""
    for names in (["Posts.xml", "PostLinks.xml"], ["Comments.xml"], ["Votes.xml"]):
        with py7zr.SevenZipFile(path, "a" if path.exists() else "w", filters=LZMA2) as stream:
            for name in names:
                stream.writestr(files[name], name)
    return path


def as_tables(archive: Path, folder: Path, jobs: int) -> None:
    so2docs.tables(archive, folder, format="csv", jobs=jobs)


def nested(archive: Path, folder: Path, jobs: int) -> None:
    nest, output = ["comments", "links", "votes"], folder / "questions.jsonl.gz"
    so2docs.convert(archive, output, nest=nest, jobs=jobs, chunk_bytes=CHUNK_BYTES)


Write = Callable[[Path, Path, int], None]
of_both = pytest.mark.parametrize("write", [as_tables, nested])


def written(write: Write, archive: Path, jobs: int) -> dict[str, bytes]:
    """Read an archive, and return the files without their records."""
    folder = archive.parent / f"by-{jobs}"
    folder.mkdir(exist_ok=True)
    write(archive, folder, jobs)
    return {path.name: gzip.decompress(path.read_bytes()) for path in folder.glob("[!.]*")}


@of_both
def test_streams_are_open_at_once_in_bounded_memory(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(tmp_path / "tea.7z")
    expected, pieces = written(write, archive, 1), [0]
    first_two, opened = threading.Barrier(JOBS, timeout=600), []
    open_block, make = SevenZip.open_block, StreamDump._piece

    def open_together(self: SevenZip, number: int, *arguments: Any) -> Any:
        opened.append(number)
        if number:
            first_two.wait()  # It never ends if one stream is read after another.
        return open_block(self, number, *arguments)

    def make_piece(self: StreamDump, path: Path, *arguments: Any) -> Any:
        # Unlike a glob, a walk passes over a folder that another stream removes meanwhile.
        walk = os.walk(path.parent.parent)
        pieces.append(sum(len(names) for where, _, names in walk if f"{PIECES}-" in where))
        return make(self, path, *arguments)

    monkeypatch.setattr(SevenZip, "open_block", open_together)
    monkeypatch.setattr(StreamDump, "_piece", make_piece)
    monkeypatch.setattr(tables, "LARGE_CHUNK_BYTES", CHUNK_BYTES)
    assert written(write, archive, JOBS) == expected
    assert sorted(opened) == [0, 1, 2]
    # Of each stream: waiting and running tasks, and a piece being written.
    assert max(pieces) <= JOBS * (JOBS + 3) < len(pieces) / 4


@of_both
def test_the_error_is_that_of_the_first_table(write: Write, tmp_path: Path) -> None:
    """The first table is damaged near its end, and the second one at its start."""
    votes = FILES["Votes.xml"].replace(b'Id="1"', b'Id="1')
    archive = packed(tmp_path / "tea.7z", {**FILES, "Votes.xml": votes})
    data = bytearray(archive.read_bytes())
    with archive.open("rb") as file:
        block = SevenZip("", file)._blocks[1]
    data[block.start + block.packed - 100] ^= 0x55
    archive.write_bytes(data)
    for jobs in (1, 3):
        with pytest.raises(so2docs.DumpError, match=r"Comments\.xml\): .* is damaged"):
            written(write, archive, jobs)
        assert not list(tmp_path.glob(f"by-{jobs}/[!.]*Comments*"))


@of_both
@pytest.mark.parametrize("error", [KeyboardInterrupt, so2docs.WorkerDiedError])
def test_ctrl_c_and_a_dead_worker_end_all_streams(
    error: type[BaseException], write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(tmp_path / "tea.7z")
    expected, make = written(write, archive, 1), StreamDump._piece

    def interrupt(self: StreamDump, path: Path, offset: int, size: int) -> Any:
        if self._table.name == "votes" and offset > 10 * CHUNK_BYTES:
            monkeypatch.setattr(StreamDump, "_piece", make)
            if error is KeyboardInterrupt:
                _thread.interrupt_main()
            for worker in children(os.getpid()) if error is not KeyboardInterrupt else ():
                os.kill(worker, signal.SIGKILL)
        return make(self, path, offset, size)

    monkeypatch.setattr(tables, "LARGE_CHUNK_BYTES", CHUNK_BYTES)
    monkeypatch.setattr(StreamDump, "_piece", interrupt)
    with pytest.raises(error):
        written(write, archive, 3)
    assert written(write, archive, 3) == expected


@pytest.mark.parametrize("table", ["comments", "votes", "links"])
def test_killed_while_streams_are_open(table: str, tmp_path: Path) -> None:
    archive = packed(tmp_path / "tea.7z")
    (tmp_path / "by-3").mkdir()
    words = ["convert", archive, "by-3/questions.jsonl.gz", "--nest", "comments,links,votes"]
    words += ["--jobs", 3, "--chunk-bytes", CHUNK_BYTES]
    kill_command("open", f"{PIECES}-{table}.000000", *words, folder=tmp_path)
    assert written(nested, archive, 3) == written(nested, archive, 1)
