"""Read members of 7z and zip archives; the list of members is read only once.

The members of a solid block are one compressed stream. Members opened in the order of the block
are decompressed in one go, and the members between them are skipped.

py7zr reads the list of members of a 7z archive, and decompresses methods combined with filters.
This package itself decompresses the methods used without filters, as in Stack Exchange's archives:
bzip2 (in several threads), LZMA and LZMA2 (the defaults of 7-Zip), and a few more.

Format: 7zFormat.txt and Methods.txt of the LZMA SDK, https://7-zip.org/sdk.html
"""

from __future__ import annotations

import copy
import io
import lzma
import struct
import threading
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, BinaryIO

from isal.isal_zlib import crc32

from so2docs.dump.bzip2 import decompress_bzip2
from so2docs.dump.compressed import (
    decompress_deflate,
    decompress_streams,
    decompress_zstd,
    lzma2_dictionary,
    raw_lzma,
    read_range,
)
from so2docs.dump.kinds import Kind, join_names, members_with
from so2docs.dump.lzma2 import ReadAt, decompress_blocks
from so2docs.dump.places import START, Mark, Place
from so2docs.dump.source import BLOCK_BYTES, Parts, Read, Stream, read_blocks
from so2docs.errors import ArchiveError, DumpError
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
        self._lock = threading.Lock()
        self._expected: set[Entry] = set()
        self._opened = 0
        self._block = Stream(read_blocks(lambda _: b""))
        self._number = -1
        self._place = START
        self._earlier: list[tuple[int, Place]] = []

    @abstractmethod
    def open_block(
        self, entry: Entry, threads: int, work_dir: str | None, place: Place = START
    ) -> Parts:
        """Decompress the block of an entry, from a place in it."""

    @abstractmethod
    def codecs(self) -> dict[str, int]:
        """Return the number of blocks by compression method."""

    def find(self, table: Table) -> Entry:
        """Find the member that contains a table.

        Raises:
            ArchiveError: No member, an empty member or several members have the table.
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

    def expect(self, entries: Iterable[Entry]) -> None:
        """Announce all members to be read, so that other members can be skipped."""
        self._expected.update(entries)

    def resume_after(self, entry: Entry, place: Place) -> None:
        """For later members of the block, start decompression at this place in a member."""
        in_block = place._replace(offset=entry.offset + place.offset, crc=0)
        self._earlier.append((entry.block, in_block))

    def read(
        self,
        entry: Entry,
        threads: int,
        work_dir: str | None,
        place: Place | None = None,
        mark: Mark = lambda _: None,
    ) -> Parts:
        """Read a member, and stop reading any other member.

        The bytes before the member in its block are skipped. A thread reads the member, and may
        still be running when another member is opened.

        Args:
            entry: The member.
            threads: Number of decompression threads.
            work_dir: Folder for temporary files; the system's temporary folder if None.
            place: Place to start at, from an earlier `mark`; None for the start of the member.
            mark: Called with places in the member, before the bytes after them are returned.

        Raises:
            ArchiveError: The member is encrypted, or its compression is not supported.
            EOFError: The archive is truncated, or another member was opened.
            OSError: The checksum is wrong.
        """
        with self._lock:
            self._opened += 1
            opened = self._opened
            if self._expected and entry not in self._expected:
                self._expected.clear()
                # The open block skips members that were not announced, so open it again.
                self._number = -1
            places = [place for number, place in self._earlier if number == entry.block]
            first = max((place for place in places if place.offset <= entry.offset), default=START)
            if place is not None:
                first = place._replace(offset=entry.offset + place.offset)
                self._number = -1
            if self._number != entry.block or self._block.count > entry.offset:
                self._block.close()
                self._block = Stream(self.open_block(entry, threads, work_dir, first))
                self._block.count, self._place = first.offset, first
                self._number = entry.block
            start, end, at, crc = entry.offset, entry.offset + entry.size, 0, first.crc
            mark(self._place._replace(offset=self._place.offset - start, crc=crc))
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
                latest = self._place
            if not data:
                raise EOFError
            if latest.offset == at:
                mark(latest._replace(offset=at - start, crc=crc))
            at += len(data)
            if at <= start:
                continue
            crc = crc32(data, crc)
            if at == end and entry.crc is not None and crc != entry.crc:
                raise OSError("its checksum is wrong")
            yield data

    def _mark(self, place: Place) -> None:
        """Store the latest place in the open block."""
        self._place = place

    def close(self) -> None:
        """Stop any decompression threads, and close the file."""
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
_FROM_START: dict[bytes, Callable[[Read], Parts]] = {
    _COPY: read_blocks,
    _DEFLATE: decompress_deflate,
    _ZSTD: lambda read: decompress_zstd(read, 1),
}
_UNKNOWN_SIZE = 1 << 62
_FEED = 32 * 1024
_PATIENCE = 100


class SevenZip(Archive):
    """A 7z archive."""

    kind = "a 7z archive"

    def __init__(self, name: str, file: BinaryIO) -> None:
        with _translate_seven_zip_errors(name):
            self._archive = _read_header(name, file)
            entries = list(_entries(self._archive))
        super().__init__(name, file, entries)

    def codecs(self) -> dict[str, int]:
        """Return the number of blocks by compression method."""
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

    def open_block(
        self, entry: Entry, threads: int, work_dir: str | None, place: Place = START
    ) -> Parts:
        """Decompress the block of an entry, from a place in it."""
        with _translate_seven_zip_errors(self.name):
            streams = self._archive.header.main_streams
            return self._open_folder(streams, entry.block, threads, work_dir, place)

    def _open_folder(
        self, streams: Any, number: int, threads: int, work_dir: str | None, place: Place
    ) -> Parts:
        """Decompress a folder, which is 7z's term for a solid block."""
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
        skipped = place.packed // 8 if place.level else place.packed
        self.file.seek(start + skipped)
        packed = read_range(self.file, size - skipped)
        unpacked = folder.get_unpack_size()
        if len(folder.coders) == 1:
            coder = folder.coders[0]
            method, properties = coder["method"], coder["properties"]
            if method == _BZIP2:
                return decompress_bzip2(packed, threads, place, self._mark)
            if decompress := _FROM_START.get(method):
                return decompress(packed)
            if method in (_LZMA, _LZMA2):
                is_lzma2 = method == _LZMA2
                new = raw_lzma(name, properties, unpacked, is_lzma2=is_lzma2)
                # Files in object stores are read once, in order, so decompress them as one stream.
                if not is_lzma2 or not isinstance(self.file, io.FileIO | io.BufferedIOBase):
                    return decompress_streams(packed, new)
                return decompress_blocks(
                    self._reader_at(start, size),
                    *(size, new, threads, self._tell_wanted(number)),
                    place=place,
                    mark=self._mark,
                    dictionary=lzma2_dictionary(properties),
                    work_dir=work_dir,
                )
        _check_chain(name, folder.coders)
        return _decompress_by_py7zr(packed, folder.get_decompressor(size))

    def _reader_at(self, start: int, size: int) -> ReadAt:
        """Return a thread-safe function that reads n bytes of a packed stream at an offset."""
        lock = threading.Lock()

        def read_at(length: int, offset: int) -> bytes:
            with lock:
                self.file.seek(start + offset)
                return self.file.read(min(length, size - offset))

        return read_at

    def _tell_wanted(self, number: int) -> Callable[[int, int], bool]:
        """Return a function that checks whether a range of a folder overlaps a member to read."""
        members = [entry for entry in self._expected if entry.block == number]

        def is_wanted(start: int, end: int) -> bool:
            return not members or any(
                entry.offset < end and start < entry.offset + entry.size for entry in members
            )

        return is_wanted


