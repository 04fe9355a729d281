"""7z archives, as dumps are published: the files of a dump in them, read without unpacking.

py7zr reads the list of members. What the archives of Stack Exchange are compressed by (bzip2, and
the defaults of 7-Zip, LZMA and LZMA2) is decompressed here, bzip2 by several threads; py7zr's own
decompressors do the rest.

Format: 7zFormat.txt and Methods.txt of the LZMA SDK, https://7-zip.org/sdk.html
"""

from __future__ import annotations

import lzma
import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from isal.igzip_lib import DECOMP_DEFLATE, IgzipDecompressor

from so2docs.dump.archives import Archive, Entry
from so2docs.dump.bzip2 import Bzip2
from so2docs.dump.compressed import Range, Streams, open_zstd, raw_lzma
from so2docs.dump.source import Reader
from so2docs.errors import ArchiveError, DumpError

_COPY, _DEFLATE, _BZIP2 = b"\x00", b"\x04\x01\x08", b"\x04\x02\x02"
_LZMA, _LZMA2 = b"\x03\x01\x01", b"\x21"
_ZSTD = b"\x04\xf7\x11\x01"
_REFUSED = {
    b"\x03\x04\x01": "PPMd",
    b"\x04\x01\x09": "Deflate64",
    _ZSTD: "zstd",
    b"\x04\xf7\x11\x02": "brotli",
}
_NAMES = {
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
        with _translate_errors(name):
            self._archive = _read_header(name, file)
            entries = list(_entries(self._archive))
        super().__init__(name, file, entries)

    def codecs(self) -> dict[str, int]:
        """What blocks are compressed by, each with their number."""
        streams = self._archive.header.main_streams
        folders = [] if streams is None else streams.unpackinfo.folders
        return dict(
            Counter(
                " and ".join(_NAMES.get(c["method"], c["method"].hex()) for c in folder.coders)
                for folder in folders
            )
        )

    def open_block(self, entry: Entry, threads: int) -> Reader:
        """A reader of the block that an entry is in."""
        with _translate_errors(self.name):
            return self._open_folder(self._archive.header.main_streams, entry.block, threads)

    def _open_folder(self, streams: Any, number: int, threads: int) -> Reader:
        """A reader of a folder, as 7z calls a block of solid data."""
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
        packed = Range(self.file, size)
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
            if method == _ZSTD:
                return open_zstd(packed, threads)
            if method in (_LZMA, _LZMA2):
                is_lzma2 = method == _LZMA2
                new = raw_lzma(name, properties, unpacked, is_lzma2=is_lzma2)
                return Streams(packed, new, b"")
        _check_chain(name, folder.coders)
        return _Py7zr(packed, folder, size)


def _entries(archive: Any) -> Iterator[Entry]:
    """The files of an archive, each with its place in the folder that it is in."""
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
def _translate_errors(name: str) -> Iterator[None]:
    """Say what is wrong with an archive in words of this program."""
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
    """Refuse what py7zr does not decompress within bounded memory: all but one method and filters.

    PPMd is refused too: pyppmd 1.3 crashes the process on damaged data.
    """
    methods = [coder["method"] for coder in coders if not _is_filter(coder["method"])]
    if len(methods) > 1 or not {*methods} <= {_COPY, _DEFLATE, _BZIP2, _LZMA, _LZMA2}:
        named = [_REFUSED.get(method, f"method {method.hex()}") for method in methods]
        of_several = " among other methods" if len(coders) > 1 else ""
        problem = f"is compressed by {' and '.join(named)}{of_several}"
        raise ArchiveError(name, problem, advice="unpack it first")
    for coder in coders:
        if coder["method"] in (_LZMA, _LZMA2):
            is_lzma2 = coder["method"] == _LZMA2
            raw_lzma(name, coder["properties"], _UNKNOWN_SIZE, is_lzma2=is_lzma2)


def _is_filter(method: bytes) -> bool:
    """Whether a method changes bytes and not how many they are: Methods.txt, 03 to 0B and 03 03."""
    return method.startswith(b"\x03\x03") or (len(method) == 1 and b"\x03" <= method <= b"\x0b")


def _count_streams(folder: Any) -> int:
    """How many packed streams a folder takes."""
    return sum(int(coder["numinstreams"]) for coder in folder.coders) - len(folder.bindpairs)


class _Feed:
    """Packed bytes for py7zr.

    It reads some each time, whether its decompressors need them or not: the input of a bomb would
    pile up.
    """

    def __init__(self, packed: Range, decompressor: Any) -> None:
        self._packed = packed
        self._first = decompressor.chain[0]

    def read(self, size: int) -> bytes:
        return self._packed.read(size) if getattr(self._first, "needs_input", True) else b""


class _Py7zr:
    """The decompressors of py7zr."""

    def __init__(self, packed: Range, folder: Any, size: int) -> None:
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
