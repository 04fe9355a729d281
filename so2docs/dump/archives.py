"""Archives: the list of members, read once, and the block that is being decompressed.

The members of a solid block are one compressed stream. Members that are opened in the order of the
block share one decompression; those between them are skipped.

py7zr reads the list of members of a 7z archive. The compressions of Stack Exchange's archives
(bzip2, and the defaults of 7-Zip, LZMA and LZMA2) are decompressed here, bzip2 by several threads;
others by py7zr.

Format: 7zFormat.txt and Methods.txt of the LZMA SDK, https://7-zip.org/sdk.html
"""

from __future__ import annotations

import copy
import lzma
import struct
import threading
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, BinaryIO

from isal.isal_zlib import crc32

from so2docs.dump.compressed import (
    decompress_bzip2,
    decompress_deflate,
    decompress_streams,
    decompress_zstd,
    raw_lzma,
    read_range,
)
from so2docs.dump.kinds import Kind, join_names, members_with
from so2docs.dump.source import BLOCK_BYTES, Parts, Read, Stream, read_blocks
from so2docs.errors import ArchiveError, DumpError
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
    """The kind of archive, for messages."""

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

        Everything before it in its block is skipped. A member is read by a thread, which may still
        be at work when another member is opened.

        Args:
            entry: The member.
            threads: Number of threads that decompress.

        Raises:
            ArchiveError: It is encrypted, or compressed in an unusual way.
            EOFError: The archive is truncated, or another member was opened.
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


_COPY, _DEFLATE, _BZIP2 = b"\x00", b"\x04\x01\x08", b"\x04\x02\x02"
_LZMA, _LZMA2 = b"\x03\x01\x01", b"\x21"
_ZSTD = b"\x04\xf7\x11\x01"
_REFUSED = {
    b"\x03\x04\x01": "PPMd",
    b"\x04\x01\x09": "Deflate64",
    _ZSTD: "zstd",
    b"\x04\xf7\x11\x02": "brotli",
}
_SEVEN_ZIP_NAMES = {
    _COPY: "stored",
    _DEFLATE: "deflate",
    _BZIP2: "bzip2",
    _LZMA: "LZMA",
    _LZMA2: "LZMA2",
    **_REFUSED,
}
_UNKNOWN_SIZE = 1 << 62
_FEED = 32 * 1024
_PATIENCE = 100


class SevenZip(Archive):
    """A 7z archive.

    Raises:
        ArchiveError: It is damaged or encrypted.
    """

    kind = "a 7z archive"

    def __init__(self, name: str, file: BinaryIO) -> None:
        with _translate_seven_zip_errors(name):
            self._archive = _read_header(name, file)
            entries = list(_entries(self._archive))
        super().__init__(name, file, entries)

    def codecs(self) -> dict[str, int]:
        """Names of compression methods, each with its number of blocks."""
        streams = self._archive.header.main_streams
        folders = [] if streams is None else streams.unpackinfo.folders
        return dict(
            Counter(
                " and ".join(
                    _SEVEN_ZIP_NAMES.get(c["method"], c["method"].hex()) for c in folder.coders
                )
                for folder in folders
            )
        )

    def open_block(self, entry: Entry, threads: int) -> Parts:
        """Decompress the block that an entry is in."""
        with _translate_seven_zip_errors(self.name):
            return self._open_folder(self._archive.header.main_streams, entry.block, threads)

    def _open_folder(self, streams: Any, number: int, threads: int) -> Parts:
        """Decompress a folder, as 7z calls a block of solid data."""
        name, folders, info = self.name, streams.unpackinfo.folders, streams.packinfo
        folder = folders[number]
        if _count_streams(folder) != 1:
            raise ArchiveError(
                name,
                "is compressed with BCJ2, which so2docs does not unpack",
                advice="unpack it first",
            )
        first = sum(map(_count_streams, folders[:number]))
        start = self._archive.afterheader + info.packpos + sum(info.packsizes[:first])
        size = info.packsizes[first]
        self.file.seek(start)
        packed = read_range(self.file, size)
        unpacked = folder.get_unpack_size()
        if len(folder.coders) == 1:
            coder = folder.coders[0]
            method, properties = coder["method"], coder["properties"]
            if method == _COPY:
                return read_blocks(packed)
            if method == _BZIP2:
                return decompress_bzip2(packed, threads)
            if method == _DEFLATE:
                return decompress_deflate(packed)
            if method == _ZSTD:
                return decompress_zstd(packed, threads)
            if method in (_LZMA, _LZMA2):
                is_lzma2 = method == _LZMA2
                new = raw_lzma(name, properties, unpacked, is_lzma2=is_lzma2)
                return decompress_streams(packed, new)
        _check_chain(name, folder.coders)
        return _decompress_by_py7zr(packed, folder.get_decompressor(size))


