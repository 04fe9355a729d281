"""The benchmarks run on samples, since they use internal functions that may change."""

import bz2
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import CHECKOUT, DUMPS, NO_DUMPS, SAMPLES

import so2docs
from so2docs.parse import core


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, CHECKOUT / "benchmarks" / script, *map(str, arguments)]
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
def test_memory_in_each_order(tmp_path: Path) -> None:
    printed = run("memory.py", "--size", "200kB", "--times", "2", "--folder", tmp_path)
    assert [line.split(" | ")[0] for line in printed.splitlines()[2:]] == [
        f"| {order}" for order in ("sorted", "grouped", "shuffled") for _ in range(2)
    ]


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


def test_one_kind_of_source_is_measured(tmp_path: Path) -> None:
    options = ("--only", "file", "--size", "200kB", "--rounds", "1", "--work-dir", tmp_path)
    lines = run("sources.py", *options).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| a file"]
    assert not list(tmp_path.iterdir())


def test_a_disk_too_small_for_the_large_dump(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        run("sources.py", "--only", "large", "--large", "999999GB", "--work-dir", tmp_path)
    assert re.search(r"large needs [\d.]+ GB, [\d.]+ GB are free", failed.value.stderr)


def test_a_repeated_dump_has_other_ids(tmp_path: Path) -> None:
    dump, size = SAMPLES / "posts.xml", (SAMPLES / "posts.xml").stat().st_size
    repeated = tmp_path / "Posts.xml"
    repeated.write_text(run("repeat_dump.py", dump, str(2 * size)), encoding="utf-8", newline="")
    once = so2docs.convert(dump, tmp_path / "once.jsonl")
    twice = so2docs.convert(repeated, tmp_path / "twice.jsonl")
    copies = twice.rows // once.rows
    assert copies > 1
    assert (twice.questions, twice.answers) == (once.questions * copies, once.answers * copies)
    assert twice.strays["repeated_id"] == once.strays["repeated_id"] * copies


@pytest.mark.long
def test_packed_dumps_are_measured(tmp_path: Path) -> None:
    packed = tmp_path / "posts.xml.bz2"
    packed.write_bytes(bz2.compress((SAMPLES / "posts.xml").read_bytes()))
    lines = run("packed.py", packed).splitlines()
    assert [line.split(",")[0] for line in lines[2:]] == ["| decompress"] * 3 + ["| convert"] * 2


@pytest.mark.long
def test_searches_in_other_words_find_the_question() -> None:
    if not DUMPS.exists():
        pytest.skip(NO_DUMPS)
    hits = [int(line.split()[-5]) for line in run("search_quality.py", DUMPS).splitlines()]
    assert sum(hits[:2]) >= 75
