"""The files of a dump, and the tables in them.

The first bytes of a file determine its kind. A plain UTF-8 file is read in ranges; everything else
is read as a stream: a compressed file, or a member of an archive, which may be an archive itself.
"""

from __future__ import annotations

import io
import os
import re
import select
import stat
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO, cast

from so2docs.dump import storage
from so2docs.dump.dump import Dump, open_dump
from so2docs.dump.kinds import Kind, detect_encoding, detect_kind
from so2docs.dump.storage import changed_error, unreadable_dump
from so2docs.errors import DumpError, without_secrets
from so2docs.schema import POSTS, Table
from so2docs.standard_streams import is_closed

if TYPE_CHECKING:
    from so2docs.dump.archives import Archive, Entry
    from so2docs.dump.stream import AnyDump, StreamDump

STANDARD_INPUT = "-"

_HEAD_BYTES = 4096

_PIPE_BYTES = 1024 * 1024
"""Capacity of a pipe: the largest that Linux allows to users."""

_STREAM_WORK = 2
"""Approximate cost of reading a byte from a stream, relative to a plain file."""


class SourceFile:
    """A file of a dump, whose kind and list of members are read only once.

    Attributes:
        path: Path or URL of the file; `-` for standard input, and empty for an open file.
        name: Name of the file in messages and records.
        is_plain: Whether the file is uncompressed UTF-8, which is read in ranges.
        is_file: Whether the file can be read again; False for a pipe and a stream.
        is_stream: Whether it is standard input or an open file, which stays open.
        kind: Kind of the file, such as an archive; None for XML and for unknown content.
        identity: Identity of the file, to detect a change.
    """

    def __init__(self, path: str, stream: BinaryIO | None = None) -> None:
        """Read the first bytes of a file; a pipe or a stream is not read."""
        self.path, self._stream = path, stream
        self.is_stream = stream is not None or path == STANDARD_INPUT
        self.is_plain = self.is_file = False
        self.kind: Kind | None = None
        self.identity = storage.NO_FILE
        self._head = b""
        self._archives: dict[int, Archive] = {}
        if stream is not None:
            self.name = str(getattr(stream, "name", "the open file"))
            return
        self.name = "standard input" if path == STANDARD_INPUT else without_secrets(path)
        try:
            # Do not open a pipe here: opening it would block until something writes to it.
            self.is_file = not self.is_stream and (
                storage.is_url(path) or stat.S_ISREG(os.stat(path).st_mode)
            )
            if not self.is_file:
                return
            with storage.open_file(path) as file:
                self._head = file.read(_HEAD_BYTES)
                self.identity = storage.identify(path, file)
        except OSError as error:
            raise unreadable_dump(path, error) from error
        self.kind = detect_kind(self._head)
        self.is_plain = self.kind is None and detect_encoding(path, self._head) is None

    @property
    def expected(self) -> int:
        """Estimated size of the XML in bytes, including all members of an archive."""
        return int(self.identity.size * (self.kind.ratio if self.kind else 1))

    def archive(self) -> Archive | None:
        """Open the archive and read its list of members; None if the file is not an archive.

        An archive reads one stream at a time, so each thread has its own.
        """
        thread = threading.get_ident()
        if thread not in self._archives and self.kind is not None and self.kind.is_archive:
            from so2docs.dump.unpacking import open_archive  # Only needed for archives.

            self._archives[thread] = open_archive(self.kind, self.name, self.open())
        return self._archives.get(thread)

    @cached_property
    def digest(self) -> str:
        """Hash of the bytes at 17 positions, to identify the content."""
        with self.open() as file:
            return storage.sample_hash(file, self.identity.size)

    def has_root(self, root: str) -> bool:
        """Whether a plain file starts with this root element, such as that of a table."""
        return self.is_plain and re.search(rb"<%b[\s/>]" % root.encode(), self._head) is not None

    def open(self) -> BinaryIO:
        """Open the file; of a stream, return the open file, which the caller must not close."""
        if self._stream is not None:
            return self._stream
        if self.path == STANDARD_INPUT:
            return _standard_input(self.name)
        try:
            if self.is_file:
                return storage.open_file(self.path)
            # A buffer would wait until it is full even if the pipe already has data.
            return enlarge_pipe(cast(BinaryIO, open(self.path, "rb", buffering=0)))
        except OSError as error:
            raise unreadable_dump(self.path, error) from error

    def close(self) -> None:
        """Close the archives that were opened, which ends their streams."""
        while self._archives:
            self._archives.popitem()[1].close()