def _entries(archive: Any) -> Iterator[Entry]:
    """The files of an archive, each with its index in its block."""
    streams = archive.header.main_streams
    folders = [] if streams is None else streams.unpackinfo.folders
    numbers = {id(folder): number for number, folder in enumerate(folders)}
    before: dict[int, int] = {}
    for member in archive.files:
        if member.is_directory:
            continue
        if member.emptystream:
            yield Entry(member.filename, 0)
            continue
        number = numbers[id(member.folder)]
        offset = before.get(number, 0)
        before[number] = offset + member.uncompressed
        yield Entry(member.filename, member.uncompressed, number, offset, member.crc32)


def _read_header(name: str, file: BinaryIO) -> Any:
    import py7zr

    archive = py7zr.SevenZipFile(file)
    if archive.needs_password():
        raise _encrypted_error(name)
    return archive


def _encrypted_error(name: str) -> ArchiveError:
    return ArchiveError(name, "is encrypted", advice="unpack it first, with its password")


@contextmanager
def _translate_seven_zip_errors(name: str) -> Iterator[None]:
    """Convert the errors of libraries into errors of this package."""
    from py7zr.exceptions import ArchiveError as Py7zrError
    from py7zr.exceptions import PasswordRequired

    try:
        yield
    except PasswordRequired:
        raise _encrypted_error(name) from None
    except DumpError:
        raise
    # What py7zr raises on a damaged list of members is not limited to its own exceptions.
    except (
        Py7zrError,
        lzma.LZMAError,
        zlib.error,
        struct.error,
        EOFError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        AssertionError,
        MemoryError,
    ) as error:
        raise ArchiveError(
            name,
            f"is a damaged or cut off 7z archive ({str(error) or type(error).__name__})",
            advice="download it again",
        ) from error


def _check_chain(name: str, coders: list[dict[str, Any]]) -> None:
    """Refuse what py7zr does not decompress in bounded memory: all but one method and filters.

    PPMd is refused too: pyppmd 1.3 crashes the process on damaged data.
    """
    methods = [coder["method"] for coder in coders if not _is_filter(coder["method"])]
    if len(methods) > 1 or not {*methods} <= {_COPY, _DEFLATE, _BZIP2, _LZMA, _LZMA2}:
        method_names = [_REFUSED.get(method, f"method {method.hex()}") for method in methods]
        of_several = " among other methods" if len(coders) > 1 else ""
        problem = f"is compressed by {' and '.join(method_names)}{of_several}"
        raise ArchiveError(name, problem, advice="unpack it first")
    for coder in coders:
        if coder["method"] in (_LZMA, _LZMA2):
            is_lzma2 = coder["method"] == _LZMA2
            raw_lzma(name, coder["properties"], _UNKNOWN_SIZE, is_lzma2=is_lzma2)


def _is_filter(method: bytes) -> bool:
    """Whether a method is a filter that keeps the size: Methods.txt, 03 to 0B and 03 03."""
    return method.startswith(b"\x03\x03") or (len(method) == 1 and b"\x03" <= method <= b"\x0b")


def _count_streams(folder: Any) -> int:
    """Count the packed streams of a folder."""
    return sum(int(coder["numinstreams"]) for coder in folder.coders) - len(folder.bindpairs)


