"""Streams are closed while a thread reads them inside a decompressor or a pipe."""

import bz2
import gzip
import io
import lzma
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path

import pytest
from support.bzip2_samples import find_numbers
from support.command import run_python, start
from support.dumps import dump_of, some_rows

from so2docs import zstd
from so2docs.dump.bzip2 import decompress_bzip2
from so2docs.dump.compressed import BLOCK_BYTES
from so2docs.dump.layers import Stream, read_ahead
from so2docs.dump.opening import enlarge_pipe
from so2docs.dump.source import Source

PIPES = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes need POSIX")

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "xml": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd.compress,
    "utf-16": lambda data: data.decode("utf-8-sig").replace("utf-8", "utf-16").encode("utf-16"),
}
DUMP = dump_of(*some_rows(2_700, body_bytes=2_000, dense=True))


class Waiting:
    """A reader that returns some bytes, then waits for permission to return the end."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)
        self.is_waiting, self.may_end = threading.Event(), threading.Event()
        self.is_closed = False

    def read(self, size: int, /) -> bytes:
        assert not self.is_closed
        if data := self._data.read(size):
            return data
        self.is_waiting.set()
        self.may_end.wait()
        assert not self.is_closed
        return b""

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    reader = Waiting(bz2.compress(random.Random(1).randbytes(800_000), 1)[:-10_000])
    yield reader
    reader.may_end.set()


def test_closing_bzip2_during_a_read(waiting: Waiting) -> None:
    reader = Stream(decompress_bzip2(waiting.read, 2))
    read: list[object] = []

    def drain() -> None:
        try:
            while data := reader.read(1 << 20):
                read.append(data)
        except Exception as error:
            read.append(error)

    thread = threading.Thread(target=drain)
    thread.start()
    waiting.is_waiting.wait()
    reader.close()
    waiting.may_end.set()
    thread.join()
    assert isinstance(read[-1], Exception)
    assert not [other for other in threading.enumerate() if other.name.startswith("so2docs-bzip2")]


def test_files_stay_open_during_a_read(waiting: Waiting) -> None:
    closed: list[str] = []
    unpacked = Stream(decompress_bzip2(waiting.read, 2))
    closers = ExitStack()
    for close in (waiting.close, lambda: closed.append("file"), unpacked.close):
        closers.callback(close)
    closers.callback(closed.append, "first")
    ahead = read_ahead(unpacked.read, closers.close)
    assert [bool(next(ahead)), bool(next(ahead))] == [False, True]
    waiting.is_waiting.wait()
    ahead.close()
    assert closed == []
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "so2docs-stream"]
    waiting.may_end.set()
    thread.join()
    assert (closed, waiting.is_closed) == (["first", "file"], True)


def test_reads_blocks_in_order_and_closes_once() -> None:
    closed: list[str] = []
    closers = ExitStack()
    closers.callback(closed.append, "x")
    data = random.Random(2).randbytes(40 * BLOCK_BYTES + 17)
    ahead = read_ahead(io.BytesIO(data).read, closers.close)
    assert b"".join(islice(ahead, 40)) == data[: 39 * BLOCK_BYTES]
    assert closed == []
    assert b"".join(ahead) == data[39 * BLOCK_BYTES :]
    ahead.close()
    assert closed == ["x"]


def converting(pipe: Path) -> subprocess.Popen[str]:
    return start(
        *("convert", "-q", "--jobs", "2", pipe, "q.jsonl"),
        cwd=pipe.parent,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def pipe_with(folder: Path) -> Path:
    os.mkfifo(folder / "pipe")
    return folder / "pipe"


def start_of(kind: str) -> bytes:
    """Return the start of a stream, with some rows, after which the reading thread waits.

    Two threads work on four blocks of bzip2; the last one ends where the next one starts.
    """
    packed = PACKERS[kind](DUMP)
    if kind != "bz2":
        return packed[: len(packed) * 3 // 4]
    return packed[: find_numbers(packed)[4][0] // 8 + 8]


@pytest.mark.long
@PIPES
@pytest.mark.parametrize(
    ("kind", "number", "code"),
    [("xml", signal.SIGINT, 130), ("gz", signal.SIGTERM, 143), ("bz2", signal.SIGINT, 130)],
)
def test_a_signal_while_reading_a_pipe(
    kind: str, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    pipe = pipe_with(tmp_path)
    process = converting(pipe)
    descriptor = os.open(pipe, os.O_WRONLY)
    os.write(descriptor, start_of(kind))
    while not (tmp_path / "q.jsonl.spill").exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    _, message = process.communicate()
    os.close(descriptor)
    assert process.returncode == code, message
    assert "Traceback" not in message
    assert not (tmp_path / "q.jsonl").exists()


@PIPES
@pytest.mark.parametrize(
    "reader", ["Stream(read_ahead(file.read, list))", "Stream(read_polled(file))"]
)
def test_a_signal_to_another_thread_while_reading_a_pipe(reader: str) -> None:
    """The signal does not wake the main thread; nor does a signal just before the wait."""
    script = f"""
