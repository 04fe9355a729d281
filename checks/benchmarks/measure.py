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
from contextlib import suppress
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
        parent: CPU seconds of the first process alone.
        read: Bytes that all processes read, from the page cache too.
        written: Bytes that all processes wrote.
        disk: Peak bytes on the disk of the watched folder, above those at the start.
    """

    wall: float
    cpu: float
    memory: int
    stdout: str
    parent: float = 0.0
    read: int = 0
    written: int = 0
    disk: int = 0


class _Watch:
    """Samples a process tree and a folder until the end of the command."""

    def __init__(self, root: int, folder: Path | None) -> None:
        self.memory = self.disk = 0
        self.parent = 0.0
        self.transfers: dict[int, tuple[int, int]] = {}
        self._root, self._folder = root, folder
        self._before = _blocks(folder)

    def sample(self) -> None:
        """Take one sample; processes that ended keep their last values."""
        processes = _tree(self._root)
        self.memory = max(self.memory, sum(map(_resident, processes)))
        self.disk = max(self.disk, _blocks(self._folder) - self._before)
        self.parent = max(self.parent, _cpu(self._root))
        for process in processes:
            with suppress(OSError, ValueError):
                fields = Path(f"/proc/{process}/io").read_text().split()
                self.transfers[process] = int(fields[1]), int(fields[3])


def run(
    command: list[str],
    cwd: Path | None = None,
    stdin: IO[bytes] | None = None,
    folder: Path | None = None,
) -> Measured:
    """Run a command to its end, and return its measurements.

    `folder` is watched for the disk space that the command takes there. Python may store bytecode,
    as in an installation; compiling the modules takes 0.1 s.

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
    watch, ended = _Watch(process.pid, folder), threading.Event()
    watcher = threading.Thread(target=_sample_until, args=(watch, ended), daemon=True)
    watcher.start()
    stdout, stderr = process.communicate()
    wall = time.perf_counter() - started
    ended.set()
    watcher.join()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stdout, stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    read, written = map(sum, zip((0, 0), *watch.transfers.values(), strict=True))
    return Measured(wall, cpu, watch.memory, stdout, watch.parent, read, written, watch.disk)


def _sample_until(watch: _Watch, ended: threading.Event) -> None:
    while not ended.wait(_EVERY):
        watch.sample()


def _tree(root: int) -> list[int]:
    """Return the ids of a process and its descendants."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with suppress(OSError, IndexError):
                parent = int(Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry))
    tree = [root]
    for process in tree:
        tree += children.get(process, [])
    return tree


def _resident(process: int) -> int:
    """Return the resident bytes of a process."""
    with suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _cpu(process: int) -> float:
    """Return the CPU seconds of a process, user and system."""
    with suppress(OSError, IndexError):
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _blocks(folder: Path | None) -> int:
    """Return the bytes that the files in a folder take on the disk."""
    total = 0
    for root, _, names in os.walk(folder) if folder else ():
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(root, name)).st_blocks * 512
    return total


if __name__ == "__main__":
    touch_free_memory()