def _entries(archive: Any) -> Iterator[Entry]:
    """Yield the files of a 7z archive, with their positions in the decompressed blocks."""
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
    """Convert errors of py7zr and its libraries to `ArchiveError`."""
    from py7zr.exceptions import ArchiveError as Py7zrError
    from py7zr.exceptions import PasswordRequired

    try:
        yield
    except PasswordRequired:
        raise _encrypted_error(name) from None
    except DumpError:
        raise
    # If the list of members is damaged, py7zr may raise any exception.
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
            f"is a damaged or truncated 7z archive ({str(error) or type(error).__name__})",
            advice="download it again",
        ) from error


def _check_chain(name: str, coders: list[dict[str, Any]]) -> None:
    """Raise `ArchiveError` unless py7zr can decompress the methods in bounded memory.

    One method may be combined with filters.

    PPMd is also rejected, because pyppmd 1.3 crashes the process on damaged data.
    """
    methods = [coder["method"] for coder in coders if not _is_filter(coder["method"])]
    if len(methods) > 1 or not {*methods} <= {_COPY, _DEFLATE, _BZIP2, _LZMA, _LZMA2}:
        method_names = [_REFUSED.get(method, f"method {method.hex()}") for method in methods]
        of_several = " among other methods" if len(coders) > 1 else ""
        problem = f"is compressed with {' and '.join(method_names)}{of_several}"
        raise ArchiveError(name, problem, advice="unpack it first")
    for coder in coders:
        if coder["method"] in (_LZMA, _LZMA2):
            is_lzma2 = coder["method"] == _LZMA2
            raw_lzma(name, coder["properties"], _UNKNOWN_SIZE, is_lzma2=is_lzma2)


