"""One conversion an output: two with different folders for their spills would mix their bytes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from so2docs.errors import OutputError
from so2docs.output.part_files import output_error
from so2docs.output.side_files import side_file

_LOCK = "lock"


@contextmanager
def output_lock(output: str) -> Iterator[None]:
    """Keep others from an output; the system gives the lock up with the process.

    Raises:
        OutputError: Another conversion is writing it, or its folder cannot be written to.
        DiskFullError: The disk is full.
    """
    path = side_file(output, _LOCK)
    file = None if output == "-" else _locked(output, path)
    try:
        yield
    finally:
        if file is not None:
            try:
                Path(path).unlink(missing_ok=True)
            finally:
                os.close(file)


def _locked(output: str, path: str) -> int | None:
    """The open file, locked; None where files cannot be locked."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise output_error(path, error) from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            raise OutputError(
                f"{output}: another so2docs is writing it (it holds {path}); "
                "let it finish or stop it, or choose another output"
            ) from None
        except OSError:  # A file system without locks.
            os.close(file)
            with suppress(OSError):
                os.unlink(path)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file), os.stat(path)):
                return file
        os.close(file)  # Who held it before has just removed it.