def _decompress_by_py7zr(read: Read, decompressor: Any) -> Parts:
    decompressor.block_size = _FEED
    first = decompressor.chain[0]

    def feed(size: int) -> bytes:
        # It reads some each time, whether it needs them or not: the input of a bomb would pile up.
        return read(size) if getattr(first, "needs_input", True) else b""

    patience = _PATIENCE
    while patience:
        try:
            data = decompressor.decompress(SimpleNamespace(read=feed), BLOCK_BYTES)
        except (OSError, EOFError):
            raise
        except Exception as error:
            # Every library has its own; that of PPMd calls damaged data a MemoryError.
            raise OSError(str(error) or type(error).__name__) from error
        patience = _PATIENCE if data else patience - 1
        if data:
            yield bytes(data)
    raise EOFError


# Zip archives: the files of a dump in them, read without unpacking.

_ENCRYPTED = 1
_ZIP_NAMES = {
    zipfile.ZIP_STORED: "stored",
    zipfile.ZIP_DEFLATED: "deflate",
    zipfile.ZIP_BZIP2: "bzip2",
    zipfile.ZIP_LZMA: "LZMA",
}


class Zip(Archive):
    """A zip archive, in which each member is a block of its own.

    Raises:
        ArchiveError: It is damaged.
    """

    kind = "a zip archive"

    def __init__(self, name: str, file: BinaryIO) -> None:
        with _translate_zip_errors(name):
            self._archive = zipfile.ZipFile(file)
        self._members = [member for member in self._archive.infolist() if not member.is_dir()]
        super().__init__(
            name,
            file,
            [
                Entry(member.filename, member.file_size, number, 0, member.CRC)
                for number, member in enumerate(self._members)
            ],
        )

    def codecs(self) -> dict[str, int]:
        """Names of compression methods, each with its number of members."""
        methods = (member.compress_type for member in self._members)
        return dict(Counter(_ZIP_NAMES.get(method, f"method {method}") for method in methods))

    def open_block(self, entry: Entry, threads: int) -> Parts:
        """Decompress the block that an entry is in."""
        member = self._members[entry.block]
        with _translate_zip_errors(self.name):
            if member.flag_bits & _ENCRYPTED:
                problem = f"is encrypted: {entry.name} needs a password"
                raise ArchiveError(self.name, problem, advice="unpack it first")
            return self._open_member(member, threads)

    def _open_member(self, member: zipfile.ZipInfo, threads: int) -> Parts:
        """Decompress a member; zipfile does not bound the output of bzip2 and LZMA per call."""
        method = member.compress_type
        if method not in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            return read_blocks(self._archive.open(member).read)
        entry = copy.copy(member)
        entry.compress_type, entry.file_size = zipfile.ZIP_STORED, member.compress_size
        del entry.CRC
        packed = self._archive.open(entry).read
        if method == zipfile.ZIP_BZIP2:
            return decompress_bzip2(packed, threads)
        if method == zipfile.ZIP_DEFLATED:
            return decompress_deflate(packed)
        # APPNOTE.TXT, 5.8.8: the version, the size of the properties, and these.
        _, size = struct.unpack("<HH", packed(4))
        return decompress_streams(packed, raw_lzma(self.name, packed(size), member.file_size))


@contextmanager
def _translate_zip_errors(name: str) -> Iterator[None]:
    """Raise errors of an archive as ours."""
    try:
        yield
    except NotImplementedError as error:
        raise ArchiveError(
            name,
            f"is compressed with a method that so2docs does not unpack ({error})",
            advice="unpack it first",
        ) from None
    except (zipfile.BadZipFile, EOFError, ValueError, LookupError, OSError, struct.error) as error:
        raise ArchiveError(
            name,
            f"is a damaged or cut off zip archive ({error})",
            advice="download it again",
        ) from error


def open_archive(kind: Kind, name: str, file: BinaryIO) -> Archive:
    """Read the list of members of an archive; the file is closed with it, and after an error.

    Raises:
        ArchiveError: It is damaged or encrypted.
    """
    try:
        return Zip(name, file) if kind.name == "a zip archive" else SevenZip(name, file)
    except BaseException:
        file.close()
        raise
