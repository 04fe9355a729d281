"""Zip archives: one file of a dump in them, read without unpacking."""

from __future__ import annotations

import copy
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from so2docs.errors import ArchiveError
from so2docs.sources.bzip2 import Bzip2
from so2docs.sources.compressed import Member, Streams, raw_lzma
from so2docs.sources.kinds import DumpFile, listed
from so2docs.sources.source import Reader

_ENCRYPTED = 1


def open_zip(name: str, file: BinaryIO, threads: int, wanted: DumpFile) -> tuple[Reader, int]:
    """Open a file of a dump in a zip archive.

    Args:
        name: Name of the dump, for messages.
        file: The archive.
        threads: How many may decompress bzip2.
        wanted: What to open.

    Returns:
        A reader of it, and its size in bytes.

    Raises:
        ArchiveError: It is damaged or encrypted, or does not have it.
    """
    with _in_words(name):
        archive = zipfile.ZipFile(file)
        names = [member.filename for member in archive.infolist() if not member.is_dir()]
        member = archive.getinfo(one_of(name, names, wanted))
        if member.flag_bits & _ENCRYPTED:
            raise ArchiveError(
                name, f"is encrypted: {member.filename} needs a password", advice="unpack it first"
            )
        return _unpacked(name, archive, member, threads), member.file_size


def _unpacked(name: str, archive: zipfile.ZipFile, member: zipfile.ZipInfo, threads: int) -> Reader:
    """A reader of a member; zipfile does not bound what bzip2 and LZMA give at a time."""
    if member.compress_type not in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        return archive.open(member)
    stored = copy.copy(member)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, member.compress_size
    del stored.CRC
    packed = archive.open(stored)
    reader: Reader
    if member.compress_type == zipfile.ZIP_BZIP2:
        reader = Bzip2(packed, threads)
    else:
        # APPNOTE.TXT, 5.8.8: the version, the size of the properties, and these.
        _, size = struct.unpack("<HH", packed.read(4))
        new = raw_lzma(name, packed.read(size), member.file_size)
        reader = Streams(packed, new, b"")
    return Member(reader, 0, member.file_size, member.CRC)


def files_of_zip(name: str, file: BinaryIO) -> dict[str, int]:
    """Names and sizes in bytes of the files in a zip archive."""
    with _in_words(name):
        return _sizes(zipfile.ZipFile(file))


def _sizes(archive: zipfile.ZipFile) -> dict[str, int]:
    return {
        member.filename: member.file_size for member in archive.infolist() if not member.is_dir()
    }


@contextmanager
def _in_words(name: str) -> Iterator[None]:
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


def one_of(name: str, names: list[str], wanted: DumpFile) -> str:
    """The member that is wanted, or an `ArchiveError` that says what is there."""
    found = wanted.among(names)
    if not found:
        raise ArchiveError(
            name,
            f"has no {wanted.file} in it; it holds {listed(names)}",
            advice=f"of a site in several archives, take the one of the {wanted.rows}",
        )
    if len(set(found)) < len(found):
        raise ArchiveError(
            name, f"holds {len(found)} files named {found[0]}", advice="unpack it and choose one"
        )
    if len(found) > 1:
        raise ArchiveError(
            name,
            f"holds the {wanted.rows} of several sites: {listed(found)}",
            advice="unpack it, and convert them one by one",
        )
    return found[0]
