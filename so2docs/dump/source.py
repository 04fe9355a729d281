"""What every kind of source comes down to: a name, and bytes to read from start to end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from so2docs.dump import storage
from so2docs.errors import ChangedDumpError, flag
from so2docs.schema import POSTS, Table

BLOCK_BYTES = 1024 * 1024
"""Streams are handed on in blocks of about this size."""

_BLOCKS = 8
_PATIENCE = 0.2
_LONGEST_WAIT = 0.5


class Reader(Protocol):
    """Where bytes come from."""

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""


class Peekable:
    """A reader whose next bytes can be looked at before they are read."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._held = b""

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, fewer only at the end."""
        while len(self._held) < size and (more := self._reader.read(size - len(self._held))):
            self._held += more
        return self._held[:size]

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        if self._held:
            data, self._held = self._held[:size], self._held[size:]
            return data
        return self._reader.read(size)


class Counted:
    """A reader that counts, for what cannot tell its position.

    Attributes:
        count: Bytes read so far.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.count = 0

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        data = self._reader.read(size)
        self.count += len(data)
        return data


class ReadAhead:
    """A reader that reads another in a thread, some blocks ahead.

    The decompressors give up the interpreter's lock. A bounded queue makes a stream that outruns
    the workers wait.

    Args:
        reader: What to read.
        closers: Close what the reader reads, the last one first. Nothing is closed while the thread
            is reading it: after `close`, the thread itself closes what it was reading.
    """

    def __init__(self, reader: Reader, closers: list[Callable[[], object]]) -> None:
        self._reader = reader
        self._closers = closers
        self._blocks: queue.Queue[bytes | BaseException] = queue.Queue(_BLOCKS)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._held = b""
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end; raises what the other reader raises."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="so2docs-stream", daemon=True)
            self._thread.start()
        if not self._held and not self._ended:
            block = self._next_block()
            if isinstance(block, BaseException):
                self._ended = True
                raise block
            self._ended = not block
            self._held = block
        if len(self._held) <= size:
            given, self._held = self._held, b""
            return given
        given, self._held = self._held[:size], self._held[size:]
        return given

    def _next_block(self) -> bytes | BaseException:
        """Wait for the thread.

        Python handles a signal before it waits for a lock and while it waits, but not one that
        comes in between, or to another thread. That one is handled after this time.
        """
        while True:
            with suppress(queue.Empty):
                return self._blocks.get(timeout=_PATIENCE)

    def _run(self) -> None:
        block: bytes | BaseException = b"-"
        while block and not isinstance(block, BaseException) and not self._stopped.is_set():
            try:
                block = self._reader.read(BLOCK_BYTES)
            except BaseException as error:
                block = error
            while not self._stopped.is_set():
                try:
                    self._blocks.put(block, timeout=_PATIENCE)
                    break
                except queue.Full:
                    continue
        if self._stopped.is_set():
            with suppress(OSError):  # Nobody waits for the news.
                close_all(self._closers)

    def close(self) -> None:
        """End the thread; one that waits for a pipe ends with the process."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(_LONGEST_WAIT)
        if self._thread is None or not self._thread.is_alive():
            close_all(self._closers)


def close_all(closers: list[Callable[[], object]]) -> None:
    """Close what was opened, last things first, each once."""
    while closers:
        try:
            close = closers.pop()
        except IndexError:  # Another thread has taken the last one.
            return
        close()


def _nothing() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class End:
    """What reading a dump to its end tells: bytes, and characters replaced to decode them.

    No chunk has the number `chunks` or a higher one.
    """

    size: int
    repaired: int
    chunks: int


@dataclass(slots=True)
class Source:
    """A dump as a stream of UTF-8.

    Attributes:
        name: What the user called it, for messages.
        reader: Gives the decompressed bytes.
        wanted: What is looked for where there are several files in it.
        file: The file that it comes from; None if it can be read only once.
        identity: Of that file, to notice a change.
        position: Tells how many bytes of what was given have been read.
        total: How many there are; None if that is not known.
        expected: Bytes of the decompressed dump, known or guessed; None if that cannot be.
        encoding: Of the dump, before it was decoded.
        repaired: Tells how many characters had to be replaced.
        closers: What is to be called at the end.
    """

    name: str
    reader: Reader
    wanted: Table = POSTS
    file: str | None = None
    identity: tuple[int, int, int] = (0, 0, 0)
    position: Callable[[], int] = _nothing
    total: int | None = None
    expected: int | None = None
    encoding: str = "utf-8"
    repaired: Callable[[], int] = _nothing
    closers: list[Callable[[], object]] = field(default_factory=list)

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        return self.reader.read(size)

    def check_unchanged(self) -> None:
        """Raise `ChangedDumpError` if the file is another by now."""
        if self.file is None:
            return
        try:
            found = storage.identity(self.file)
        except OSError as error:
            raise ChangedDumpError(
                self.name,
                f"disappeared while being read ({error.strerror})",
                advice="make it available, then run again",
            ) from None
        if found != self.identity:
            raise ChangedDumpError(
                self.name,
                "changed while being read",
                advice=f"wait until it is complete, then run again with {flag('restart', True)}",
            )

    def close(self) -> None:
        """Close what was opened, last things first."""
        close_all(self.closers)
