"""Files that a command makes in one go: all of them get their names at its end, or none does.

Each is written under its temporary name, brought to the disk, and named with the others, a main
file after the side files that describe it. A conversion, which can be resumed, keeps in its spill
what is finished; everything else that writes a file does it in this way.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from pathlib import Path

from so2docs.errors import So2docsError
from so2docs.output import journal
from so2docs.output.lock import PATIENCE, output_lock
from so2docs.output.part_files import (
    CompleteFile,
    explain_errors,
    part_path,
    publish,
    remove,
    write_part,
)
from so2docs.output.targets import (
    INDEX,
    LOCK,
    check_folder,
    check_replaceable,
    refuse_existing,
    side_file,
)

FOR_SMALL_FILES = 10.0
"""Seconds to wait for another process that writes the same one, such as the card of a folder."""


class NewFiles:
    """Files under way; as a context manager, they get their names or are removed."""

    def __init__(self) -> None:
        self._locks = ExitStack()
        self._claimed: list[str] = []
        self._finished: dict[str, CompleteFile] = {}
        self._outdated: list[str] = []

    def claim(
        self,
        path: str,
        read: Iterable[str | None] = (),
        *,
        force: bool,
        advice: str = "choose another output",
        seconds: float = PATIENCE,
    ) -> None:
        """Make sure that a file may be made, and keep other processes from it.

        Args:
            path: Its name; `-` is standard output.
            read: Files that it must not replace; None for what is not a file.
            force: Replace a file of this name.
            advice: What to do if it may not be made.
            seconds: How long to wait for another process that makes it.

        Raises:
            OutputError: It may not, or another process is making it.
        """
        if path == "-":
            return
        check_folder(path, advice)
        read = list(read)
        for name in (path, part_path(path)):
            check_replaceable(name, read)
        refuse_existing(path, force=force, advice=advice)
        self._locks.enter_context(output_lock(path, seconds=seconds))
        refuse_existing(path, force=force, advice=advice)  # Whoever had the lock may have made it.
        self._claimed.append(path)

    def add(self, path: str, complete: CompleteFile) -> None:
        """Give a finished file its name with the others."""
        self._finished[path] = complete

    def write(self, path: str, data: bytes) -> None:
        """Make a small file.

        Raises:
            OutputError: It cannot be written.
            DiskFullError: The disk is full.
        """
        self.add(path, write_part(path, data))

    def outdate(self, *paths: str) -> None:
        """Remove files of an earlier state, if they are not new, when those get their names."""
        self._outdated += paths

    def __enter__(self) -> NewFiles:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        try:
            if kind is None:
                self._publish()
            else:
                self._discard()
        finally:
            with suppress(OSError):  # Whoever comes next takes a lock that cannot be removed.
                self._locks.close()

    def _publish(self) -> None:
        main = [path for path in reversed(self._claimed) if path in self._finished]
        files = [(path, self._finished[path]) for path in self._finished if path not in main]
        files += [(path, self._finished[path]) for path in main]
        every = dict(pair for path, file in files for pair in file.all_files(path))
        new = [path for path in every if not os.path.lexists(path)]
        try:
            for path in set(self._outdated) - set(every):
                with explain_errors(path):
                    remove(path)
            publish(files)
        except BaseException:
            for path in new:  # The same command must not find what it has just made.
                with suppress(OSError, So2docsError):
                    if every[path].find(path) == path:
                        os.unlink(path)
            self._discard()
            raise

    def _discard(self) -> None:
        for path in dict.fromkeys([*self._claimed, *self._finished]):
            _remove_unfinished(path)


def _remove_unfinished(path: str) -> None:
    part = part_path(path)
    for name in (part, journal.journal_path(part), part_path(side_file(path, INDEX))):
        with suppress(OSError):
            os.unlink(name)


def clean_up(path: str) -> None:
    """Remove what a killed process left of a file, of which its lock is left, too."""
    if os.path.exists(side_file(path, LOCK)):
        with suppress(OSError, So2docsError), output_lock(path, seconds=0):
            _remove_unfinished(path)


def write_file(path: str, data: bytes) -> None:
    """Write a small file whole or not at all; a device or a pipe is written to directly.

    Raises:
        OutputError: It cannot be written.
        DiskFullError: The disk is full.
    """
    if os.path.exists(path) and not os.path.isfile(path):
        with explain_errors(path):
            Path(path).write_bytes(data)
        return
    path = os.path.realpath(path)
    with NewFiles() as files:
        files.claim(path, force=True, seconds=FOR_SMALL_FILES)
        files.write(path, data)
