"""Read members of 7z and zip archives; the list of members is read only once.

The members of a solid block are one compressed stream. Members opened in the order of the block
are decompressed in one go, and the members between them are skipped.

Zip archives are read here, 7z archives in `seven_zip`.
"""

from __future__ import annotations

import threading
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO

from isal.isal_zlib import crc32

from so2docs.dump.compressed import Parts, is_damage, read_blocks
from so2docs.dump.kinds import UNPACK
from so2docs.dump.layers import Stream
from so2docs.dump.names import join_names, members_with
from so2docs.errors import ArchiveError
from so2docs.schema import Table


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in an archive.

    Attributes:
        name: Path in the archive.
        size: Decompressed size in bytes.
        block: Number of the file's block.
        offset: Offset in the decompressed block.
        crc: CRC-32 of the decompressed bytes; None if the archive does not contain it.
    """

    name: str
    size: int
    block: int = 0
    offset: int = 0
    crc: int | None = None


@dataclass(slots=True)
class Wanted:
    """The range of a block to read, which moves towards its end with each member."""

    start: int = 0
    end: int = 0


class Archive(ABC):
    """An open archive, whose members can be read.

    Args:
        name: Name of the archive, for messages.
        file: The open file.
        entries: Files in the archive, in order.
    """

    kind: str
    """The kind of archive, for messages."""

    def __init__(self, name: str, file: BinaryIO, entries: Sequence[Entry]) -> None:
        self.name = name
        self.file = file
        self.entries = entries
        self.names = [entry.name for entry in entries]
        self._lock = threading.Lock()
        self._opened = 0
        self._block = Stream(read_blocks(lambda _: b""))
        self._number = -1
        self._wanted = Wanted()

    @abstractmethod
    def open_block(self, number: int, wanted: Wanted, threads: int, work_dir: str | None) -> Parts:
        """Decompress a block; bytes that are not wanted may be replaced by zeros."""

    def find(self, table: Table) -> Entry:
        """Find the member that contains a table.

        Raises:
            ArchiveError: No member, an empty member or several members have the table.
        """
        matches = members_with(table, self.names)
        if not matches:
            problem = f"has no {table.file}; it holds {join_names(self.names)}"
            advice = f"if the site has several archives, give the one with the {table.name}"
        elif len(set(matches)) < len(matches):
            problem = f"holds {len(matches)} files named {matches[0]}"
            advice = "unpack it and choose one"
        elif len(matches) > 1:
            problem = f"holds the {table.name} of several sites: {join_names(matches)}"
            advice = "unpack it and convert them one by one"
        else:
            entry = self.entries[self.names.index(matches[0])]
            if entry.size:
                return entry
            problem, advice = f"holds an empty {entry.name}", "download it again"
        raise ArchiveError(self.name, problem, advice=advice)

    def read(self, entry: Entry, threads: int, work_dir: str | None) -> Parts:
        """Read a member, and stop reading any other member.

        The bytes before the member in its block are skipped. A thread reads the member, and may
        still be running when another member is opened.

        Args:
            entry: The member.
            threads: Number of decompression threads.
            work_dir: Folder for temporary files; the system's temporary folder if None.

        Raises:
            ArchiveError: The member is encrypted, or its compression is not supported.
            EOFError: The archive is truncated, or another member was opened.
            OSError: The checksum is wrong.
        """
        if not entry.size:  # An empty file may be in no block.
            return
        with self._lock:
            self._opened += 1
            opened = self._opened
            start, end, at, crc = entry.offset, entry.offset + entry.size, 0, 0
            if self._number != entry.block or self._block.count > start:
                self._block.close()
                self._wanted = Wanted()
                parts = self.open_block(entry.block, self._wanted, threads, work_dir)
                self._block, self._number = Stream(parts), entry.block
            self._wanted.start, self._wanted.end = start, end
        while at < end:
            with self._lock:
                if self._opened != opened:
                    raise EOFError
                at = self._block.count
                try:
                    data = self._block.read_part((start if at < start else end) - at)
                except BaseException:
                    # Reopen the block for its other members, so that they fail with the same error.
                    self._number = -1
                    raise
            if not data:
                raise EOFError
            at += len(data)
            if at <= start:
                continue
            crc = crc32(data, crc)
            if at == end and entry.crc is not None and crc != entry.crc:
                raise OSError("its checksum is wrong")
            yield data

    def read_start(self, entry: Entry, size: int) -> bytes:
        """Read the first `size` bytes of a member, or all of a smaller one."""
        name = f"{self.name} ({entry.name})"
        return Stream(self.read(entry, 1, None), name, self.kind).peek(size)[:size]

    def close(self) -> None:
        """Stop any decompression threads, and close the file."""
        with self._lock:
            self._opened += 1
            self._block.close()
            self.file.close()


# Zip archives. The files of a dump are read without unpacking the archive.

_ENCRYPTED = 1
_ZIP_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}


class Zip(Archive):
    """A zip archive; each member is a separate block."""

    kind = "a zip archive"

    def __init__(self, name: str, file: BinaryIO) -> None:
        try:
            self._archive = zipfile.ZipFile(file)
        except Exception as error:
            if not is_damage(error):
                raise
            problem = f"is a damaged or truncated zip archive ({error})"
            raise ArchiveError(name, problem, advice="download it again") from error
        self._members = [member for member in self._archive.infolist() if not member.is_dir()]
        super().__init__(
            name,
            file,
            [
                Entry(member.filename, member.file_size, number, 0, member.CRC)
                for number, member in enumerate(self._members)
            ],
        )

    def open_block(self, number: int, wanted: Wanted, threads: int, work_dir: str | None) -> Parts:
        """Decompress a member."""
        member = self._members[number]
        problem = ""
        if member.flag_bits & _ENCRYPTED:
            problem = f"is encrypted: {member.filename} needs a password"
        elif member.compress_type not in _ZIP_METHODS:
            method = f"method {member.compress_type}"
            problem = f"is compressed with {method}, which so2docs does not unpack"
        if problem:
            raise ArchiveError(self.name, problem, advice=UNPACK)
        return read_blocks(self._archive.open(member).read)
