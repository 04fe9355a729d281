"""The processes of a conversion."""

import os
from collections.abc import Callable
from contextlib import suppress

import psutil

from so2docs.processes.worker import serve

_STARTS = f"from {serve.__module__} import {serve.__name__}", "spawn_main"
"""Parts of the commands of workers."""


def members(group: int) -> list[int]:
    """Return the running processes of a group."""
    return _running(lambda process: os.getpgid(process.pid) == group)


def children(parent: int) -> list[int]:
    """Return the running workers that a process started."""
    return _running(lambda process: process.ppid() == parent and _is_worker(process))


def _is_worker(process: psutil.Process) -> bool:
    command = " ".join(process.cmdline())
    return any(start in command for start in _STARTS)


def _running(is_meant: Callable[[psutil.Process], bool]) -> list[int]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # It has ended.
            if is_meant(process) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
    return found
