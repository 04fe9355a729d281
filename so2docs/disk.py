"""Room on disks: estimated before a conversion, explained when it runs out."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from so2docs.errors import DiskFullError

# Shares of the dump's size, measured on published and generated dumps, with some room to spare.
_SPILL_SHARE = 0.38
_OUTPUT_SHARE = {"gzip": 0.36, "zstd": 0.36, "none": 1.0}

_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def check_room(dump_bytes: int, spill: Path, output: str, compression: str, done: int = 0) -> None:
    """Raise `DiskFullError` if spill and output will not fit where they go.

    Args:
        dump_bytes: Bytes of the dump.
        spill: Folder of the spill.
        output: Path of the output; `-` takes no room.
        compression: Of the output.
        done: Bytes of spill that are there already.
    """
    needed: dict[int, tuple[Path, float]] = {}
    wanted = [(spill, max(0.0, dump_bytes * _SPILL_SHARE - done))]
    if output != "-":
        wanted.append((Path(output).parent, dump_bytes * _OUTPUT_SHARE[compression]))
    for folder, size in wanted:
        device = os.stat(folder).st_dev
        needed[device] = (folder, needed.get(device, (folder, 0.0))[1] + size)
    for folder, size in needed.values():
        free = shutil.disk_usage(folder).free
        if free < size:
            raise DiskFullError(
                f"{folder}: about {size / 1e9:.1f} GB are needed for a dump of "
                f"{dump_bytes / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free; "
                "free some, or put the spill elsewhere with --work-dir"
            )


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn "no space left" from any place into a `DiskFullError`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise _full(error.filename) from error
    except sqlite3.OperationalError as error:
        if "full" not in str(error):
            raise
        raise _full(None) from error


def _full(path: object) -> DiskFullError:
    where = f"{path}: " if path else ""
    return DiskFullError(
        f"{where}the disk is full; free some room and run the same command again to go on"
    )
