"""Zip archives: one file of a dump in them, read without unpacking."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from so2docs.errors import ArchiveError
from so2docs.sources.members import DumpFile, listed
from so2docs.sources.source import Reader

_ENCRYPTED = 1


def open_zip(name: str, file: BinaryIO, wanted: DumpFile) -> tuple[Reader, int]:
    """Open a file of a dump in a zip archive.

    Args:
        name: Name of the dump, for messages.
        file: The archive.
        wanted: What to open.

    Returns:
        A reader of it, and its size in bytes.

    Raises:
        ArchiveError: It is damaged or encrypted, or does not have it.
    """
    with _in_words(name):
        archive = zipfile.ZipFile(file)
        member = archive.getinfo(one_of(name, list(_sizes(archive)), wanted))
        if member.flag_bits & _ENCRYPTED:
            raise ArchiveError(
                name, f"is encrypted: {member.filename} needs a password", advice="unpack it first"
            )
        return archive.open(member), member.file_size


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
    if len(found) > 1:
        raise ArchiveError(
            name,
            f"holds the {wanted.rows} of several sites: {listed(found)}",
            advice="unpack it, and convert them one by one",
        )
    return found[0]
