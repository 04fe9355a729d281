"""Sources as streams: a name, and bytes of UTF-8 to read from start to end.

A source is read through layers: the file, then decompressors, then a decoder. Each is a generator
of parts, which `Stream` makes a file. Dumps in other encodings are decoded as they are read. Bytes
that are invalid in the encoding become U+FFFD and are counted, as in a UTF-8 dump.
"""

from __future__ import annotations

import codecs
import io
import queue
import re
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from so2docs.dump import storage
from so2docs.errors import (
    ArchiveError,
    ChangedDumpError,
    DumpError,
    So2docsError,
    TruncatedDumpError,
    flag,
)
from so2docs.schema import POSTS, Table

BLOCK_BYTES = 1024 * 1024
"""Approximate size of the blocks of streams."""

HEAD_BYTES = 1024
"""Bytes at the start of a file that determine its kind; they include an XML declaration."""

_BLOCKS = 8
_PATIENCE = 0.2
_LONGEST_WAIT = 0.5

Read = Callable[[int], bytes]
"""Reads at most n bytes, none at the end."""

Parts = Generator[bytes, None, None]
"""The bytes of a stream, in parts of any size."""


def read_blocks(read: Read) -> Parts:
    """The bytes of a file, in blocks of any size."""
    while data := read(BLOCK_BYTES):
        yield data


def is_damage(error: Exception) -> bool:
    """Whether an error that a decompressor raised means that its data is damaged.

    Every library has errors of its own, and no list of them is complete: `gzip` and `bz2` raise
    `OSError`, `EOFError` and `zlib.error`, `lzma` and zstandard their own, and isal has a class
    that its modules share in some builds only. So the list has the errors that are not damage.

    Args:
        error: An error that only reading can have raised.
    """
    if isinstance(error, OSError):
        return error.errno is None  # With a number, the system could not read the file.
    return not isinstance(error, So2docsError | MemoryError)


class Stream(io.RawIOBase):
    """Parts of bytes as a file, which counts them and converts errors of decompressors.

    Args:
        parts: The bytes; they are closed with the stream.
        name: Name of the dump, for messages.
        kind: The compression, with an article; empty if nothing is decompressed.

    Attributes:
        count: Bytes read so far.
    """

    def __init__(self, parts: Parts, name: str = "", kind: str = "") -> None:
        super().__init__()
        self._parts = parts
        self._name = name
        self._kind = kind
        self._held = memoryview(b"")
        self.count = 0

    def readable(self) -> bool:
        """Whether it can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read bytes into a buffer; none at the end.

        Raises:
            TruncatedDumpError: The data ends too early.
            ArchiveError: It is damaged.
        """
        if not self._held:
            self._held = memoryview(self._read_part())
        size = min(len(buffer), len(self._held))
        buffer[:size] = self._held[:size]
        self._held = self._held[size:]
        self.count += size
        return size

    def _read_part(self) -> bytes:
        """The next bytes; the first time as many as are peeked at, since pipes may give few."""
        needed = 1 if self.count else HEAD_BYTES
        data = b""
        try:
            for part in self._parts:
                data += part
                if len(data) >= needed:
                    break
        except Exception as error:
            if self._kind and isinstance(error, EOFError):
                raise TruncatedDumpError(
                    self._name,
                    f"is {self._kind} that is cut off",
                    advice="download it again, or the missing part",
                ) from None
            if self._kind and is_damage(error):
                raise ArchiveError(
                    self._name,
                    f"is {self._kind} that is damaged ({error})",
                    advice="download it again",
                ) from error
            raise
        return data

    def close(self) -> None:
        """Close the parts; a thread that is reading them closes them itself afterwards."""
        super().close()
        with suppress(ValueError):
            self._parts.close()


