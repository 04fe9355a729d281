"""The benchmarks run on samples, since they use internal functions that may change."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import CHECKOUT, DUMPS, NO_DUMPS, SAMPLES

from so2docs.parse import core


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, CHECKOUT / "checks" / "benchmarks" / script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_profile_times_every_step(tmp_path: Path) -> None:
    dump = shutil.copy(SAMPLES / "posts.xml", tmp_path)  # The spill is made next to the output.
    lines = run("profile_passes.py", dump).splitlines()
    assert [line.split("  ")[0] for line in lines if not line.startswith(" ")] == [
        "first pass",
        "second pass",
        "all",
    ]


def test_tables_are_measured() -> None:
    printed = run("measure_tables.py", SAMPLES / "site", "--nest", "all")
    assert "nesting and writing" in printed
    assert "comments nested" in printed


@pytest.mark.long
def test_one_job_and_the_unavoidable_are_measured_in_pairs(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    options = ("--size", "200kB", "--only-so2docs", "--folder", tmp_path, "--json", figures)
    last = run("run.py", *options).splitlines()[-1]
    pairs = json.loads(figures.read_text())["pairs"]
    ratios = sorted(one["job"]["cpu"] / (one["converting"] + one["packing"]) for one in pairs)
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    message = f"CPU of 1 job / unavoidable: {ratios[1]:.2f} (median of 3 pairs: {each})"
    assert core.built() == "python" or last == message


@pytest.mark.long
def test_flat_tables_are_measured(tmp_path: Path) -> None:
    printed = run("tables.py", "--size", "200kB", "--times", "2", "--folder", tmp_path)
    assert re.search(r"^so2docs .* 1\.00 x wall, 1\.00 x CPU$", printed, re.MULTILINE)
    assert re.search(r"^lxml_pyarrow .* x CPU$", printed, re.MULTILINE)


@pytest.mark.long
@pytest.mark.skipif(
    not (shutil.which("7z") or shutil.which("7zz")) or not shutil.which("zstd"),
    reason="needs 7z and zstd",
)
def test_sources_are_measured(tmp_path: Path) -> None:
    options = ("--size", "1MB", "--large", "3MB", "--rounds", "1", "--work-dir", tmp_path)
    lines = run("sources.py", *options).splitlines()
    names = [line.split(" | ")[0].split(",")[0] for line in lines[2:]]
    archives = ["| `.7z`"] * 4
    assert names == [
        "| a file",
        "| a pipe",
        "| `.gz`",
        "| `.zst`",
        *archives,
        "| 0 GB through a pipe",
    ]


@pytest.mark.long
def test_searches_in_other_words_find_the_question() -> None:
    if not DUMPS.exists():
        pytest.skip(NO_DUMPS)
    hits = [int(line.split()[-5]) for line in run("search_quality.py", DUMPS).splitlines()]
    assert sum(hits[:2]) >= 75


@pytest.mark.long
@pytest.mark.skipif(shutil.which("7z") is None, reason="7z is not installed")
def test_decoders_of_lzma2_are_compared() -> None:
    lines = run("lzma2.py", SAMPLES / "posts.xml", "--rounds", 1).splitlines()
    assert [line.split(" ")[1] for line in lines[2:]] == ["1", "3", "5", "9"]


@pytest.mark.long
def test_commands_are_measured_by_size(tmp_path: Path) -> None:
    lines = run("sizes.py", "--folder", tmp_path, "--sizes", "2MB", "--only", "convert,show")
    rows = [line.split(" | ")[1] for line in lines.splitlines() if line.startswith("| 2MB")]
    assert rows == ["convert", "show"]
