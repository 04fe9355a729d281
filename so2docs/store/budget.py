"""How much of a spill may be on disk uncompressed: what the system's cache can hold anyway.

Compressing the spill takes a quarter of the CPU of a conversion, and saves disk that most of them
do not need. Beyond the budget it is compressed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from so2docs.store.blocks import Block

_MEMORY_SHARE, _DISK_SHARE = 8, 2
"""An eighth of the memory that is available, and half of the disk that nothing else needs.

More fills the cache of the system, which also holds dump and output, and waits for the disk: 20 GB
on 24 GiB of memory took 224 s with half of it, and 176 s with an eighth (3 GB)."""

_SMALL = 64 * 1024
"""Bytes more than those of the dump that a chunk may take, if it is a small one."""

_UNKNOWN = 512 * 1024 * 1024


def default_budget(spare_disk: int) -> int:
    """Bytes that may be on disk uncompressed, where nobody says otherwise.

    Args:
        spare_disk: Free bytes that are left if all of the spill is compressed.
    """
    return max(0, min(available_memory() // _MEMORY_SHARE, spare_disk // _DISK_SHARE))


def available_memory(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes of memory that processes and the system's cache could still take.

    Args:
        proc: Where Linux tells about its memory, and about this process.
        cgroups: Where the limits of control groups are.
    """
    limits = [_of_the_system(proc), *_of_control_groups(proc, cgroups)]
    return min((size for size in limits if size is not None), default=_UNKNOWN)


def _of_the_system(proc: Path) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        text = (proc / "meminfo").read_text(encoding="ascii")
        return int(text.partition("MemAvailable:")[2].split()[0]) * 1024
    with suppress(AttributeError, OSError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return None


def _of_control_groups(proc: Path, cgroups: Path) -> list[int]:
    """What each group that this process is in has left, in either version of control groups."""
    remaining: list[int] = []
    lines: list[str] = []
    with suppress(OSError):
        lines = (proc / "self/cgroup").read_text(encoding="utf-8").splitlines()
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            top, names = cgroups, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top = cgroups / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        group = top / path.strip("/")
        # In a container, the path may be that of the host, of which only the top is seen.
        for folder in {top, group, *(parent for parent in group.parents if top in parent.parents)}:
            with suppress(OSError, ValueError):
                remaining.append(_remaining(folder, *names))
    return remaining


def _remaining(folder: Path, limit: str, used: str, cache: str) -> int:
    most = int((folder / limit).read_text(encoding="ascii"))
    taken = int((folder / used).read_text(encoding="ascii"))
    with suppress(OSError):
        for line in (folder / "memory.stat").read_text(encoding="ascii").splitlines():
            name, _, value = line.partition(" ")
            if name == cache:
                taken -= int(value)
    return max(0, most - taken)


class Budget:
    """Shares the budget out among the chunks."""

    def __init__(self) -> None:
        self._left = 0
        self._granted: dict[int, int] = {}

    def allow(self, size: int) -> None:
        """Let so many more bytes stay on disk uncompressed."""
        self._left = max(0, size)

    def grant(self, chunk: int, size: int) -> int:
        """Bytes that a chunk may write uncompressed.

        Args:
            chunk: The chunk.
            size: Bytes of it in the dump.
        """
        granted = min(self._left, size + size // 4 + _SMALL)
        self._left -= granted
        self._granted[chunk] = granted
        return granted

    def settle(self, chunk: int, blocks: Iterable[Block]) -> None:
        """Give others what a chunk, with these blocks, has left of what it was granted."""
        used = _uncompressed_bytes(blocks)
        self._left += self._granted.pop(chunk, used) - used

    def give_back(self, blocks: Iterable[Block]) -> None:
        """Give others what blocks took that are removed."""
        self._left += _uncompressed_bytes(blocks)


def _uncompressed_bytes(blocks: Iterable[Block]) -> int:
    return sum(block.keys_size + block.json_size for block in blocks if not block.packed)
