"""The processes of a conversion, as `ps` lists them."""

import subprocess

from so2docs.processes.worker import serve


def members(group: int) -> list[int]:
    """Return the running processes of a group."""
    return [int(pid) for pid, _, of, state, _ in _processes() if int(of) == group and state != "Z"]


def children(parent: int) -> list[int]:
    """Return the running workers that a process started."""
    return [
        int(pid)
        for pid, of, _, state, args in _processes()
        if int(of) == parent and state != "Z" and _is_worker(args)
    ]


def descendants(parent: int) -> list[int]:
    """Return the running processes that a process started, and those that they started."""
    family = [parent]
    processes = sorted((int(pid), int(of)) for pid, of, *_ in _processes())
    for number in family:
        family += [pid for pid, of in processes if of == number]
    return family[1:]


def _is_worker(args: str) -> bool:
    return f"from {serve.__module__} import {serve.__name__}" in args or "spawn_main" in args


def _processes() -> list[list[str]]:
    listing = subprocess.run(
        ["ps", "-ww", "-A", "-o", "pid=,ppid=,pgid=,stat=,args="],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    rows = [line.split(None, 4) for line in listing]
    return [[*row[:3], row[3][0], row[4]] for row in rows if len(row) == 5]
