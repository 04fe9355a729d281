"""Files that a command writes together: all of them get their names at its end, or none.

Each is written under its temporary name, synced to disk, and renamed with the others, a main file
after the side files that describe it. A conversion, which can be resumed, records finished files in
its spill; all other commands write files in this way.

There is one writer for each output: two would mix their bytes under one temporary name. The system
releases a lock with the process, which distinguishes files of a killed process from those in use.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from so2docs.errors import OutputError, So2docsError, flag, resumable
from so2docs.output.part_files import (
    INDEX,
    LOCK,
    FileState,
    check_folder,
    check_replaceable,
    describe_missing_folder,
    explain_errors,
    part_path,
    publish,
    refuse_existing,
    remove,
    side_file,
    write_part,
)

PATIENCE = 1.0
"""Seconds to wait for another process, such as a reader that saves an index of the output."""

_PAUSE = 0.01
_TEMPORARY = "so2docs-"


@contextmanager
def output_lock(output: str, *, seconds: float = PATIENCE) -> Iterator[bool]:
    """Lock an output, or wait until the process that has locked it is done.

    Args:
        output: Its name; `-` is standard output, which needs no lock.
        seconds: Longest time to wait for another process.

    Yields:
        Whether it is locked, which not every file system can do.

    Raises:
        OutputError: Another process is writing it, or its folder cannot be written to.
        DiskFullError: The disk is full.
    """
    path = side_file(output, LOCK)
    file = None if output == "-" else _lock(output, path, time.monotonic() + seconds)
    try:
        yield file is not None
    finally:
        if file is not None:
            try:
                Path(path).unlink(missing_ok=True)
            finally:
                os.close(file)


def _lock(output: str, path: str, deadline: float) -> int | None:
    """The open file, locked; None where files cannot be locked."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    while True:
        with explain_errors(path):
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            if time.monotonic() > deadline:
                raise OutputError(
                    f"{output}: another so2docs is writing it (it holds {path}); "
                    "let it finish or stop it, or choose another output"
                ) from None
            time.sleep(_PAUSE)
            continue
        except OSError:  # A file system without locks.
            os.close(file)
            with suppress(OSError):
                os.unlink(path)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        os.close(file)  # Who held it before has just removed it.


@contextmanager
def temporary_folder(parent: str | None) -> Iterator[str]:
    """Make a temporary folder; remove it at the end, and those of killed processes.

    Args:
        parent: Its parent; the system's folder for temporary files if None.

    Raises:
        OutputError: It cannot be made.
        DiskFullError: The disk is full.
    """
    parent = parent or tempfile.gettempdir()
    if not os.path.isdir(parent):
        advice = f"choose another {flag('work_dir')}"
        problem = describe_missing_folder(parent, advice)
        raise OutputError(f"{parent}: the folder for temporary files {problem}")
    if not os.access(parent, os.W_OK):
        raise OutputError(f"{parent}: is not writable; choose another {flag('work_dir')}")
    _remove_abandoned(parent)
    path = os.path.join(parent, f"{_TEMPORARY}{secrets.token_hex(4)}")
    try:
        with output_lock(path):
            with explain_errors(path):
                os.mkdir(path, 0o700)
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
    finally:
        if os.path.isdir(path):  # Whoever comes next removes it, and knows it by its lock.
            with suppress(OSError):
                Path(side_file(path, LOCK)).touch()


def _remove_abandoned(parent: str) -> None:
    """Remove temporary folders of killed processes, of which unlocked lock files are left."""
    for lock in Path(parent).glob(f".{_TEMPORARY}*.{LOCK}"):
        path = lock.with_name(lock.name.removeprefix(".").removesuffix(f".{LOCK}"))
        with suppress(So2docsError), output_lock(str(path), seconds=0) as is_locked:
            if is_locked:
                shutil.rmtree(path, ignore_errors=True)


FOR_SMALL_FILES = 10.0
"""Seconds to wait for another process that writes the same one, such as the card of a folder."""


class NewFiles:
    """Unfinished files; as a context manager, they get their names or are removed."""

    def __init__(self) -> None:
        self._locks = ExitStack()
        self._claimed: list[str] = []
        self._finished: dict[str, FileState] = {}
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
        """Check that a file may be written, and lock it.

        Args:
            path: Its name; `-` is standard output.
            read: Files that it must not replace; None for an input that is not a file.
            force: Replace a file of this name.
            advice: Advice for the error.
            seconds: Longest time to wait for another process that writes it.

        Raises:
            OutputError: It may not be written, or another process is writing it.
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

    def add(self, path: str, complete: FileState) -> None:
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
        is_done = False
        try:
            if kind is None:
                self._publish()
                is_done = True
            else:
                self._discard()
        finally:
            # Whoever comes next takes a lock that cannot be removed.
            with suppress(OSError), resumable(False, is_done=is_done):
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
    for name in (part_path(path), part_path(side_file(path, INDEX))):
        with suppress(OSError):
            os.unlink(name)


def clean_up(path: str) -> None:
    """Remove what a killed process left of a file, of which its lock is left, too."""
    if os.path.exists(side_file(path, LOCK)):
        with suppress(OSError, So2docsError), output_lock(path, seconds=0):
            _remove_unfinished(path)


def write_file(path: str, data: bytes) -> None:
    """Write a small file completely or not at all; write to a device or pipe directly.

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
