"""The benchmarks run on samples, since they use internal functions that may change."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import CHECKOUT, DUMPS, NO_DUMPS, SAMPLES

SMALL = ("--size", "200kB", "--folder", ".")
SITE = SAMPLES / "site"
NEEDS_7Z = pytest.mark.skipif(shutil.which("7z") is None, reason="7z is not installed")
BENCHMARKS: dict[str, tuple[tuple[object, ...], str]] = {
    "profile_passes.py": (("posts.xml",), r"first pass(.|\n)*second pass(.|\n)*\nall "),
    "measure_tables.py": ((SITE, "--nest", "all"), r"nesting and writing(.|\n)*comments nested"),
    "run.py": ((*SMALL, "--only-so2docs"), r"unavoidable: [\d.]+ \(median of 3 pairs|^so2docs"),
    "tables.py": ((*SMALL, "--times", "2"), r"so2docs .* 1\.00 x wall(.|\n)*lxml_pyarrow .* x CPU"),
    "sizes.py": (
        ("--folder", ".", "--sizes", "2MB", "--only", "convert,show"),
        r"\| 2MB \| convert(.|\n)*\| 2MB \| show",
    ),
}


def run(script: str, *arguments: object) -> str:
    command = [sys.executable, CHECKOUT / "checks" / "benchmarks" / script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
@pytest.mark.parametrize("script", BENCHMARKS)
def test_prints_its_figures(script: str, tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "posts.xml", tmp_path)  # The spill is made next to the output.
    arguments, figures = BENCHMARKS[script]
    assert re.search(figures, run(script, *arguments), re.MULTILINE)


@pytest.mark.long
@NEEDS_7Z
def test_figures_of_archives(tmp_path: Path) -> None:
    lines = run("lzma2.py", SAMPLES / "posts.xml", "--rounds", 1).splitlines()
    assert [line.split(" ")[1] for line in lines[2:]] == ["1", "3", "5", "9"]
    options = ("--size", "1MB", "--large", "3MB", "--rounds", "1", "--work-dir", tmp_path)
    assert run("sources.py", *options).count("| `.7z`") == 4


@pytest.mark.long
def test_searches_in_other_words_find_the_question() -> None:
    if not DUMPS.exists():
        pytest.skip(NO_DUMPS)
    hits = [int(line.split()[-5]) for line in run("search_quality.py", DUMPS).splitlines()]
    assert sum(hits[:2]) >= 75