def _is_filter(method: bytes) -> bool:
    """Whether a method is a filter that preserves the size (Methods.txt: 03 to 0B, and 03 03)."""
    return method.startswith(b"\x03\x03") or (len(method) == 1 and b"\x03" <= method <= b"\x0b")


def _count_streams(folder: Any) -> int:
    """Count the packed streams of a folder."""
    return sum(int(coder["numinstreams"]) for coder in folder.coders) - len(folder.bindpairs)


def _decompress_by_py7zr(read: Read, decompressor: Any) -> Parts:
    decompressor.block_size = _FEED
    first = decompressor.chain[0]

    def feed(size: int) -> bytes:
        # py7zr asks for input at every call. Feed it only when it needs input; otherwise, the input
        # of a decompression bomb would fill memory.
        return read(size) if getattr(first, "needs_input", True) else b""

    patience = _PATIENCE
    while patience:
        try:
            data = decompressor.decompress(SimpleNamespace(read=feed), BLOCK_BYTES)
        except (OSError, EOFError):
            raise
        except Exception as error:
            # Each library raises its own errors.
            raise OSError(str(error) or type(error).__name__) from error
        patience = _PATIENCE if data else patience - 1
        if data:
            yield bytes(data)
    raise EOFError


# Zip archives. The files of a dump are read without unpacking the archive.

_ENCRYPTED = 1
_ZIP_NAMES = {
    zipfile.ZIP_STORED: "stored",
    zipfile.ZIP_DEFLATED: "deflate",
    zipfile.ZIP_BZIP2: "bzip2",
    zipfile.ZIP_LZMA: "LZMA",
}


class Zip(Archive):
    """A zip archive; each member is a separate block."""

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
        """Return the number of members by compression method."""
        methods = (member.compress_type for member in self._members)
        return dict(Counter(_ZIP_NAMES.get(method, f"method {method}") for method in methods))

    def open_block(
        self, entry: Entry, threads: int, work_dir: str | None, place: Place = START
    ) -> Parts:
        """Decompress the block of an entry from its start; places are neither used nor marked."""
        member = self._members[entry.block]
        with _translate_zip_errors(self.name):
            if member.flag_bits & _ENCRYPTED:
                problem = f"is encrypted: {entry.name} needs a password"
                raise ArchiveError(self.name, problem, advice="unpack it first")
            return self._open_member(member, threads)

    def _open_member(self, member: zipfile.ZipInfo, threads: int) -> Parts:
        """Decompress a member; zipfile would not bound the output of bzip2 and LZMA per call."""
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
        # The data starts with a version, the size of the properties, and the properties:
        # APPNOTE.TXT, 5.8.8.
        _, size = struct.unpack("<HH", packed(4))
        return decompress_streams(packed, raw_lzma(self.name, packed(size), member.file_size))


@contextmanager
def _translate_zip_errors(name: str) -> Iterator[None]:
    """Convert the errors that zipfile raises to `ArchiveError`."""
    try:
        yield
    except DumpError:
        raise
    except NotImplementedError as error:
        raise ArchiveError(
            name,
            f"is compressed with a method that so2docs does not unpack ({error})",
            advice="unpack it first",
        ) from None
    except (zipfile.BadZipFile, EOFError, ValueError, LookupError, OSError, struct.error) as error:
        raise ArchiveError(
            name,
            f"is a damaged or truncated zip archive ({error})",
            advice="download it again",
        ) from error


def open_archive(kind: Kind, name: str, file: BinaryIO) -> Archive:
    """Open an archive and read its list of members; after an error, the file is closed."""
    try:
        return Zip(name, file) if kind.name == "a zip archive" else SevenZip(name, file)
    except BaseException:
        file.close()
        raise
