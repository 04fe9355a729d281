"""An archive: its list of members, read once, and the block of it that is being decompressed.

Members of a solid block are one compressed stream. Those that are opened in the order of the block
share one decompression; what lies between them is passed over.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from isal.isal_zlib import crc32

from so2docs.dump.kinds import join_names, members_with
from so2docs.dump.source import BLOCK_BYTES, Reader
from so2docs.errors import ArchiveError
from so2docs.schema import Table


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in an archive.

    Attributes:
        name: Its path in the archive.
        size: Bytes, decompressed.
        block: Number of the block that it is in.
        offset: Bytes of the decompressed block before it.
        crc: CRC-32 of its bytes, if the archive has it.
    """

    name: str
    size: int
    block: int = 0
    offset: int = 0
    crc: int | None = None


class Archive(ABC):
    """The members of an archive.

    Args:
        name: Name of the archive, for messages.
        file: The archive, which is left open.
        entries: Its files, in their order.
    """

    kind: str
    """What it is, for messages."""

    def __init__(self, name: str, file: BinaryIO, entries: Sequence[Entry]) -> None:
        self.name = name
        self.file = file
        self.entries = entries
        self._block: _Block | None = None

    @abstractmethod
    def open_block(self, entry: Entry, threads: int) -> Reader:
        """A reader of the decompressed block that an entry is in, from the start of the block."""

    @abstractmethod
    def codecs(self) -> dict[str, int]:
        """Names of compression methods, each with its number of blocks."""

    def find(self, table: Table) -> Entry:
        """The member that holds a file of a dump.

        Raises:
            ArchiveError: There is no such member, it is empty, or several match.
        """
        names = [entry.name for entry in self.entries]
        matches = members_with(table, names)
        if not matches:
            raise ArchiveError(
                self.name,
                f"has no {table.file}; it holds {join_names(names)}",
                advice=f"if the site has several archives, give the one with the {table.name}",
            )
        if len(set(matches)) < len(matches):
            raise ArchiveError(
                self.name,
                f"holds {len(matches)} files named {matches[0]}",
                advice="unpack it and choose one",
            )
        if len(matches) > 1:
            raise ArchiveError(
                self.name,
                f"holds the {table.name} of several sites: {join_names(matches)}",
                advice="unpack it and convert them one by one",
            )
        entry = self.entries[names.index(matches[0])]
        if not entry.size:
            raise ArchiveError(
                self.name, f"holds an empty {entry.name}", advice="download it again"
            )
        return entry

    def open(self, entry: Entry, threads: int) -> Reader:
        """Open a member; the reader of an earlier call ends.

        Args:
            entry: The member.
            threads: How many may decompress.

        Raises:
            ArchiveError: It is encrypted, or compressed in an unusual way.
        """
        block = self._block
        if block is None or not block.has_ahead(entry):
            self.close()
            block = self._block = _Block(entry.block, self.open_block(entry, threads))
        return _Member(block, entry)

    def close(self) -> None:
        """End the threads that decompress, if there are any."""
        if self._block is not None:
            self._block.close()
            self._block = None


class _Block:
    """A block that is being decompressed, for one member at a time.

    A member is read by a thread, which may still be at work when another member is opened.
    """

    def __init__(self, number: int, reader: Reader) -> None:
        self.number = number
        self.member: _Member | None = None
        self._reader = reader
        self._position = 0
        self._lock = threading.Lock()

    def has_ahead(self, entry: Entry) -> bool:
        """Whether an entry is completely ahead; ends the open member."""
        with self._lock:
            self.member = None
            return self.number == entry.block and self._position <= entry.offset

    def read(self, member: _Member, start: int, size: int) -> bytes:
        """At most `size` bytes from `start` on; none while there is something before `start`.

        Raises:
            EOFError: The block ends, or another member was opened.
        """
        with self._lock:
            if self.member is not member:
                raise EOFError
            before = start - self._position
            data = self._reader.read(min(before, BLOCK_BYTES) if before else size)
            if not data:
                raise EOFError
            self._position += len(data)
            return b"" if before else data

    def close(self) -> None:
        with self._lock:
            self.member = None
            close: Callable[[], object] | None = getattr(self._reader, "close", None)
            if close is not None:
                close()


class _Member:
    """A member of a block: what comes before it is passed over, its checksum is checked."""

    def __init__(self, block: _Block, entry: Entry) -> None:
        self._block = block
        self._at = entry.offset
        self._left = entry.size
        self._expected = entry.crc
        self._crc = 0
        block.member = self

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end.

        Raises:
            EOFError: There is less than the archive says.
            OSError: The checksum is wrong.
        """
        data = b""
        while self._left and not data:
            data = self._block.read(self, self._at, min(size, self._left))
        self._at += len(data)
        self._left -= len(data)
        self._crc = crc32(data, self._crc)
        if data and not self._left and self._expected is not None and self._crc != self._expected:
            raise OSError("its checksum is wrong")
        return data
