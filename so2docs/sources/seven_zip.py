"""7z archives, as dumps are published: one file of a dump in them, read without unpacking.

py7zr reads the list of members. What the archives of Stack Exchange are compressed by (bzip2, and
the defaults of 7-Zip, LZMA and LZMA2) is decompressed here, bzip2 by several threads; py7zr's own
decompressors do the rest. The members of a solid archive are one stream: what stands before the
wanted one has to be decompressed too.

Format: 7zFormat.txt and Methods.txt of the LZMA SDK, https://7-zip.org/sdk.html
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from isal.igzip_lib import DECOMP_DEFLATE, IgzipDecompressor
from isal.isal_zlib import crc32

from so2docs.errors import ArchiveError, DumpError
from so2docs.sources.bzip2 import Bzip2
from so2docs.sources.compressed import Streams
from so2docs.sources.members import DumpFile
from so2docs.sources.source import BLOCK_BYTES, Reader
from so2docs.sources.zipped import one_of

_COPY, _DEFLATE, _BZIP2 = b"\x00", b"\x04\x01\x08", b"\x04\x02\x02"
_LZMA, _LZMA2 = b"\x03\x01\x01", b"\x21"
_PPMD = b"\x03\x04\x01"
_LARGEST_DICTIONARY = 1 << 30
_FEED = 32 * 1024
_PATIENCE = 100


def open_7z(name: str, file: BinaryIO, threads: int, wanted: DumpFile) -> tuple[Reader, int]:
    """Open a file of a dump in a 7z archive.

    Args:
        name: Name of the dump, for messages.
        file: The archive.
        threads: How many may decompress bzip2.
        wanted: What to open.

    Returns:
        A reader of it, and its size in bytes.

    Raises:
        ArchiveError: It is damaged or encrypted, or does not have it.
        DumpError: py7zr is not installed.
    """
    with _opened(name, file) as archive:
        return _open_member(name, file, archive, threads, wanted)


def files_of_7z(name: str, file: BinaryIO) -> dict[str, int]:
    """Names and sizes in bytes of the files in a 7z archive."""
    with _opened(name, file) as archive:
        return {
            member.filename: 0 if member.emptystream else member.uncompressed
            for member in archive.files
            if not member.is_directory
        }


@contextmanager
def _opened(name: str, file: BinaryIO) -> Iterator[Any]:
    """An archive; what is wrong with it is said in words of this program."""
    try:
        import py7zr
        from py7zr.exceptions import ArchiveError as Py7zrError
        from py7zr.exceptions import PasswordRequired
    except ImportError:
        raise DumpError(
            name,
            "is a 7z archive, and reading it needs the extra 7z",
            advice="install it: pip install 'so2docs[7z]'",
        ) from None
    encrypted = ArchiveError(name, "is encrypted", advice="unpack it first, with its password")
    try:
        archive = py7zr.SevenZipFile(file)
        if archive.needs_password():
            raise encrypted
        yield archive
    except PasswordRequired:
        raise encrypted from None
    except DumpError:
        raise
    # What py7zr raises on a damaged list of members is not limited to its own exceptions.
    except (
        Py7zrError,
        lzma.LZMAError,
        zlib.error,
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


def _open_member(
    name: str, file: BinaryIO, archive: Any, threads: int, wanted: DumpFile
) -> tuple[Reader, int]:
    members = [member for member in archive.files if not member.is_directory]
    chosen = one_of(name, [member.filename for member in members], wanted)
    before: dict[int, int] = {}
    for member in members:
        if member.emptystream:
            if member.filename == chosen:
                raise ArchiveError(name, f"holds an empty {chosen}", advice="download it again")
            continue
        offset = before.setdefault(id(member.folder), 0)
        if member.filename == chosen:
            break
        before[id(member.folder)] = offset + member.uncompressed
    reader = _folder(name, file, archive, member.folder, threads)
    return _Member(reader, offset, member.uncompressed, member.crc32), member.uncompressed


def _folder(name: str, file: BinaryIO, archive: Any, folder: Any, threads: int) -> Reader:
    """The members of a folder (what 7z calls a block of solid data), decompressed."""
    streams = archive.header.main_streams
    first = 0
    for other in streams.unpackinfo.folders:
        if other is folder:
            break
        first += _streams_of(other)
    if _streams_of(folder) != 1:
        raise ArchiveError(
            name, "is compressed by a method for programs (BCJ2)", advice="unpack it first"
        )
    info = streams.packinfo
    start = archive.afterheader + info.packpos + sum(info.packsizes[:first])
    size = info.packsizes[first]
    file.seek(start)
    packed = _Range(file, size)
    unpacked = folder.get_unpack_size()
    if len(folder.coders) == 1:
        coder = folder.coders[0]
        method, properties = coder["method"], coder["properties"]
        if method == _COPY:
            return packed
        if method == _BZIP2:
            return Bzip2(packed, threads)
        if method == _DEFLATE:
            return Streams(packed, lambda: IgzipDecompressor(flag=DECOMP_DEFLATE), b"")
        if method in (_LZMA, _LZMA2):
            return Streams(packed, _lzma(name, method, properties, unpacked), b"")
    if any(coder["method"] == _PPMD for coder in folder.coders):
        # pyppmd 1.3 crashes the process on damaged data.
        raise ArchiveError(name, "is compressed by PPMd", advice="unpack it first")
    return _Py7zr(packed, folder, size)


def _streams_of(folder: Any) -> int:
    """How many packed streams a folder takes."""
    return sum(int(coder["numinstreams"]) for coder in folder.coders) - len(folder.bindpairs)


def _lzma(
    name: str, method: bytes, properties: bytes, unpacked: int
) -> Callable[[], lzma.LZMADecompressor]:
    """A raw LZMA decompressor, whose dictionary is no larger than what comes out."""
    if method == _LZMA:
        rest, literal_context = divmod(properties[0], 9)
        position, literal_position = divmod(rest, 5)
        dictionary = int.from_bytes(properties[1:5], "little")
        settings = {"lc": literal_context, "lp": literal_position, "pb": position}
        chosen = {"id": lzma.FILTER_LZMA1, **settings}
    else:
        dictionary = (2 | properties[0] & 1) << (properties[0] // 2 + 11)
        chosen = {"id": lzma.FILTER_LZMA2}
    dictionary = max(4096, min(dictionary, -(-unpacked // 4096) * 4096))
    if dictionary > _LARGEST_DICTIONARY:
        raise ArchiveError(
            name,
            f"needs {dictionary / 2**30:.1f} GiB of memory for its dictionary",
            advice="unpack it first",
        )
    chosen["dict_size"] = dictionary
    return lambda: lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[chosen])


class _Range:
    """So many bytes of a file, from where it stands."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, size: int = -1, /) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = self._file.read(wanted) if wanted else b""
        if wanted and not data:
            raise EOFError
        self._left -= len(data)
        return data


