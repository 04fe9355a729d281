"""Layers around a dump, taken off one by one."""

from __future__ import annotations

import copy
import struct
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from isal.igzip_lib import DECOMP_DEFLATE, IgzipDecompressor

from so2docs.dump.archives import Archive, Entry
from so2docs.dump.bzip2 import Bzip2
from so2docs.dump.compressed import Streams, open_bzip2, open_gzip, open_xz, open_zstd, raw_lzma
from so2docs.dump.damage import is_damage
from so2docs.dump.encodings import HEAD_BYTES
from so2docs.dump.kinds import Kind, detect_kind
from so2docs.dump.seven_zip import SevenZip
from so2docs.dump.source import BLOCK_BYTES, Counted, Peekable, Reader, Source
from so2docs.errors import ArchiveError, DumpError, TruncatedDumpError

# Zip archives: the files of a dump in them, read without unpacking.

_ENCRYPTED = 1
_NAMES = {
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
        with _translate_errors(name):
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
        """What members are compressed by, each with their number."""
        methods = (member.compress_type for member in self._members)
        return dict(Counter(_NAMES.get(method, f"method {method}") for method in methods))

    def open_block(self, entry: Entry, threads: int) -> Reader:
        """A reader of the block that an entry is in."""
        member = self._members[entry.block]
        with _translate_errors(self.name):
            if member.flag_bits & _ENCRYPTED:
                problem = f"is encrypted: {entry.name} needs a password"
                raise ArchiveError(self.name, problem, advice="unpack it first")
            return self._open_member(member, threads)

    def _open_member(self, member: zipfile.ZipInfo, threads: int) -> Reader:
        """A reader of a member; zipfile does not bound what bzip2 and LZMA give at a time."""
        method = member.compress_type
        if method not in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            return self._archive.open(member)
        stored = copy.copy(member)
        stored.compress_type, stored.file_size = zipfile.ZIP_STORED, member.compress_size
        del stored.CRC
        packed = self._archive.open(stored)
        if method == zipfile.ZIP_BZIP2:
            return Bzip2(packed, threads)
        if method == zipfile.ZIP_DEFLATED:  # ISA-L is three times as fast as zlib.
            return Streams(packed, lambda: IgzipDecompressor(flag=DECOMP_DEFLATE), b"")
        # APPNOTE.TXT, 5.8.8: the version, the size of the properties, and these.
        _, size = struct.unpack("<HH", packed.read(4))
        return Streams(packed, raw_lzma(self.name, packed.read(size), member.file_size), b"")


@contextmanager
def _translate_errors(name: str) -> Iterator[None]:
    """Say what is wrong with an archive in words of this program."""
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


_MOST_LAYERS = 5
_STREAMS: dict[str, Callable[[Reader, int], Reader]] = {
    "a gzip file": open_gzip,
    "a bzip2 file": open_bzip2,
    "an xz file": open_xz,
    "a zstd file": open_zstd,
}


class ErrorTranslator:
    """A reader that says what is wrong with the data in words of this program."""

    def __init__(self, name: str, kind: str, reader: Reader) -> None:
        self._name = name
        self._kind = kind
        self._reader = reader

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end.

        Raises:
            TruncatedDumpError: The data ends too early.
            ArchiveError: It is damaged.
        """
        try:
            return self._reader.read(size)
        except EOFError:
            raise TruncatedDumpError(
                self._name,
                f"is {self._kind} that is cut off",
                advice="download it again, or the missing part",
            ) from None
        except Exception as error:
            if not is_damage(error):
                raise
            raise self._damage_error(error) from error

    def _damage_error(self, error: Exception) -> ArchiveError:
        return ArchiveError(
            self._name,
            f"is {self._kind} that is damaged ({error})",
            advice="download it again",
        )


def open_archive(kind: Kind, name: str, file: BinaryIO) -> Archive:
    """Read the list of members of an archive.

    Raises:
        ArchiveError: It is damaged or encrypted.
    """
    return Zip(name, file) if kind.name == "a zip archive" else SevenZip(name, file)


def unwrap(
    source: Source, threads: int, work_dir: str | None, archive: Archive | None = None
) -> Peekable:
    """Take off one layer after the other, until there is XML.

    Args:
        source: What was given; learns what its layers tell about the size of the dump.
        threads: How many may decompress.
        work_dir: Folder for an archive that comes as a stream.
        archive: What was given, if it is an archive.

    Raises:
        DumpError: A layer cannot be taken off.
    """
    source.expected = source.total
    found = Peekable(source.reader) if archive is None else _open_member(source, archive, threads)
    for _ in range(_MOST_LAYERS if archive is None else _MOST_LAYERS - 1):
        kind = detect_kind(found.peek(HEAD_BYTES))
        if kind is None:
            return found
        if kind.refused:
            raise DumpError(source.name, f"is {kind.name}, not XML", advice=kind.refused)
        if opener := kind.open or _STREAMS.get(kind.name):
            unpacked = opener(found, threads)
            if close := getattr(unpacked, "close", None):
                source.closers.append(close)
            found = Peekable(ErrorTranslator(source.name, kind.name, unpacked))
            if source.expected is not None:
                source.expected = int(source.expected * kind.ratio)
        else:
            saved = open_archive(kind, source.name, _save(source, found, work_dir))
            source.closers.append(saved.close)
            found = _open_member(source, saved, threads)
    raise DumpError(
        source.name, "is compressed more than five times over", advice="unpack it first"
    )


def _save(source: Source, found: Peekable, work_dir: str | None) -> BinaryIO:
    """A file of an archive that comes as a stream."""
    saved = tempfile.TemporaryFile(dir=work_dir)  # noqa: SIM115
    source.closers.append(saved.close)
    while data := found.read(BLOCK_BYTES):
        saved.write(data)
    saved.seek(0)
    return saved


def _open_member(source: Source, archive: Archive, threads: int) -> Peekable:
    """The wanted member; progress counts its own bytes, not those of the archive."""
    entry = archive.find(source.wanted)
    counted = Counted(archive.open(entry, threads))
    source.expected = source.total = entry.size
    source.position = lambda: counted.count
    return Peekable(ErrorTranslator(source.name, archive.kind, counted))
