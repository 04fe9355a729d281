"""What every kind of source comes down to: a name, and bytes of UTF-8 to read from start to end.

Dumps in other encodings are decoded as they are read. What an encoding does not allow becomes
U+FFFD and is counted, as in a dump of UTF-8.
"""

from __future__ import annotations

import codecs
import queue
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from so2docs.dump import storage
from so2docs.errors import ChangedDumpError, DumpError, flag
from so2docs.schema import POSTS, Table

BLOCK_BYTES = 1024 * 1024
"""Streams are handed on in blocks of about this size."""

_BLOCKS = 8
_PATIENCE = 0.2
_LONGEST_WAIT = 0.5


class Reader(Protocol):
    """A source of bytes."""

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
    """A reader that counts bytes, for streams that do not know their position.

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
            data, self._held = self._held, b""
            return data
        data, self._held = self._held[:size], self._held[size:]
        return data

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
    """Close resources in reverse order of opening, each once."""
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
    """The result of reading a dump to its end: its size, and the number of replaced characters.

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
        reader: Reads the decompressed bytes.
        table: The table to read from an archive of several.
        file: Path of its file; None for a stream that can be read only once.
        identity: Identity of that file, to detect a change.
        position: Returns the number of bytes read from the file or stream.
        total: Their total; None if it is unknown.
        expected: Size of the decompressed dump, known or estimated; None if it is unknown.
        encoding: Encoding of the dump.
        repaired: Returns the number of characters that were replaced.
        closers: Functions to call at the end.
    """

    name: str
    reader: Reader
    table: Table = POSTS
    file: str | None = None
    identity: storage.FileIdentity = storage.NO_FILE
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
            identity = storage.identify(self.file)
        except OSError as error:
            raise ChangedDumpError(
                self.name,
                f"disappeared while being read ({error.strerror})",
                advice="make it available, then run again",
            ) from None
        if identity != self.identity:
            raise ChangedDumpError(
                self.name,
                "changed while being read",
                advice=f"wait until it is complete, then run again with {flag('restart', True)}",
            )

    def close(self) -> None:
        """Close resources in reverse order of opening."""
        close_all(self.closers)


HEAD_BYTES = 1024
"""A declaration is within the first bytes of a dump."""

# Longest first: the mark of UTF-32 starts with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UNMARKED = {b"<\x00": "utf-16-le", b"\x00<": "utf-16-be"}
_DECLARATION = re.compile(rb"""\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")
_NOT_OF_TEXT = (
    "idna",
    "punycode",
    "unicode_escape",
    "unicode-escape",
    "raw_unicode",
    "raw-unicode",
)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def detect_encoding(name: str, head: bytes) -> str | None:
    """The encoding of a dump (XML 1.0, appendix F); None if it is UTF-8.

    Args:
        name: Name of the dump, for messages.
        head: Its first `HEAD_BYTES` bytes.

    Raises:
        DumpError: The declaration names an encoding that Python does not know.
    """
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return None if encoding == "utf-8" else encoding
    for start, encoding in _UNMARKED.items():
        if head.startswith(start):
            return encoding
    declared = _DECLARATION.match(head)
    if declared is None:
        return None
    label = declared[1].decode()
    try:
        encoding = codecs.lookup(label).name
        # Some names are not of text encodings: "undefined", "hex", or "idna" for names of hosts.
        "<?xml".encode(encoding)
        codecs.getincrementaldecoder(encoding)(errors="replace").decode(b"<", final=True)
        is_known = not encoding.startswith(_NOT_OF_TEXT)
    except (LookupError, TypeError, ValueError):
        is_known = False
    if not is_known:
        raise DumpError(
            name,
            f"is declared to be encoded as {label}, which is not a known encoding",
            advice="convert it to UTF-8 first",
        ) from None
    # A declaration that can be read byte by byte is wrong if it says UTF-16: .NET writes such.
    ascii_like = "<?xml".encode(encoding) == b"<?xml"
    return None if encoding in ("utf-8", "ascii") or not ascii_like else encoding


class Decoded:
    """A reader that decodes another reader to UTF-8.

    Attributes:
        repaired: Characters replaced so far.
    """

    def __init__(self, reader: Reader, encoding: str) -> None:
        self._reader = reader
        decoder = codecs.getincrementaldecoder(encoding)
        self._decoder = decoder(errors="replace")
        self._counter = decoder(errors="ignore")
        self._held = b""
        self._ended = False
        self.repaired = 0

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        while not self._held and not self._ended:
            data = self._reader.read(min(size, BLOCK_BYTES))
            self._ended = not data
            # Half a character of UTF-7 is replaced and counted with the row that it is in.
            self._held = self._decode(data).encode(errors="surrogatepass")
        output, self._held = self._held[:size], self._held[size:]
        return output

    def _decode(self, data: bytes) -> str:
        state = self._decoder.getstate()
        text = self._decoder.decode(data, self._ended)
        if _REPLACEMENT in text:
            # Those of the dump itself are left when errors are passed over.
            self._counter.setstate(state)
            original = self._counter.decode(data, self._ended).count(_REPLACEMENT)
            self.repaired += text.count(_REPLACEMENT) - original
        return text
