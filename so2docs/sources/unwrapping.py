"""Layers around a dump, taken off one by one."""

from __future__ import annotations

import lzma
import tempfile
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO
from zipfile import BadZipFile

import zstandard
from isal import isal_zlib

from so2docs.errors import ArchiveError, DumpError, TruncatedDumpError
from so2docs.sources.compressed import open_bzip2, open_gzip, open_xz, open_zstd
from so2docs.sources.encodings import HEAD_BYTES
from so2docs.sources.kinds import kind_of
from so2docs.sources.seven_zip import open_7z
from so2docs.sources.source import BLOCK_BYTES, Counted, Peekable, Reader, Source
from so2docs.sources.zipped import open_zip

_MOST_LAYERS = 5
_STREAMS: dict[str, Callable[[Reader, int], Reader]] = {
    "a gzip file": open_gzip,
    "a bzip2 file": open_bzip2,
    "an xz file": open_xz,
    "a zstd file": open_zstd,
}

_isal_error: Any = isal_zlib.error
_DAMAGES: tuple[type[Exception], ...] = (
    lzma.LZMAError,
    zlib.error,
    _isal_error,
    zstandard.ZstdError,
    BadZipFile,
    ValueError,
)


class Guarded:
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
                advice="download it again, or the part that is missing",
            ) from None
        except OSError as error:
            if error.errno is not None:
                raise
            raise self._damaged(error) from error
        except _DAMAGES as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> ArchiveError:
        return ArchiveError(
            self._name,
            f"is {self._kind} that is damaged ({error})",
            advice="download it again",
        )


def unwrapped(source: Source, threads: int, work_dir: str | None) -> Peekable:
    """Take off one layer after the other, until there is XML.

    Args:
        source: What was given; learns what its layers tell about the size of the dump.
        threads: How many may decompress.
        work_dir: Folder for an archive that comes as a stream.

    Raises:
        DumpError: A layer cannot be taken off.
    """
    reader: Reader = source.reader
    source.expected = source.total
    found = Peekable(reader)
    for layer in range(_MOST_LAYERS):
        kind = kind_of(found.peek(HEAD_BYTES))
        if kind is None:
            return found
        if kind.refused:
            raise DumpError(source.name, f"is {kind.name}, not XML", advice=kind.refused)
        if opener := _STREAMS.get(kind.name):
            unpacked = opener(found, threads)
            if source.expected is not None:
                source.expected = int(source.expected * kind.ratio)
        else:
            file = _seekable(source, found, layer, work_dir)
            open_archive = open_zip if kind.name == "a zip archive" else open_7z
            member, source.expected = open_archive(source.name, file, threads, source.wanted)
            unpacked = _counted(source, member)
        if close := getattr(unpacked, "close", None):
            source.closers.append(close)
        found = Peekable(Guarded(source.name, kind.name, unpacked))
    raise DumpError(source.name, "is packed more than five times", advice="unpack it first")


def _seekable(source: Source, found: Peekable, layer: int, work_dir: str | None) -> BinaryIO:
    """The file that an archive is; one that comes as a stream is saved first."""
    given = source.reader
    if layer == 0 and source.file is not None:
        given.seek(0)  # type: ignore[attr-defined]
        return given  # type: ignore[return-value]
    saved = tempfile.TemporaryFile(dir=work_dir)  # noqa: SIM115
    source.closers.append(saved.close)
    while data := found.read(BLOCK_BYTES):
        saved.write(data)
    saved.seek(0)
    return saved


def _counted(source: Source, member: Reader) -> Reader:
    """Let progress count a member's own bytes: what else is in its archive is not read."""
    if close := getattr(member, "close", None):
        source.closers.append(close)
    counted = Counted(member)
    source.position, source.total = lambda: counted.count, source.expected
    return counted