class _Feed:
    """Packed bytes for py7zr.

    It reads some each time, whether its decompressors need them or not: the input of a bomb would
    pile up.
    """

    def __init__(self, packed: _Range, decompressor: Any) -> None:
        self._packed = packed
        self._first = decompressor.chain[0]

    def read(self, size: int) -> bytes:
        return self._packed.read(size) if getattr(self._first, "needs_input", True) else b""


class _Py7zr:
    """The decompressors of py7zr."""

    def __init__(self, packed: _Range, folder: Any, size: int) -> None:
        self._decompressor = folder.get_decompressor(size)
        self._decompressor.block_size = _FEED
        self._feed = _Feed(packed, self._decompressor)

    def read(self, size: int, /) -> bytes:
        try:
            for _ in range(_PATIENCE):
                if data := self._decompressor.decompress(self._feed, size):
                    return bytes(data)
        except (OSError, EOFError):
            raise
        except Exception as error:
            # Every library has its own; that of PPMd calls damaged data a MemoryError.
            raise OSError(str(error) or type(error).__name__) from error
        raise EOFError


class _Member:
    """A member of a folder: what stands before it is passed over, its checksum is checked."""

    def __init__(self, reader: Reader, before: int, size: int, crc: int | None) -> None:
        self._reader = reader
        self._before = before
        self._left = size
        self._expected = crc
        self._crc = 0

    def close(self) -> None:
        if isinstance(self._reader, Bzip2):
            self._reader.close()

    def read(self, size: int, /) -> bytes:
        while self._before:
            data = self._reader.read(min(self._before, BLOCK_BYTES))
            if not data:
                raise EOFError
            self._before -= len(data)
        if not self._left:
            return b""
        data = self._reader.read(min(size, self._left))
        if not data:
            raise EOFError
        self._left -= len(data)
        self._crc = crc32(data, self._crc)
        if not self._left and self._expected is not None and self._crc != self._expected:
            raise OSError("the checksum of what is in it is wrong")
        return data
