"""Open a dump from any source.

Layers, such as those of a gzip file that contains a 7z archive, are removed one by one. The first
bytes determine the kind of each layer. A plain UTF-8 file is read in ranges; everything else is
read as a stream.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, BinaryIO, cast

from so2docs.domain import LICENSE_FILE
from so2docs.dump import storage
from so2docs.dump.archives import Archive, Zip
from so2docs.dump.bzip2 import decompress_bzip2
from so2docs.dump.compressed import decompress_gzip, decompress_xz, decompress_zstd
from so2docs.dump.dump import open_dump
from so2docs.dump.kinds import Kind, detect_kind, join_names, members_with
from so2docs.dump.places import Restart
from so2docs.dump.seven_zip import SevenZip
from so2docs.dump.source import (
    HEAD_BYTES,
    Parts,
    Read,
    Source,
    changed_error,
    detect_encoding,
    read_blocks,
    skip,
)
from so2docs.dump.stream import AnyDump, StreamDump
from so2docs.dump.unreadable import unreadable_dump
from so2docs.errors import ArchiveError, DumpError, without_secrets
from so2docs.progress import fetched, log
from so2docs.report import as_size
from so2docs.schema import Table

STANDARD_INPUT = "-"

_MOST_LAYERS = 5
_MOST_LICENSE = 64 * 1024
_BZIP2 = "a bzip2 file"
_DECOMPRESSORS: dict[str, Callable[[Read, int], Parts]] = {
    "a gzip file": decompress_gzip,
    "an xz file": decompress_xz,
    "a zstd file": decompress_zstd,
}

DumpLike = str | os.PathLike[str] | BinaryIO
"""A source from a user: a path, `-` for standard input, or an open binary file."""


class SourceFile:
    """A file of a dump, whose kind and list of members are read only once.

    Attributes:
        path: Path or URL of the file.
        name: Name of the file in messages and records.
        is_plain: Whether the file is uncompressed UTF-8, which is read in ranges.
        is_file: Whether the file can be read again; False for a pipe.
        kind: Kind of the file, such as an archive; None for XML and for unknown content.
        identity: Identity of the file, to detect a change.
    """

    def __init__(self, path: str) -> None:
        """Read the first bytes of a file; a pipe is not opened."""
        self.path, self.name = path, without_secrets(path)
        self.is_plain, self.is_file = False, True
        self.kind: Kind | None = None
        self.identity = storage.NO_FILE
        self._archive: Archive | None = None
        self._digest: str | None = None
        try:
            # Do not open a pipe here: opening it would block until something writes to it.
            if not (storage.is_url(path) or stat.S_ISREG(os.stat(path).st_mode)):
                self.is_file = False
                return
            with storage.open_file(path) as file:
                head = file.read(HEAD_BYTES)
                self.identity = storage.identify(path, file)
        except OSError as error:
            raise unreadable_dump(path, error) from error
        self.kind = detect_kind(head)
        self.is_plain = self.kind is None and detect_encoding(path, head) is None
        if self._is_sampled:
            self._digest = self.digest

    @property
    def expected(self) -> int:
        """Estimated size of the XML in bytes, including all members of an archive."""
        return int(self.identity.size * (self.kind.ratio if self.kind else 1))

    def archive(self) -> Archive | None:
        """Open the archive and read its list of members; None if the file is not an archive."""
        if self._archive is None and self.kind is not None and self.kind.is_archive:
            self._archive = _open_archive(self.kind, self.name, self.open())
        return self._archive

    @property
    def digest(self) -> str:
        """Hash of the bytes at 17 positions, to detect changed content."""
        if self._digest is None:
            with self.open() as file:
                self._digest = storage.sample_hash(file, self.identity.size)
        return self._digest

    @property
    def _is_sampled(self) -> bool:
        """Whether neither a version from a server nor a checksum of the format reveals a change."""
        return storage.is_url(self.path) and self.kind is None and not self.identity.modified

    def check_samples(self) -> None:
        """Raise `ChangedDumpError` if samples of a file without a version have changed."""
        if self._is_sampled:
            with self.open() as file:
                if storage.sample_hash(file, self.identity.size) != self._digest:
                    raise changed_error(self.name, "changed while being read")

    def names(self) -> list[str]:
        """Return the names of the files in the archive; empty for other files."""
        archive = self.archive()
        return [] if archive is None else [entry.name for entry in archive.entries]

    def license(self) -> str | None:
        """Read `license.txt` in the archive or next to an uncompressed table; None if missing."""
        archive = self.archive()
        source = Source(f"{self.name} ({LICENSE_FILE})")
        with source.stack:
            if archive is not None:
                names = (entry for entry in archive.entries if _is_license(entry.name))
                if (entry := next(names, None)) is None:
                    return None
                source.add_layer(archive.read(entry, 1, None), archive.kind)
            else:
                path = os.path.join(os.path.dirname(self.path), LICENSE_FILE)
                if not self.is_plain or not os.path.isfile(path):
                    return None
                source.add_file(source.stack.enter_context(SourceFile(path).open()))
            return source.reader.read(_MOST_LICENSE).decode("utf-8-sig", "replace").strip()

    def open(self) -> BinaryIO:
        """Open the file.

        Raises:
            DumpError: The file cannot be read.
        """
        try:
            return storage.open_file(self.path)
        except OSError as error:
            raise unreadable_dump(self.path, error) from error

    def close(self) -> None:
        """Close the archive, if it was opened."""
        if self._archive is not None:
            self._archive.close()
            self._archive = None


class Catalog(AbstractContextManager["Catalog"]):
    """The files that a conversion reads, by path; each is inspected only once."""

    def __init__(self) -> None:
        self._files: dict[str, SourceFile] = {}

    def __exit__(self, *exception: object) -> None:
        for file in self._files.values():
            file.close()
            if count := fetched.pop(file.path, 0):
                size = as_size(file.identity.size)
                log.info(f"{file.name}: fetched {as_size(count)}; the file has {size}")

    def look(self, path: str) -> SourceFile:
        """Return the file at a path, which is inspected on the first call."""
        if path not in self._files:
            self._files[path] = SourceFile(path)
        return self._files[path]


def open_stream(stream: BinaryIO | None, *, threads: int, work_dir: str | None) -> StreamDump:
    """Open a dump that can be read only once, and read its start.

    Args:
        stream: The open file; None for standard input.
        threads: Number of decompression threads.
        work_dir: Folder for temporary files; the system's temporary folder if None.
    """
    name = "standard input" if stream is None else str(getattr(stream, "name", "the open file"))
    if stream is None and sys.stdin is None:  # Standard input was closed before Python started.
        raise DumpError(name, "is closed", advice="pipe a dump into it")
    if stream is None and sys.stdin.isatty():
        raise DumpError(name, "is a terminal", advice="pipe a dump into it, or name its file")
    if stream is None:
        # Bypass the buffer: a thread that reads from it would hold its lock, so the interpreter
        # could not exit.
        stream = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)
    source = Source(name)
    source.add_file(stream)
    return _open_source(source, threads, work_dir)


def open_file(
    file: SourceFile,
    table: Table,
    *,
    name: str,
    threads: int,
    work_dir: str | None,
    restart: Restart | None = None,
) -> AnyDump:
    """Open a file of a dump, and read its start.

    Raises:
        DumpError: The file cannot be read, or does not contain the table.
    """
    if file.is_plain:
        return open_dump(file.path, table)
    source = Source(name, table)
    archive = file.archive()
    if archive is None:
        reader = file.open()
        source.stack.callback(reader.close)
        if restart is not None:
            reader.seek(restart.place.packed // 8)
        # Bypass the buffer, which would wait until full even if the pipe already has data.
        if isinstance(reader, io.BufferedReader) and not reader.seekable():
            source.add_file(cast(BinaryIO, reader.raw))
        else:
            source.add_file(reader)
    else:  # The archive stays open, because it may contain other files of the dump.
        reader = archive.file
    if file.is_file:
        source.file, source.identity = file.path, storage.identify(file.path, reader)
        source.total = source.identity.size
    if restart is None:
        return _open_source(source, threads, work_dir, archive)
    return _reopen_source(source, file, threads, work_dir, restart)


def _open_archive(kind: Kind, name: str, file: BinaryIO) -> Archive:
    """Open an archive and read its list of members; after an error, the file is closed."""
    try:
        return Zip(name, file) if kind.name == Zip.kind else SevenZip(name, file)
    except BaseException:
        file.close()
        raise


def _is_license(name: str) -> bool:
    return os.path.basename(name).lower() == LICENSE_FILE


def file_in_folder(path: str, table: Table) -> str:
    """Return the path of a table's file in a folder, compressed or not.

    Raises:
        ArchiveError: The folder has no such file, or several.
    """
    names = names_in_folder(path)
    matches = members_with(table, names)
    if len(matches) == 1:
        return os.path.join(path, matches[0])
    problem = "is a folder with several dumps" if matches else f"is a folder without a {table.file}"
    raise ArchiveError(
        path,
        f"{problem}; it holds {join_names(matches or names)}",
        advice="name the file to convert",
    )


def names_in_folder(path: str) -> list[str]:
    """Return the names of the files in a folder."""
    if storage.is_url(path):
        return storage.list_folder(path)
    return sorted(entry.name for entry in os.scandir(path) if entry.is_file())


def _reopen_source(
    source: Source, file: SourceFile, threads: int, work_dir: str | None, restart: Restart
) -> StreamDump:
    """Open a file with one layer, hence in UTF-8, at a later chunk; `restart` has its prolog."""
    archive, place, mark = file.archive(), restart.place, source.places.append
    before = restart.offset - max(0, place.offset)
    if archive is not None:
        entry = archive.find(source.table)
        parts = archive.read(entry, threads, work_dir, place, mark)
        source.expected = source.total = entry.size
        source.counted = source.add_layer(skip(parts, before), archive.kind)
        source.counted.count = restart.offset
    else:
        source.counted.count, source.expected = place.packed // 8, file.expected
        parts = decompress_bzip2(source.reader.read1, threads, place, mark)
        source.add_layer(skip(parts, before), _BZIP2)
    source.read_ahead()
    return StreamDump(source, restart)


def _open_source(
    source: Source, threads: int, work_dir: str | None, archive: Archive | None = None
) -> StreamDump:
    try:
        _unwrap(source, threads, work_dir, archive)
        source.decode()
        source.read_ahead()
    except BaseException:
        source.close()
        raise
    return StreamDump(source)


def _unwrap(source: Source, threads: int, work_dir: str | None, archive: Archive | None) -> None:
    """Remove layers until the content is XML."""
    source.expected = source.total
    if archive is not None:
        _read_member(source, archive, threads, work_dir)
    for _ in range(_MOST_LAYERS if archive is None else _MOST_LAYERS - 1):
        kind = detect_kind(source.reader.peek())
        if kind is None:
            return
        if kind.refused:
            raise DumpError(source.name, f"is {kind.name}, not XML", advice=kind.refused)
        if kind.is_archive:
            saved = _open_archive(kind, source.name, _save(source.reader.read1, work_dir))
            source.stack.callback(saved.close)
            _read_member(source, saved, threads, work_dir)
            continue
        if kind.open:
            parts = _read_opened(kind.open(source.reader, threads))
        elif kind.name == _BZIP2:
            parts = decompress_bzip2(source.reader.read1, threads, mark=source.places.append)
        else:
            parts = _DECOMPRESSORS[kind.name](source.reader.read1, threads)
        source.add_layer(parts, kind.name)
        if source.expected is not None:
            source.expected = int(source.expected * kind.ratio)
    raise DumpError(
        source.name, "has more than five layers of compression", advice="unpack it first"
    )


def _read_opened(reader: Any) -> Parts:
    """Yield the bytes of a file that another package opened, and close it at the end."""
    try:
        yield from read_blocks(reader.read)
    finally:
        if close := getattr(reader, "close", None):
            close()


def _save(read: Read, work_dir: str | None) -> BinaryIO:
    """Save a streamed archive to a temporary file, and return the file, positioned at its start."""
    import tempfile

    saved = tempfile.TemporaryFile(dir=work_dir)  # noqa: SIM115
    try:
        saved.writelines(read_blocks(read))
        saved.seek(0)
    except BaseException:
        saved.close()
        raise
    return saved


def _read_member(source: Source, archive: Archive, threads: int, work_dir: str | None) -> None:
    """Add a layer that reads the table's member; progress then counts bytes of the member."""
    entry = archive.find(source.table)
    parts = archive.read(entry, threads, work_dir, mark=source.places.append)
    source.counted = source.add_layer(parts, archive.kind)
    source.expected = source.total = entry.size
