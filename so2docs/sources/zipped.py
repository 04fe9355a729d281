"""Zip archives: their Posts.xml, read without unpacking."""

from __future__ import annotations

import struct
import zipfile
from typing import BinaryIO

from so2docs.errors import ArchiveError
from so2docs.sources.members import listed, posts_among
from so2docs.sources.source import Reader

_ENCRYPTED = 1


def open_zip(name: str, file: BinaryIO) -> tuple[Reader, int]:
    """Open the posts in a zip archive.

    Args:
        name: Name of the dump, for messages.
        file: The archive.

    Returns:
        A reader of the posts, and their size in bytes.

    Raises:
        ArchiveError: It is damaged or encrypted, or has no posts in it.
    """
    try:
        archive = zipfile.ZipFile(file)
        names = [found for found in archive.namelist() if not found.endswith("/")]
        member = archive.getinfo(one_of(name, names))
        if member.flag_bits & _ENCRYPTED:
            raise ArchiveError(
                name, f"is encrypted: {member.filename} needs a password", advice="unpack it first"
            )
        return archive.open(member), member.file_size
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


def one_of(name: str, names: list[str]) -> str:
    """The member that holds the posts, or an `ArchiveError` that says what is there."""
    found = posts_among(names)
    if not found:
        raise ArchiveError(
            name,
            f"has no Posts.xml in it; it holds {listed(names)}",
            advice="of a site in several archives, take the one of the posts",
        )
    if len(found) > 1:
        raise ArchiveError(
            name,
            f"holds the posts of several sites: {listed(found)}",
            advice="unpack it, and convert them one by one",
        )
    return found[0]
