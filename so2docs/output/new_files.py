"""Write the files of a command together: all of them are renamed at the end, or none.

The files are written with their final names in a hidden folder, `.NAME.part`, synced to disk, and
renamed together, a main file after the side files that describe it. Only this module knows the
folder.

Each output has one writer at a time: two writers would mix their bytes in one file. The system
releases a lock when the process ends, so an unlocked lock file was left by a killed process.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from isal import isal_zlib

from so2docs.errors import OptionError, OutputError, So2docsError, explain, flag, resumable
from so2docs.output.part_files import (
    INDEX,
    LOCK,
    check_folder,
    check_replaceable,
    crc_of,
    describe_missing_folder,
    follow,
    remove,
    side_file,
    sync_folder,
)
from so2docs.store.disk import lock_file

PATIENCE = 1.0
"""Seconds to wait for another process, such as a reader that saves an index of the output."""

_PAUSE = 0.01
_TEMPORARY = "so2docs-"


@contextmanager
def output_lock(output: str, *, seconds: float = PATIENCE) -> Iterator[bool]:
    """Lock an output; if another process holds the lock, wait for up to `seconds`.

    Yields:
        Whether the output is locked; False for standard output, and where files cannot be locked.

    Raises:
        OutputError: Another process is writing the output, or the folder is not writable.
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
    """Open and lock the lock file at `path`; return its descriptor, or None without file locks."""
    while True:
        with explain(path):
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            is_locked = lock_file(file)
        except BlockingIOError:
            os.close(file)
            if time.monotonic() > deadline:
                raise OutputError(
                    f"{output}: another so2docs process is writing it and holds {path}; "
                    "wait for it, stop it, or choose another output"
                ) from None
            time.sleep(_PAUSE)
            continue
        if not is_locked:
            os.close(file)
            with suppress(OSError):
                os.unlink(path)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        os.close(file)  # The previous holder of the lock has just removed the file, so try again.


@contextmanager
def temporary_folder(parent: str | None) -> Iterator[str]:
    """Make a temporary folder, yield its path, and remove the folder at the end.

    The temporary folders of killed processes are removed first.
    """
    if not parent:
        import tempfile

        parent = tempfile.gettempdir()
    advice = f"choose another {flag('work_dir')}"
    if not os.path.isdir(parent):
        problem = describe_missing_folder(parent, advice)
        raise OutputError(f"{parent}: the folder for temporary files {problem}")
    if not os.access(parent, os.W_OK):
        raise OutputError(f"{parent}: is not writable; {advice}")
    _remove_abandoned(parent)
    path = os.path.join(parent, f"{_TEMPORARY}{os.urandom(4).hex()}")
    try:
        with output_lock(path):
            with explain(path):
                os.mkdir(path, 0o700)
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)
    finally:
        if os.path.isdir(path):  # The folder could not be removed; mark it for the next command.
            with suppress(OSError):
                Path(side_file(path, LOCK)).touch()


def open_folder(path: str) -> None:
    """Make a folder for files unless it exists.

    Raises:
        OptionError: The path, or a part of it, is a file.
    """
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise OptionError(f"{path}: is a file, not a folder; choose another folder") from None


@contextmanager
def new_folder(path: str) -> Iterator[None]:
    """Make a folder and its missing parents; after an error, remove it if it is new and empty."""
    is_new = not os.path.isdir(path)
    with explain(path):
        open_folder(path)
    try:
        yield
    except BaseException:
        if is_new:
            with suppress(OSError):
                os.rmdir(path)
        raise


def _remove_abandoned(parent: str) -> None:
    """Remove temporary folders of killed processes, found by their unlocked lock files."""
    for lock in Path(parent).glob(f".{_TEMPORARY}*.{LOCK}"):
        path = lock.with_name(lock.name.removeprefix(".").removesuffix(f".{LOCK}"))
        with suppress(So2docsError), output_lock(str(path), seconds=0) as is_locked:
            if is_locked:
                shutil.rmtree(path, ignore_errors=True)


FOR_SMALL_FILES = 10.0
"""Seconds to wait for another process that writes the same small file, such as the card of a
folder."""