class ReadAhead:
    """Reads a file in a thread, some blocks ahead.

    Decompressors release the interpreter's lock. A bounded queue pauses a stream that is faster
    than the workers.

    Args:
        read: Reads the file.
        close: Closes it, which does not happen while the thread is reading it: after `close`, the
            thread itself closes what it was reading.
    """

    def __init__(self, read: Read, close: Callable[[], object]) -> None:
        self._read = read
        self._close = close
        self._blocks: queue.Queue[bytes | BaseException] = queue.Queue(_BLOCKS)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="so2docs-stream", daemon=True)

    def blocks(self) -> Parts:
        """The blocks of the file; raises what reading it raises."""
        self._thread.start()
        while block := self._next_block():
            if isinstance(block, BaseException):
                raise block
            yield block

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
                block = self._read(BLOCK_BYTES)
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
                self._close()

    def close(self) -> None:
        """End the thread; one that waits for a pipe ends with the process."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(_LONGEST_WAIT)
        if not self._thread.is_alive():
            self._close()


@dataclass(frozen=True, slots=True)
class End:
    """The result of reading a dump to its end: its size, and the number of replaced characters.

    No chunk has the number `chunks` or a higher one.
    """

    size: int
    repaired: int
    chunks: int


def check_unchanged(
    name: str, path: str, identity: storage.FileIdentity, file: BinaryIO | None = None
) -> None:
    """Raise `ChangedDumpError` if a file (an open one, or that of a path) has changed.

    Args:
        name: Name of the dump, for messages.
        path: The file.
        identity: Earlier identity of the file.
        file: The file, if it is open.
    """
    try:
        current = storage.identify(path, file)
    except OSError as error:
        raise ChangedDumpError(
            name,
            f"disappeared while being read ({error.strerror})",
            advice="make it available, then run again",
        ) from None
    if current != identity:
        sizes = f"{identity.size:,} bytes before, {current.size:,} now"
        raise changed_error(name, f"changed while being read ({sizes})")


def changed_error(name: str, problem: str) -> ChangedDumpError:
    """The error for a dump that is being written."""
    advice = f"wait until it is complete, then run again with {flag('restart', True)}"
    return ChangedDumpError(name, problem, advice=advice)


@dataclass(slots=True)
class Source:
    """A dump as a stream of UTF-8.

    Attributes:
        name: The user's name for it, for messages.
        table: The table to read from an archive with several.
        file: Path of its file; None for a stream that can be read only once.
        identity: Identity of that file, to detect a change.
        total: Bytes that `counted` counts up to the end; None if unknown.
        expected: Size of the decompressed dump, known or estimated; None if it is unknown.
        encoding: Encoding of the dump.
        repaired: Number of characters that were replaced.
        reader: The topmost layer.
        counted: The layer whose position is the progress.
        stack: Resources to close at the end.
    """

    name: str
    table: Table = POSTS
    file: str | None = None
    identity: storage.FileIdentity = storage.NO_FILE
    total: int | None = None
    expected: int | None = None
    encoding: str = "utf-8"
    repaired: int = 0
    reader: io.BufferedReader = field(init=False)
    counted: Stream = field(init=False)
    stack: ExitStack = field(default_factory=ExitStack)

    def add_layer(self, parts: Parts, kind: str = "") -> Stream:
        """Add a layer: a generator that reads the previous topmost layer.

        Args:
            parts: The bytes of the new layer.
            kind: The compression, with an article; empty for another layer.
        """
        stream = Stream(parts, self.name, kind)
        self.stack.callback(stream.close)
        self.reader = io.BufferedReader(stream, HEAD_BYTES)
        return stream

    def decode(self) -> None:
        """Read the dump as UTF-8, whatever its encoding.

        Raises:
            DumpError: Its declaration names an encoding that Python does not know.
        """
        encoding = detect_encoding(self.name, self.reader.peek())
        if encoding is not None:
            self.encoding = encoding
            self.add_layer(self._decode(self.reader.read1))
            if self.expected is not None:
                self.expected //= len("<".encode(encoding))

    def _decode(self, read: Read) -> Parts:
        decoder = codecs.getincrementaldecoder(self.encoding)
        replacing, ignoring = decoder(errors="replace"), decoder(errors="ignore")
        data = b"-"
        while data:
            data = read(BLOCK_BYTES)
            state = replacing.getstate()
            text = replacing.decode(data, not data)
            if _REPLACEMENT in text:
                # Those of the dump itself are left when errors are passed over.
                ignoring.setstate(state)
                original = ignoring.decode(data, not data).count(_REPLACEMENT)
                self.repaired += text.count(_REPLACEMENT) - original
            # Half a character of UTF-7 is replaced and counted with the row that it is in.
            yield text.encode(errors="surrogatepass")

    def read_ahead(self) -> None:
        """Read the layers in a thread from now on."""
        ahead = ReadAhead(self.reader.read1, self.stack.close)
        self.reader = io.BufferedReader(Stream(ahead.blocks()), HEAD_BYTES)
        self.stack = ExitStack()
        self.stack.callback(ahead.close)

    def close(self) -> None:
        """Close resources in reverse order of opening."""
        self.stack.close()


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
