"""Zip archives: the files of a dump in them, read without unpacking."""

from __future__ import annotations

import copy
import struct
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from isal.igzip_lib import DECOMP_DEFLATE, IgzipDecompressor

from so2docs.dump.archives import Archive, Entry
from so2docs.dump.bzip2 import Bzip2
from so2docs.dump.compressed import Streams, raw_lzma
from so2docs.dump.source import Reader
from so2docs.errors import ArchiveError

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
            name, f"is compressed in an unusual way ({error})", advice="unpack it first"
        ) from None
    except (zipfile.BadZipFile, EOFError, ValueError, LookupError, OSError, struct.error) as error:
        raise ArchiveError(
            name,
            f"is a damaged or cut off zip archive ({error})",
            advice="download it again",
        ) from error