class NewFiles(AbstractContextManager["NewFiles"]):
    """The new files of a command, in the folder `.MAIN.part` until the context ends.

    At the end, all finished files are renamed to their final names; after an error, none is. The
    folder is removed in either case. A file that a link to another folder leads to is in a folder
    of the same name there.

    Args:
        main: The file after which the folder is named; `-` is standard output.
    """

    def __init__(self, main: str) -> None:
        self._main = "stdout" if main == "-" else main
        self._locks = ExitStack()
        self._claimed: list[str] = []
        self._folders: set[str] = set()
        self._finished: dict[str, int | None] = {}
        self._outdated: list[str] = []

    def claim(
        self,
        path: str,
        read: Iterable[str | None] = (),
        *,
        advice: str = "choose another output",
        seconds: float = PATIENCE,
    ) -> None:
        """Check that a file can be written, and lock it. An existing file will be replaced.

        Args:
            path: Path of the file; `-` is standard output.
            read: Input files, which must not be replaced; None for an input that is not a file.
            advice: Advice in the error if the file cannot be written.
            seconds: Longest time to wait for another process that writes the file.
        """
        if not path:
            raise OptionError(
                "a name is empty, perhaps from an unset variable; give the name of a file, or -"
            )
        if path == "-":
            return
        check_folder(path, advice)
        check_replaceable(path, read)
        self._locks.enter_context(output_lock(path, seconds=seconds))
        self._claimed.append(path)
        self.unfinished(path)

    def unfinished(self, path: str) -> str:
        """Return the name that a file has until the end; its folder is made, empty, at first."""
        folder = part_folder(self._main, path)
        if folder not in self._folders:
            with explain(folder):
                if os.path.lexists(folder):
                    shutil.rmtree(folder)  # A killed process left it.
                os.mkdir(folder)
            self._folders.add(folder)
        return os.path.join(folder, os.path.basename(follow(path)))

    def add(self, path: str, crc: int | None = None) -> None:
        """Add a finished file, to be renamed together with the other files.

        Args:
            path: The final name.
            crc: CRC-32 of the file; None for a file that a library wrote.
        """
        self._finished[path] = crc

    def write(self, path: str, data: bytes) -> None:
        """Write a small file, to be renamed together with the other files."""
        part = self.unfinished(path)
        with explain(part):
            Path(part).write_bytes(data)
        self.add(path, isal_zlib.crc32(data))

    def change_name(self, path: str, final: str) -> None:
        """Change the final name of a finished file, and that of its index."""
        for old, new in ((path, final), (side_file(path, INDEX), side_file(final, INDEX))):
            if old in self._finished:
                os.rename(self.unfinished(old), self.unfinished(new))
                self._finished[new] = self._finished.pop(old)

    def leave_out(self, path: str) -> None:
        """Leave out a finished file from which others are made, and its index."""
        for name in (path, side_file(path, INDEX)):
            self._finished.pop(name, None)

    def main_files(self) -> list[tuple[str, int, int]]:
        """Return path, size and CRC-32 of the claimed files, then of others that are not hidden."""
        others = [p for p in self._finished if not os.path.basename(p).startswith(".")]
        paths = [p for p in dict.fromkeys([*self._claimed, *others]) if p in self._finished]
        return [(path, *self._measure(path)) for path in paths]

    def _measure(self, path: str) -> tuple[int, int]:
        crc = self._finished[path]
        with explain(path), open(self.unfinished(path), "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            return size, crc_of(file, size) if crc is None else crc

    def outdate(self, *paths: str) -> None:
        """Mark old files for removal in this order, side files first, before the new are renamed.

        New files are always kept. A killed run must leave no side file without its file.
        """
        self._outdated += paths

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        is_done = False
        try:
            if kind is None:
                self._publish()
                is_done = True
        finally:
            for folder in self._folders:
                shutil.rmtree(folder, ignore_errors=True)
            # A lock file that cannot be removed is harmless, because the next process reuses it.
            with suppress(OSError), resumable(False, is_done=is_done):
                self._locks.close()

    def _publish(self) -> None:
        # Rename the record, which is added last, first, and then the other side files: no file must
        # be without what describes it.
        paths = [path for path in reversed(self._finished) if path not in self._claimed]
        paths.sort(key=lambda path: not os.path.basename(path).startswith("."))
        paths += [path for path in reversed(self._claimed) if path in self._finished]
        published: list[str] = []
        for path in paths:
            with explain(path), open(self.unfinished(path), "r+b") as file:
                os.fsync(file.fileno())
        try:
            for path in self._outdated:
                if path not in self._finished:
                    with explain(path):
                        remove(path)
            for path in paths:
                is_new = not os.path.lexists(path)
                with explain(path):
                    os.replace(self.unfinished(path), follow(path))
                published += [path] * is_new
            for folder in {os.path.dirname(follow(path)) or "." for path in paths}:
                with explain(folder):
                    sync_folder(folder)
        except BaseException:
            # Remove the files already renamed, so that a repeated command does not find them.
            for path in published:
                with suppress(OSError):
                    os.unlink(path)
            raise


def part_folder(main: str, path: str) -> str:
    """Return the folder for a file until it is renamed, next to the file; `main` names it."""
    return os.path.join(os.path.dirname(follow(path)), os.path.basename(side_file(main, "part")))


def clean_up(main: str, paths: Iterable[str] = ()) -> None:
    """Remove the unfinished files of a product that a killed process left, and its lock file.

    Args:
        main: Main file of the product.
        paths: Other files of the product, which may be in other folders.
    """
    folders = {part_folder(main, path) for path in (main, *paths)}
    if any(map(os.path.lexists, (side_file(main, LOCK), *folders))):
        with suppress(OSError, So2docsError), output_lock(main, seconds=0):
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)


def write_file(path: str, data: bytes) -> None:
    """Write a small file completely or not at all; write to a device or pipe directly."""
    if os.path.exists(path) and not os.path.isfile(path):
        with explain(path):
            Path(path).write_bytes(data)
        return
    path = os.path.realpath(path)
    with NewFiles(path) as files:
        files.claim(path, seconds=FOR_SMALL_FILES)
        files.write(path, data)