import io, os, signal, threading, time
from so2docs.dump.layers import Stream, read_ahead, read_polled

def interrupt():
    time.sleep(1)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    time.sleep(3600)

pipe, _ = os.pipe()
file = io.FileIO(pipe)
stream = {reader}
threading.Thread(target=interrupt, daemon=True).start()
try:
    stream.read(1)
except KeyboardInterrupt:
    os.write(1, b"interrupted")
    os._exit(0)
"""
    result = run_python("-c", script, timeout=60, encoding=None)
    assert result.stdout == b"interrupted"


@PIPES
def test_a_plain_pipe_is_read_without_a_thread(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()

    def write() -> None:
        rng, at = random.Random(3), 0
        with open(write_end, "wb", buffering=0) as pipe:
            while at < len(DUMP):
                at += pipe.write(DUMP[at : at + int(2 ** rng.uniform(0, 18))])

    writer = threading.Thread(target=write)
    writer.start()
    with open(read_end, "rb", buffering=0) as pipe:
        [posts] = Source(pipe).find_to_convert([], {})
        dump = posts.open()
        rows = bytearray()
        for chunk in dump.chunks(300_000, (), tmp_path):
            assert "so2docs-stream" not in {thread.name for thread in threading.enumerate()}
            with chunk.dump.open() as piece:
                rows += piece.read()
    writer.join()
    dump.check_end()
    assert dump.head + rows + b"</posts>" == DUMP.rstrip()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can enlarge a pipe")
def test_a_pipe_is_enlarged() -> None:
    import fcntl

    read_end, write_end = os.pipe()
    with open(read_end, "rb", buffering=0) as pipe, open(write_end, "wb"):
        enlarge_pipe(pipe)
        assert fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) == 1 << 20


def test_pieces_overwrite_committed_pieces(tmp_path: Path) -> None:
    [posts] = Source(io.BytesIO(DUMP)).find_to_convert([], {})
    rows, paths = bytearray(), set()
    with closing(posts.open()) as dump:
        assert dump.progress_total(0, ())[1] == 0
        for chunk in dump.chunks(1_200_000, (), tmp_path):
            with chunk.dump.open() as piece:
                rows += piece.read()
            dump.progress(chunk)
            paths.add(chunk.dump.file)
        assert dump.head + rows + b"</posts>" == DUMP.rstrip()
        assert (len(paths), chunk.number > 3) == (1, True)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@PIPES
@pytest.mark.parametrize("kind", ["xml", "bz2"])
def test_an_existing_output_while_reading_a_pipe(kind: str, tmp_path: Path) -> None:
    pipe, output = pipe_with(tmp_path), tmp_path / "q.jsonl"
    output.write_bytes(b"x")
    process = converting(pipe)
    descriptor = os.open(pipe, os.O_WRONLY)
    os.write(descriptor, start_of(kind))
    _, message = process.communicate()
    os.close(descriptor)
    assert (process.returncode, "exists" in message) == (1, True), message
    assert "Traceback" not in message
    assert output.read_bytes() == b"x"
