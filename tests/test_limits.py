"""The processors and the memory that this process may use, and the default of jobs."""

import os
from pathlib import Path

import pytest
from support.command import run_python

from so2docs.limits import available_memory, count_processors
from so2docs.processes import pool

ALLOWED = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
pytestmark = pytest.mark.skipif(not ALLOWED, reason="reads limits of Linux")
V1 = "7:memory:/elsewhere\n4:cpu,cpuacct:/docker/abc\n0::/\n"


def write(folder: Path, files: dict[str, object]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


def version_1(folder: str, quota: int, period: int) -> dict[str, object]:
    return {f"{folder}/cpu.cfs_quota_us": quota, f"{folder}/cpu.cfs_period_us": period}


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {}, ALLOWED),
        ("0::/a/b.slice\n", {"a/b.slice/cpu.max": "max 100000\n"}, ALLOWED),
        ("0::/a/b.slice\n", {"a/b.slice/cpu.max": "50000 100000\n"}, 1),
        ("0::/a/b:c\n", {"a/cpu.max": "20000 100000\n", "a/b:c/cpu.max": "max 100000\n"}, 1),
        ("0::/of/the/host\n", {"cpu.max": "100000 100000\n"}, 1),
        ("0::/a\n", {"b/cpu.max": "10000 100000\n"}, ALLOWED),
        ("0::/\n", {"cpu.max": "99900000 100000\n"}, ALLOWED),
        ("1:cpu:/\n0::/a\n", {"unified/a/cpu.max": "100000 100000\n"}, 1),
        (V1, version_1("cpu,cpuacct/docker/abc", -1, 100_000), ALLOWED),
        (V1, version_1("cpu,cpuacct/docker/abc", 20_000, 50_000), 1),
        (V1, version_1("cpu", 100_000, 100_000), 1),
        (V1, version_1("memory/elsewhere", 1_000, 100_000), ALLOWED),
    ],
)
def test_quota_of_the_control_groups(
    tmp_path: Path, groups: str, files: dict[str, object], expected: int
) -> None:
    write(tmp_path / "proc/self", {"cgroup": groups})
    write(tmp_path / "sys/fs/cgroup", files)
    assert count_processors(tmp_path) == expected


DEFAULTS = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from so2docs.options.table import RunOptions
from so2docs.processes.pool import choose_jobs
print(choose_jobs(None, 10**12), RunOptions().threads)
"""


def test_affinity_sets_the_defaults() -> None:
    assert run_python("-c", DEFAULTS).stdout == "1 1\n"


@pytest.mark.parametrize(("mebibytes", "jobs"), [(20, 1), (199, 1), (350, 3), (10**6, 8)])
def test_fewer_jobs_where_memory_is_short(
    mebibytes: int, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "count_processors", lambda: 8)
    monkeypatch.setattr(pool, "available_memory", lambda: mebibytes * 1024**2)
    assert pool.choose_jobs(None, 10**12) == jobs
    assert pool.choose_jobs(5, 10**12) == 5


MEMINFO = "MemTotal:  8000 kB\nMemFree:  10 kB\nMemAvailable:   4000 kB\nBuffers: 5 kB\n"


NESTED_GROUPS = {
    "a/memory.max": 2_000_000,
    "a/memory.current": 900_000,
    "a/memory.stat": "anon 5\ninactive_file 500000",
    "a/b/memory.max": 1_900_000,
    "a/b/memory.current": 100,
}
OLD_GROUPS = {"memory/memory.limit_in_bytes": 3_000_000, "memory/memory.usage_in_bytes": 1}


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("", {}, 4_096_000),
        ("0::/\n", {"memory.max": "max", "memory.current": 9}, 4_096_000),
        ("0::/\n", {"memory.max": 1_000_000, "memory.current": 300_000}, 700_000),
        ("0::/a/b\n", NESTED_GROUPS, 1_600_000),
        ("0::/of/the/host\n", {"memory.max": 50_000, "memory.current": 60_000}, 0),
        ("12:cpu:/x\n5:memory:/docker/1\n", OLD_GROUPS, 2_999_999),
    ],
)
def test_available_memory(
    group: str, files: dict[str, object], expected: int, tmp_path: Path
) -> None:
    write(tmp_path / "proc", {"meminfo": MEMINFO, "self/cgroup": group})
    write(tmp_path / "sys/fs/cgroup", files)
    assert available_memory(tmp_path) == expected


def test_available_memory_without_system_files(tmp_path: Path) -> None:
    assert available_memory(tmp_path) > 100_000_000
