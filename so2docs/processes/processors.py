"""Count the processors that this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def count_processors(system: str = "/") -> int:
    """Return the number of processors that the system grants this process, at least 1.

    They are limited by the affinity of the process (`taskset`, Slurm) and by the CPU quota of its
    control groups (containers, systemd).

    Args:
        system: Folder that contains `proc` and `sys`.
    """
    if hasattr(os, "process_cpu_count"):  # Python 3.13; it also reads PYTHON_CPU_COUNT.
        allowed = os.process_cpu_count()
    elif hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    else:
        allowed = os.cpu_count()
    return max(1, min([allowed or 1, *map(math.ceil, _quotas(Path(system)))]))


def _quotas(system: Path) -> Iterator[float]:
    """Yield the quotas, in processors, of this process's control groups and those around them.

    Formats: cgroups(7), and cgroup-v2 and sched-bwc in the documentation of Linux.
    """
    try:
        lines = (system / "proc/self/cgroup").read_text(errors="replace").splitlines()
    except OSError:  # Not Linux.
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        parts = path.strip("/").split("/")
        for mount in (controllers, "cpu") if controllers else ("", "unified"):
            # A container sees its own group as the root, while the path may be that of the host.
            for depth in range(len(parts) + 1):
                yield from _quota(system.joinpath("sys/fs/cgroup", mount, *parts[:depth]))


def _quota(folder: Path) -> Iterator[float]:
    """Yield the quota of a group, if it has one; `max` and -1 mean that it has none."""
    with suppress(OSError, ValueError):
        quota, period = (folder / "cpu.max").read_text().split()  # Version 2.
        yield int(quota) / int(period)
    with suppress(OSError, ValueError):
        micros = int((folder / "cpu.cfs_quota_us").read_text())  # Version 1.
        if micros > 0:
            yield micros / int((folder / "cpu.cfs_period_us").read_text())
