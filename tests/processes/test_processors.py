"""The default of jobs counts the processors that this process may use."""

import os
from pathlib import Path

import pytest
from support.command import run_python

from so2docs.processes.processors import count_processors

ALLOWED = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
pytestmark = pytest.mark.skipif(not ALLOWED, reason="reads limits of Linux")
V1 = "7:memory:/elsewhere\n4:cpu,cpuacct:/docker/abc\n0::/\n"


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {}, ALLOWED),
        ("0::/a/b.slice\n", {"a/b.slice/cpu.max": "max 100000\n"}, ALLOWED),
        ("0::/a/b.slice\n", {"a/b.slice/cpu.max": "50000 100000\n"}, 1),
        ("0::/a/b:c\n", {"a/cpu.max": "20000 100000\n", "a/b:c/cpu.max": "max 100000\n"}, 1),
        ("0::/of/the/host\n", {"cpu.max": "100000 100000\n"}, 1),
        ("0::/a\n", {"b/cpu.max": "10000 100000\n"}, ALLOWED),
        ("1:cpu:/\n0::/a\n", {"unified/a/cpu.max": "100000 100000\n"}, 1),
        (V1, {"cpu,cpuacct/docker/abc/cpu.cfs": (-1, 100_000)}, ALLOWED),
        (V1, {"cpu,cpuacct/docker/abc/cpu.cfs": (20_000, 50_000)}, 1),
        (V1, {"cpu/cpu.cfs": (100_000, 100_000)}, 1),
        (V1, {"memory/elsewhere/cpu.cfs": (1_000, 100_000)}, ALLOWED),
    ],
)
def test_quota_of_the_control_groups(
    tmp_path: Path, groups: str, files: dict[str, str | tuple[int, int]], expected: int
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, content in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True)
        if isinstance(content, str):
            path.write_text(content)
        else:
            Path(f"{path}_quota_us").write_text(f"{content[0]}\n")
            Path(f"{path}_period_us").write_text(f"{content[1]}\n")
    assert count_processors(str(tmp_path)) == expected


def test_large_quota_adds_no_processors(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text("99900000 100000\n")
    assert count_processors(str(tmp_path)) == ALLOWED


DEFAULTS = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from so2docs.options.table import RunOptions
from so2docs.processes.pool import choose_jobs
print(choose_jobs(None, 10**12), RunOptions().threads)
"""


def test_affinity_sets_the_defaults() -> None:
    assert run_python("-c", DEFAULTS).stdout == "1 1\n"
