"""One writer for each output: two would mix their bytes under one temporary name.

The system gives a lock up with the process. What a killed process left can so be told from what
another one is working on.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from so2docs.errors import OutputError, So2docsError, flag
from so2docs.output.part_files import explain_errors
from so2docs.output.targets import LOCK, describe_missing_folder, side_file

PATIENCE = 1.0
"""Seconds to wait for another process, such as a reader that saves an index of the output."""

_PAUSE = 0.01
_TEMPORARY = "so2docs-"


@contextmanager
def output_lock(output: str, *, seconds: float = PATIENCE) -> Iterator[bool]:
    """Keep other processes from an output, or wait until the one that has it is done.

    Args:
        output: Its name; `-` is standard output, which needs no lock.
        seconds: How long to wait for another process.

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
    """A folder that is removed at the end; those that killed processes left are removed, too.

    Args:
        parent: Where it is made; the system's folder for temporary files if None.

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
    """Remove temporary folders whose processes were killed, of which their locks are left."""
    for lock in Path(parent).glob(f".{_TEMPORARY}*.{LOCK}"):
        path = lock.with_name(lock.name.removeprefix(".").removesuffix(f".{LOCK}"))
        with suppress(So2docsError), output_lock(str(path), seconds=0) as is_locked:
            if is_locked:
                shutil.rmtree(path, ignore_errors=True)