def _standard_input(name: str) -> BinaryIO:
    if is_closed(sys.stdin):
        raise DumpError(name, "is closed", advice="pipe a dump into it")
    if sys.stdin.isatty():
        raise DumpError(name, "is a terminal", advice="pipe a dump into it, or name its file")
    # Bypass the buffer: a thread that reads from it would hold its lock, so the interpreter could
    # not exit.
    return enlarge_pipe(cast(BinaryIO, getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)))


def enlarge_pipe(file: BinaryIO) -> BinaryIO:
    """Enlarge a pipe on Linux: reads of a whole block save 0.1 s of CPU time per GB."""
    # Not Linux, not a pipe, or the pipes of this user are already large.
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(file, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    return file


@dataclass(slots=True)
class TableFile:
    """A table of a dump, such as the posts, with its file.

    Attributes:
        table: The table.
        source: The file.
        name: Name in messages.
        size: Size of the table in bytes; approximate for a compressed file; 0 if unknown.
        entry: Member of an archive; None for other files.
        dump: The open table, or None.
    """

    table: Table
    source: SourceFile
    name: str
    size: int
    entry: Entry | None = None
    dump: AnyDump | None = None

    @classmethod
    def of(cls, table: Table, source: SourceFile, name: str) -> TableFile:
        """Describe a table in a file without opening it."""
        archive = source.archive()
        entry = None if archive is None else archive.find(table)
        size = source.expected if entry is None else entry.size
        return cls(table, source, name, size, entry)

    @property
    def file(self) -> str | None:
        """Path of the file; None if it can be read only once."""
        return self.source.path if self.source.is_file else None

    @property
    def label(self) -> str:
        """The name in a progress bar."""
        return "reading" if self.table == POSTS else f"reading {self.table.name}"

    @property
    def work(self) -> int:
        """Cost of reading the table, in bytes of a plain file; 0 if unknown."""
        return self.size * (1 if self.source.is_plain else _STREAM_WORK)

    @property
    def chunk_bytes(self) -> int:
        """Size of a chunk in bytes, larger for a large table; 0 for growing pieces of a stream."""
        least = min(self.size // 64, 32 << 20)
        return max(self.dump.chunk_bytes, least) if isinstance(self.dump, Dump) else 0

    @property
    def place(self) -> tuple[str, int, int]:
        """Position of the table: file, block, offset in the block."""
        path = self.source.path
        return (path, self.entry.block, self.entry.offset) if self.entry else (path, 0, 0)

    def precedes(self, other: TableFile) -> bool:
        """Whether the table comes before another table in the same compressed stream."""
        shares_a_block = self.entry is not None and self.place[:2] == other.place[:2]
        return shares_a_block and self.place < other.place

    def open(self, *, threads: int = 1, work_dir: str | None = None) -> AnyDump:
        """Open the table and read its start; if it is already open, return it unchanged.

        Args:
            threads: Number of decompression threads.
            work_dir: Folder for a copy of an archive that is inside another archive or comes from
                standard input; the system's temporary folder if None.
        """
        if self.dump is None:
            if self.source.is_plain:
                dump: AnyDump = open_dump(self.source.path, self.table)
            else:
                dump = self._open_stream(threads, work_dir)
            if dump.identity != self.source.identity:
                dump.close()
                raise changed_error(self.name, "changed before it was read")
            self.dump, self.size = dump, dump.size
        return self.dump

    def _open_stream(self, threads: int, work_dir: str | None) -> StreamDump:
        # Only needed for streams.
        from so2docs.dump.compressed import read_blocks
        from so2docs.dump.layers import Layers, read_polled
        from so2docs.dump.stream import StreamDump
        from so2docs.dump.unpacking import unpack

        layers, source, archive = Layers(self.name), self.source, self.source.archive()
        pipe = None
        try:
            file = source.open() if archive is None else archive.file
            if archive is None:
                if not source.is_stream:
                    layers.resources.enter_context(file)
                is_pipe = isinstance(file, io.FileIO) and hasattr(select, "poll")  # Not on Windows.
                parts = read_polled(file) if is_pipe else read_blocks(file.read)
                layers.expected = source.identity.size or None
                layers.add(parts)
                pipe = layers.top if is_pipe else None
            unpack(layers, self.table, archive, threads, work_dir)
            if layers.top is not pipe:  # For a plain pipe, a thread takes 8 % more CPU time.
                layers.read_ahead()
            identity = storage.identify(source.path, file) if source.is_file else storage.NO_FILE
            return StreamDump(layers, self.table, self.file, identity)
        except BaseException:
            layers.close()
            raise

    def close(self) -> None:
        """Close the table; a stream cannot be reread."""
        if self.dump is not None:
            self.dump.close()
