"""Streams that are asked to end while a thread is reading them, inside a decompressor or a pipe."""

import bz2
import io
import random
import threading
from collections.abc import Iterator

import pytest

from so2docs.sources.bzip2 import Bzip2
from so2docs.sources.source import ReadAhead


class Waiting:
    """A reader that gives some bytes, and then waits until it may give the end."""

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


def test_bzip2_is_closed_while_a_thread_reads_it(waiting: Waiting) -> None:
    reader = Bzip2(waiting, 2)
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


def test_nothing_is_closed_under_a_thread_that_reads_it(waiting: Waiting) -> None:
    closed: list[str] = []
    unpacked = Bzip2(waiting, 2)
    closers = [waiting.close, lambda: closed.append("file"), unpacked.close]
    ahead = ReadAhead(unpacked, [*closers, lambda: closed.append("first")])
    assert ahead.read(1)
    waiting.is_waiting.wait()
    ahead.close()
    assert closed == []
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "so2docs-stream"]
    waiting.may_end.set()
    thread.join()
    assert (closed, waiting.is_closed) == (["first", "file"], True)


def test_what_was_read_to_its_end_is_closed_once() -> None:
    closed: list[str] = []
    ahead = ReadAhead(io.BytesIO(b"x"), [lambda: closed.append("x")])
    assert (ahead.read(2), ahead.read(2)) == (b"x", b"")
    assert closed == []
    ahead.close()
    ahead.close()
    assert closed == ["x"]
