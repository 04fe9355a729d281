"""What a file is, from its first bytes and the list of its members: nothing is decompressed."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import BinaryIO

from so2docs.errors import DumpError
from so2docs.sources import storage
from so2docs.sources.dump import identity
from so2docs.sources.encodings import HEAD_BYTES, encoding_of
from so2docs.sources.kinds import Kind, kind_of


@dataclass(frozen=True, slots=True)
class Look:
    """What can be told of a file before it is read.

    Attributes:
        is_plain: Whether it is read in ranges: a file of UTF-8 that is not packed.
        is_file: Whether it can be read again.
        identity: To notice a change.
        expected: Bytes of XML in it, about, unless it is an archive.
        members: Names and sizes in bytes of the files in an archive; None if it is none.
    """

    is_plain: bool = False
    is_file: bool = True
    identity: tuple[int, int, int] = (0, 0, 0)
    expected: int = 0
    members: dict[str, int] | None = None


def look_at(path: str) -> Look:
    """Look at a file; at a pipe, not into it.

    Raises:
        DumpError: It cannot be read, or is a damaged archive.
    """
    if storage.is_url(path):
        return Look(is_plain=True)
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return Look(is_file=False)
        with open(path, "rb") as file:
            head = file.read(HEAD_BYTES)
            kind = kind_of(head)
            members = _members(path, file, kind) if kind and kind.is_archive else None
    except OSError as error:
        raise DumpError(path, f"cannot be read: {error.strerror or error}") from error
    return Look(
        is_plain=kind is None and encoding_of(path, head) is None,
        identity=identity(status),
        expected=int(status.st_size * (kind.ratio if kind else 1)),
        members=members,
    )


def _members(path: str, file: BinaryIO, kind: Kind) -> dict[str, int]:
    # A plain file needs none of what reads archives: it takes 40 ms to import.
    from so2docs.sources.seven_zip import files_of_7z
    from so2docs.sources.zipped import files_of_zip

    file.seek(0)
    return (files_of_zip if kind.name == "a zip archive" else files_of_7z)(path, file)
