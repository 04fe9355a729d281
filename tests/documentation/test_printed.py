"""What README and docs print runs as printed: every block in order, in one fresh folder a page."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import CHECKOUT

PAGES = (
    "README.md",
    "docs/reading.md",
    "docs/tables.md",
    "docs/sources.md",
    "docs/datasets.md",
    "docs/changes.md",
    "docs/sqlite.md",
    *(f"docs/tutorials/{name}.md" for name in ("database", "dataset", "many-sites", "notebook")),
)
BLOCKS = re.compile(r"^```(console|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
SITE = "beer.stackexchange.com"


@pytest.fixture
def folder(tmp_path: Path, samples: Path) -> Path:
    """A folder with the dumps that the pages name."""
    py7zr = pytest.importorskip("py7zr")
    shutil.copy(samples / "posts.xml", tmp_path / "Posts.xml")
    shutil.copytree(samples / "site", tmp_path / SITE, ignore=shutil.ignore_patterns("*.jsonl"))
    (tmp_path / "dump").mkdir()
    comments = (tmp_path / SITE / "Comments.xml").read_bytes()
    (tmp_path / "dump" / "Comments.xml.gz").write_bytes(gzip.compress(comments))
    with py7zr.SevenZipFile(tmp_path / f"{SITE}.7z", "w") as archive:
        for table in (tmp_path / SITE).iterdir():
            archive.write(table, table.name)
    for table in ("Posts", "Comments", "Users"):
        with py7zr.SevenZipFile(tmp_path / f"stackoverflow.com-{table}.7z", "w") as archive:
            archive.write(tmp_path / SITE / f"{table}.xml", f"{table}.xml")
    for release in ("2024-04", "2024-07"):
        (tmp_path / release).mkdir()
        shutil.copy(tmp_path / f"{SITE}.7z", tmp_path / release)
    return tmp_path


def commands(block: str) -> list[str]:
    """The lines after a prompt, those that go on over several lines joined."""
    lines = block.replace("\\\n", " ").splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")]


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(folder), "PYTHONWARNINGS": "error"}
    environment["PYTHONUTF8"] = "1"
    done = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize(
    "page",
    [page if page == "README.md" else pytest.param(page, marks=pytest.mark.long) for page in PAGES],
)
def test_blocks_run_in_order(page: str, folder: Path) -> None:
    if page in ("docs/sources.md", "docs/tutorials/many-sites.md"):  # Archives of whole sites.
        for archive in folder.glob("stackoverflow.com-*"):
            archive.unlink()
    if page == "docs/reading.md":  # It reads the output that the README makes.
        run(["so2docs", "convert", "Posts.xml", "questions.jsonl.gz"], folder)
    blocks = BLOCKS.findall((CHECKOUT / page).read_text(encoding="utf-8"))
    assert blocks
    ran = 0
    for language, block in blocks:
        if language == "python":
            run([sys.executable, "-W", "error", "-c", block], folder)
            ran += 1
            continue
        for line in commands(block):
            others = [name for name in ("jq", "sqlite3") if name in line.split()]
            if any(shutil.which(name) is None for name in others) or line.startswith("datasette"):
                continue  # Datasette serves until it is stopped; test_datasette.py asks it.
            run(["bash", "-o", "pipefail", "-c", re.sub(r"\| head.*", "| cat", line)], folder)
            ran += 1
    assert ran >= len(blocks) - 1


def test_every_prompt_is_in_a_block_that_runs() -> None:
    for page in PAGES:
        text = (CHECKOUT / page).read_text(encoding="utf-8")
        outside = BLOCKS.sub("", text)
        assert not re.search(
            r"^(\$ )?so2docs (convert (?!DIR)|show|stats)", outside, re.MULTILINE
        ), page
