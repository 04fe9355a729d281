"""Run a command, and measure the times and peak memory of its process tree.

As a program, this module touches the free memory, before other programs measure.
"""

from __future__ import annotations

import mmap
import os
import resource
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_EVERY = 0.05
_TOUCHED = 0.75
"""Share of the free memory to touch."""


def touch_free_memory() -> None:
    """Write to each page of free memory once.

    On virtual machines, the first write to a page takes 0.7 to 1.2 ns per byte, later ones 0.2. Any
    command that is measured first would otherwise take longer.
    """
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    part = b"\1" * 2**20
    with mmap.mmap(-1, max(len(part), int(free * _TOUCHED))) as memory:
        for at in range(0, len(memory) - len(part), len(part)):
            memory[at : at + len(part)] = part


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of a command.

    Attributes:
        wall: Wall time in seconds.
        cpu: CPU seconds of all processes, user and system.
        memory: Peak resident memory in bytes, summed over all processes; shared pages count once
            for each process.
        stdout: Standard output of the command.
    """

    wall: float
    cpu: float
    memory: int
    stdout: str


def run(command: list[str], cwd: Path | None = None, stdin: IO[bytes] | None = None) -> Measured:
    """Run a command to its end, and return its measurements.

    Python may store bytecode, as in an installation; compiling the modules takes 0.1 s.

    Raises:
        subprocess.CalledProcessError: The command failed.
    """
    os.sync()  # First flush the pages of earlier commands.
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    peak = [0]
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, peak, ended), daemon=True)
    watcher.start()
    stdout, stderr = process.communicate()
    wall = time.perf_counter() - started
    ended.set()
    watcher.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stdout, stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(wall, cpu, peak[0], stdout)


def _watch(root: int, peak: list[int], ended: threading.Event) -> None:
    while not ended.wait(_EVERY):
        peak[0] = max(peak[0], _memory_of_tree(root))


def _memory_of_tree(root: int) -> int:
    """Return the resident bytes of a process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parent = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry))
    total, pending = 0, [root]
    while pending:
        process = pending.pop()
        pending += children.get(process, [])
        try:
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        except (OSError, IndexError):
            continue
        total += pages * os.sysconf("SC_PAGE_SIZE")
    return total


if __name__ == "__main__":
    touch_free_memory()
