"""Apply faults to a paused conversion, and damage its files between two sessions."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from faults.disk import FILLER, fill, limit_files
from faults.plan import Damage, Fault
from faults.process import Process

MOST_LEFT = 300_000
"""Maximum free bytes on a full disk; every conversion here needs more."""


@contextmanager
def struck(process: Process, fault: Fault, folder: Path) -> Iterator[None]:
    """Apply a fault to a paused conversion; a disk that the fault fills stays full in the block."""
    disk = folder.parent
    time.sleep(fault.delay)
    if fault.kind == "vanish":
        if paths := provisional(folder):
            paths[int(fault.share * len(paths))].unlink(missing_ok=True)
    elif fault.kind == "full":
        free = int(fault.share * MOST_LEFT)
        fill(disk, free) if disk.is_mount() else limit_files(process, free)
    elif fault.kind == "signal":
        _send(process, fault, fault.number)
    elif fault.kind == "freeze":
        _send(process, fault, signal.SIGSTOP)
        process.send(process.pid, signal.SIGCONT)
        time.sleep(fault.delay)
    try:
        yield
    finally:
        (disk / FILLER).unlink(missing_ok=True)


def _send(process: Process, fault: Fault, number: signal.Signals) -> None:
    if fault.target == "group":
        process.send_all(number)
    elif fault.target == "main":
        process.send(process.pid, number)
    elif workers := process.workers():
        process.send(workers[int(fault.share * len(workers))], number)


def provisional(folder: Path) -> list[Path]:
    """List the files of spills and unfinished outputs, in which damage must be detected."""
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and any(part.endswith((".part", ".spill")) for part in path.parent.parts)
    )


def damage(folder: Path, what: Damage) -> Path | None:
    """Damage a provisional file; return its path, or None if there is no such file."""
    paths = [path for path in provisional(folder) if path.stat().st_size]
    if not paths:
        return None
    path = paths[int(what.file * len(paths))]
    data = bytearray(path.read_bytes())
    at = int(what.byte * len(data))
    if what.kind == "truncate":
        del data[at:]
    elif what.kind == "flip":
        data[at] ^= 1 << what.bit
    path.unlink()
    if what.kind != "remove":
        path.write_bytes(data)
    return path


def kind_of(path: Path) -> str:
    """Return the suffix that tells the kind of a provisional file, or else its name."""
    if path.parent.name.endswith(".part"):
        return ".part"
    return "".join(path.suffixes) or path.name
