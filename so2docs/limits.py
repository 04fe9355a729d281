"""How many processors and how much memory the system grants this process, and what it took.

Both are limited by the control groups of the process (containers, systemd) and those around them.
Formats: cgroups(7), and cgroup-v2, memory and sched-bwc in the documentation of Linux.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_ROOT = Path("/")
_UNKNOWN = 512 * 1024 * 1024


def count_processors(system: Path = _ROOT) -> int:
    """Return the number of processors that the system grants this process, at least 1.

    The affinity of the process (`taskset`, Slurm) limits them too.

    Args:
        system: Folder that contains `proc` and `sys`.
    """
    if hasattr(os, "process_cpu_count"):  # Python 3.13; it also reads PYTHON_CPU_COUNT.
        allowed = os.process_cpu_count()
    elif hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count()
    quotas: list[float] = []
    for group in _control_groups(system, "cpu"):
        with suppress(OSError, ValueError):
            quota, period = (group / "cpu.max").read_text().split()  # Version 2.
            quotas.append(int(quota) / int(period))
        with suppress(OSError, ValueError):
            micros = int((group / "cpu.cfs_quota_us").read_text())  # Version 1: -1 is no limit.
            if micros > 0:
                quotas.append(micros / int((group / "cpu.cfs_period_us").read_text()))
    return max(1, min([allowed or 1, *map(math.ceil, quotas)]))


def available_memory(system: Path = _ROOT) -> int:
    """Return the bytes available to processes and the system's cache; 512 MiB if unknown.

    Args:
        system: Folder that contains `proc` and `sys`.
    """
    free = []
    with suppress(OSError, ValueError, IndexError):
        text = (system / "proc/meminfo").read_text(encoding="ascii")
        free.append(int(text.partition("MemAvailable:")[2].split()[0]) * 1024)
    if not free:
        with suppress(AttributeError, OSError, ValueError):
            free.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)
    for group in _control_groups(system, "memory"):
        for limit, used, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            with suppress(OSError, ValueError):
                size = int((group / limit).read_text()) - int((group / used).read_text())
                free.append(max(0, size + _read_statistic(group / "memory.stat", cache)))
    return min(free, default=_UNKNOWN)


def _read_statistic(file: Path, name: str) -> int:
    with suppress(OSError):
        return int(dict(map(str.split, file.read_text().splitlines())).get(name, 0))
    return 0


def _control_groups(system: Path, controller: str) -> Iterator[Path]:
    """Yield the folders of the control groups that have a controller, in both versions."""
    try:
        lines = (system / "proc/self/cgroup").read_text(errors="replace").splitlines()
    except OSError:  # Not Linux.
        return
    for line in lines:
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and controller not in controllers.split(","):
            continue
        parts = path.strip("/").split("/")
        for mount in (controllers, controller) if controllers else ("", "unified"):
            # A container sees its own group as the root, while the path may be that of the host.
            for depth in range(len(parts) + 1):
                yield system.joinpath("sys/fs/cgroup", mount, *parts[:depth])


def peak_memory() -> int:
    """Return the peak resident memory of this process, in bytes; 0 if unknown."""
    try:
        # Do not use ru_maxrss, which also counts the parent's memory at the start of this process.
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except (OSError, IndexError):
        pass
    try:
        import resource
    except ImportError:  # Windows has no `resource`.
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
