"""Sources as streams of UTF-8 bytes, which are read from start to end.

A source is read through layers: the file, then decompressors, then a decoder. Each layer is a
generator of byte blocks, and `Stream` turns it into a file. Dumps in UTF-16 are decoded as they are
read. Invalid bytes become U+FFFD and are counted, as in a UTF-8 dump.
"""

from __future__ import annotations

import codecs
import queue
import select
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import BinaryIO

from so2docs.dump.compressed import BLOCK_BYTES, Parts, Read, is_damage
from so2docs.dump.kinds import UNPACK, detect_encoding
from so2docs.errors import ArchiveError, DumpError, TruncatedDumpError

HEAD_BYTES = 1024
"""Bytes at the start of a file that determine its kind; enough for an XML declaration."""

_BLOCKS = 8
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_PATIENCE = 0.2
_LONGEST_WAIT = 0.5


def explain_damage(name: str, kind: str, error: Exception) -> DumpError:
    """Make the error for a file of a kind that a decompressor refuses."""
    if isinstance(error, EOFError):
        problem, advice = "is truncated", "download it again, or the missing part"
        return TruncatedDumpError(name, f"is {kind} that {problem}", advice=advice)
    problem, advice = "is damaged", "download it again"
    if "memory" in str(error).lower():  # Windows and dictionaries above the limits.
        problem, advice = "needs too much memory", UNPACK
    return ArchiveError(name, f"is {kind} that {problem} ({error})", advice=advice)


def read_polled(file: BinaryIO) -> Parts:
    """Yield the bytes of a pipe, which is not buffered, in blocks of any size.

    A signal that arrives just before a read does not interrupt it. Therefore, `poll` waits for
    data, and Python handles signals between polls.
    """
    poll = select.poll()
    poll.register(file, select.POLLIN)
    while True:
        while not poll.poll(_PATIENCE * 1000):
            pass
        data = file.read(BLOCK_BYTES)
        if data == b"":
            return
        yield data or b""  # None if it does not block and another process took the data.


class Stream:
    """The bytes of a generator, read from start to end.

    Attributes:
        count: Number of bytes read.

    Args:
        parts: The generator.
        name: Name of the dump, for messages.
        kind: Kind of the file that the generator decompresses; its errors become `DumpError`.
    """

    def __init__(self, parts: Parts, name: str = "", kind: str = "") -> None:
        self._parts = parts
        self._name = name
        self._kind = kind
        self._held = memoryview(b"")
        self.count = 0

    def peek(self, least: int = HEAD_BYTES) -> bytes:
        """Return the next bytes without reading them: at least so many, or all."""
        head = bytes(self._held)
        while len(head) < least and (part := self._next_part()):
            head += part
        self._held = memoryview(head)
        return head

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes; none at the end."""
        return bytes(self.read_part(size))

    def read_part(self, size: int) -> memoryview:
        """Read at most `size` bytes without copying them; none at the end."""
        if not self.count:
            self.peek()  # This finds damage after the last byte of a small stream.
        if not self._held:
            self._held = memoryview(self._next_part())
        part, self._held = self._held[:size], self._held[size:]
        self.count += len(part)
        return part

    def _next_part(self) -> bytes | memoryview:
        """Return the next part that is not empty; an empty one at the end."""
        try:
            return next((part for part in self._parts if part), b"")
        except Exception as error:
            if not self._kind or not is_damage(error):
                raise
            raise explain_damage(self._name, self._kind, error) from error

    def close(self) -> None:
        """Close the generator; if a thread is still reading, that thread closes it afterwards."""
        with suppress(ValueError):
            self._parts.close()


def read_ahead(read: Read, close: Callable[[], object]) -> Parts:
    """Yield the blocks of a file, which a thread reads several blocks ahead.

    Decompressors release the GIL, so the thread runs in parallel with the reader. If it is faster
    than the workers, it waits until a block is taken. The first part, which is empty, starts it.

    Args:
        read: Reads from the file.
        close: Closes the file. A thread that still reads when the generator is closed calls this
            function when it ends; if it waits for a pipe, it ends with the process.
    """
    blocks: queue.Queue[bytes | BaseException] = queue.Queue(_BLOCKS)
    stopped = threading.Event()

    def run() -> None:
        try:
            while not stopped.is_set():
                blocks.put(block := read(BLOCK_BYTES))
                if not block:
                    break
        except BaseException as error:
            blocks.put(error)
        if stopped.is_set():
            with suppress(OSError):  # There is no reader left to report an error to.
                close()

    thread = threading.Thread(target=run, name="so2docs-stream", daemon=True)
    thread.start()
    try:
        yield b""
        while True:
            # Python handles signals before it waits for a lock and while it waits, but misses
            # those that arrive in between, or in another thread: the timeout lets it handle them.
            with suppress(queue.Empty):
                block = blocks.get(timeout=_PATIENCE)
                if isinstance(block, BaseException):
                    raise block
                if not block:
                    return
                yield block
    finally:
        stopped.set()
        with suppress(queue.Empty):
            while True:  # The thread may wait for space.
                blocks.get_nowait()
        thread.join(_LONGEST_WAIT)
        if not thread.is_alive():
            close()


class Layers:
    """A dump as a stream of UTF-8.

    Attributes:
        name: Name as the user wrote it, for messages.
        resources: What `close` closes, such as a file.
        top: The top layer.
        expected: Size of the decompressed dump, known or estimated; None if unknown.
        encoding: Encoding of the dump.
        repaired: Number of characters that the decoder replaced so far.
    """

    top: Stream

    def __init__(self, name: str) -> None:
        self.name = name
        self.resources = ExitStack()
        self.expected: int | None = None
        self.encoding = "utf-8"
        self.repaired = 0

    def add(self, parts: Parts, kind: str = "", ratio: float = 1.0) -> None:
        """Add a layer that reads the top layer.

        Args:
            parts: Generator of its bytes.
            kind: Kind of the file that it decompresses, for messages.
            ratio: Usual number of its bytes per byte of the layer below.
        """
        self.top = Stream(parts, self.name, kind)
        self.resources.callback(self.top.close)
        if self.expected is not None:
            self.expected = int(self.expected * ratio)

    def decode(self) -> None:
        """Add a decoder if the dump is in UTF-16."""
        encoding = detect_encoding(self.name, self.top.peek())
        if encoding is not None:
            self.encoding = encoding
            self.add(self._decode(self.top.read), ratio=0.5)

    def _decode(self, read: Read) -> Parts:
        decoder = codecs.getincrementaldecoder(self.encoding)
        replacing, ignoring = decoder(errors="replace"), decoder(errors="ignore")
        data = b"-"
        while data:
            data = read(BLOCK_BYTES)
            state = replacing.getstate()
            text = replacing.decode(data, not data)
            if _REPLACEMENT in text:
                # Do not count replacement characters that the text already contains.
                ignoring.setstate(state)
                original = ignoring.decode(data, not data).count(_REPLACEMENT)
                self.repaired += text.count(_REPLACEMENT) - original
            yield text.encode()

    def read_ahead(self) -> None:
        """Read the layers in a thread from now on."""
        parts = read_ahead(self.top.read, self.resources.close)
        next(parts)
        self.resources = ExitStack()
        self.add(parts)

    def close(self) -> None:
        """Close resources in reverse order of opening."""
        self.resources.close()
