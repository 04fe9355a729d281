"""An archive: its list of members, read once, and the block of it that is being decompressed.

Members of a solid block are one compressed stream. Those that are opened in the order of the block
share one decompression; what lies between them is passed over.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from isal.isal_zlib import crc32

from so2docs.dump.kinds import join_names, members_with
from so2docs.dump.source import BLOCK_BYTES, Parts, Stream, read_blocks
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
        file: The archive.
        entries: Its files, in their order.
    """

    kind: str
    """What it is, for messages."""

    def __init__(self, name: str, file: BinaryIO, entries: Sequence[Entry]) -> None:
        self.name = name
        self.file = file
        self.entries = entries
        self._lock = threading.Lock()
        self._opened = 0
        self._block = Stream(read_blocks(lambda _: b""))
        self._number = -1

    @abstractmethod
    def open_block(self, entry: Entry, threads: int) -> Parts:
        """Decompress the block that an entry is in, from the start of the block."""

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

    def read(self, entry: Entry, threads: int) -> Parts:
        """Read a member; the reading of another one ends.

        What comes before it in its block is passed over. A member is read by a thread, which may
        still be at work when another member is opened.

        Args:
            entry: The member.
            threads: How many may decompress.

        Raises:
            ArchiveError: It is encrypted, or compressed in an unusual way.
            EOFError: There is less than the archive says, or another member was opened.
            OSError: The checksum is wrong.
        """
        with self._lock:
            self._opened += 1
            opened = self._opened
            if self._number != entry.block or self._block.count > entry.offset:
                self._block.close()
                self._block = Stream(self.open_block(entry, threads))
                self._number = entry.block
        start, left, crc = entry.offset, entry.size, 0
        while left:
            with self._lock:
                if self._opened != opened:
                    raise EOFError
                before = start - self._block.count
                try:
                    data = self._block.read(min(before or left, BLOCK_BYTES))
                except BaseException:
                    self._number = -1  # Another member of the block fails in the same way.
                    raise
            if not data:
                raise EOFError
            if before:
                continue
            start += len(data)
            left -= len(data)
            crc = crc32(data, crc)
            if not left and entry.crc is not None and crc != entry.crc:
                raise OSError("its checksum is wrong")
            yield data

    def close(self) -> None:
        """End the threads that decompress, if there are any, and close the file."""
        with self._lock:
            self._opened += 1
            self._block.close()
            self.file.close()
