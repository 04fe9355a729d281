"""From what the user gave to a dump that the passes can read.

Layers are taken off one by one, such as a gzip file with a 7z archive in it; what each is, its
first bytes say. A plain file of UTF-8 is read in ranges, everything else as a stream.
"""

from __future__ import annotations

import os
import stat
import sys
from dataclasses import dataclass
from typing import BinaryIO

from so2docs.errors import ArchiveError, DumpError
from so2docs.sources import storage
from so2docs.sources.dump import open_dump
from so2docs.sources.encodings import HEAD_BYTES, Decoded, encoding_of
from so2docs.sources.kinds import POSTS, DumpFile, Kind, kind_of, listed
from so2docs.sources.source import Counted, ReadAhead, Source
from so2docs.sources.stream import AnyDump, StreamDump

STANDARD_INPUT = "-"

DumpLike = str | os.PathLike[str] | BinaryIO
"""What a user may give: a path, `-` for standard input, or an open binary file."""


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What its first bytes tell of a file: nothing is decompressed.

    Attributes:
        path: The file.
        is_plain: Whether it is read in ranges: a file of UTF-8 that is not packed.
        is_file: Whether it can be read again.
        kind: What it is packed as, if it is.
        identity: To notice a change.
    """

    path: str
    is_plain: bool = False
    is_file: bool = True
    kind: Kind | None = None
    identity: storage.Identity = (0, 0, 0)

    @property
    def expected(self) -> int:
        """Bytes of XML in it, about; of an archive, in all that it holds."""
        return int(self.identity[0] * (self.kind.ratio if self.kind else 1))

    def members(self) -> dict[str, int] | None:
        """Names and sizes in bytes of the files in an archive; None if it is none."""
        if self.kind is None or not self.kind.is_archive:
            return None
        # A plain file needs none of what reads archives: it takes 40 ms to import.
        from so2docs.sources.seven_zip import files_of_7z
        from so2docs.sources.zipped import files_of_zip

        with storage.open_file(self.path) as file:
            is_zip = self.kind.name == "a zip archive"
            return (files_of_zip if is_zip else files_of_7z)(self.path, file)


def inspect_file(path: str) -> FileFacts:
    """Look at a file; at a pipe, not into it.

    Raises:
        DumpError: It cannot be read.
    """
    try:
        # Opening a pipe would wait for its other end.
        if not (storage.is_url(path) or stat.S_ISREG(os.stat(path).st_mode)):
            return FileFacts(path, is_file=False)
        with storage.open_file(path) as file:
            head = file.read(HEAD_BYTES)
            identity = storage.identity(path, file)
    except OSError as error:
        raise DumpError(path, storage.unreadable(path, error)) from error
    kind = kind_of(head)
    is_plain = kind is None and encoding_of(path, head) is None
    return FileFacts(path, is_plain=is_plain, kind=kind, identity=identity)


def open_source(given: DumpLike, *, threads: int = 1, work_dir: str | None = None) -> AnyDump:
    """Find out what a source is, and read the start of the dump in it.

    Args:
        given: A `Posts.xml`, an archive or compressed file, a folder with one of them, `-` for
            standard input, or an open binary file, which is left open.
        threads: How many may decompress.
        work_dir: Folder for an archive that has to be unpacked from another, or saved from
            standard input; the system's temporary folder if None.

    Raises:
        DumpError: It cannot be read, or there is no dump in it.
    """
    if isinstance(given, str | os.PathLike):
        path = os.fspath(given)
        if path != STANDARD_INPUT:
            return open_path(path, POSTS, threads=threads, work_dir=work_dir)
        if sys.stdin is None:  # It was closed before Python started.
            raise DumpError("standard input", "is closed", advice="pipe a dump into it")
        # Past the buffer: its lock, held by a reading thread, would not let the interpreter end.
        counted = Counted(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))
        source = Source("standard input", counted, position=lambda: counted.count)
    else:
        counted = Counted(given)
        name = str(getattr(given, "name", "the open file"))
        source = Source(name, counted, position=lambda: counted.count)
    return _opened(source, threads, work_dir)


def open_path(
    path: str,
    wanted: DumpFile,
    *,
    name: str | None = None,
    threads: int = 1,
    work_dir: str | None = None,
) -> AnyDump:
    """Open what a path is of.

    Args:
        path: A file, packed or not, or a folder.
        wanted: Which file of a dump to take, where several are in it.
        name: What to call it in messages.
        threads: How many may decompress.
        work_dir: As in `open_source`.

    Raises:
        DumpError: It cannot be read, or what is wanted is not in it.
    """
    if os.path.isdir(path):
        path = file_in_folder(path, wanted)
    facts = inspect_file(path)
    if facts.is_plain:
        return open_dump(path, wanted)
    try:
        file = storage.open_file(path)
    except OSError as error:
        raise DumpError(path, storage.unreadable(path, error)) from error
    source = Source(name or path, file, wanted, closers=[file.close])
    if facts.is_file:
        source.file, source.identity = path, storage.identity(path, file)
        source.position, source.total = file.tell, source.identity[0]
    else:
        counted = Counted(file)
        source.reader, source.position = counted, lambda: counted.count
    return _opened(source, threads, work_dir)


def file_in_folder(path: str, wanted: DumpFile) -> str:
    """The file in a folder that is wanted, or an archive of it.

    Raises:
        ArchiveError: There is none, or it is not clear which.
    """
    names = names_in_folder(path)
    found = wanted.among(names)
    if len(found) == 1:
        return os.path.join(path, found[0])
    problem = "holds several dumps" if found else f"is a folder without a {wanted.file}"
    raise ArchiveError(
        path,
        f"{problem}; it holds {listed(found or names)}",
        advice="name the file to convert",
    )


def names_in_folder(path: str) -> list[str]:
    """Names of the files in a folder."""
    if storage.is_url(path):
        return storage.listed(path)
    return sorted(entry.name for entry in os.scandir(path) if entry.is_file())


def _opened(source: Source, threads: int, work_dir: str | None) -> AnyDump:
    # A plain file needs none of what decompresses: it takes 40 ms to import.
    from so2docs.sources.unwrapping import unwrapped

    try:
        found = unwrapped(source, threads, work_dir)
        encoding = encoding_of(source.name, found.peek(HEAD_BYTES))
        source.reader = found
        if encoding is not None:
            decoded = Decoded(found, encoding)
            source.reader, source.repaired = decoded, lambda: decoded.repaired
            if source.expected is not None:
                source.expected //= len("<".encode(encoding))
        ahead = ReadAhead(source.reader)
        source.reader = ahead
        source.closers.append(ahead.close)
    except BaseException:
        source.close()
        raise
    return StreamDump(source)
