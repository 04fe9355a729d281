"""The code blocks of README and docs run as printed: in order, in a new folder for each page."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.places import CHECKOUT

import so2docs

MANY_SITES = "docs/tutorials/many-sites.md"
PAGES = (
    "README.md",
    "docs/reading.md",
    "docs/tables.md",
    "docs/sources.md",
    "docs/datasets.md",
    "docs/changes.md",
    "docs/sqlite.md",
    "docs/loading.md",
    *(f"docs/tutorials/{name}.md" for name in ("database", "dataset", "notebook")),
    MANY_SITES,
)
OTHERS = ("jq", "sqlite3", "psql", "curl", "mongoimport", "zstd")
"""Programs that may be missing, and servers that do not exist here."""
BLOCKS = re.compile(
    r"(?:^<!-- (\S+\.py) -->\n)?^```(console|python|sh)\n(.*?)^```", re.DOTALL | re.MULTILINE
)
"""Matches a code block, and the name of the file that it shows, if any."""
OPENING = re.compile(r"mkdir (\S+) && cd \1(?: && (.*))?$")
"""The command that each page begins with: its folder, and the sample."""
SITE = "beer.stackexchange.com"
SAMPLES = ("Posts.xml", f"{SITE}.7z", "2024-04", "2024-07")
"""Names that `so2docs sample` makes on the pages."""


@pytest.fixture
def folder(tmp_path: Path, samples: Path) -> Path:
    """A folder with the dumps that the pages use."""
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
    (tmp_path / "2024-04").mkdir()
    shutil.copy(tmp_path / f"{SITE}.7z", tmp_path / "2024-04")
    (tmp_path / "2024-07").mkdir()
    posts = (tmp_path / SITE / "Posts.xml").read_bytes()
    for site, title in ((SITE, b'Title="Edited: '), ("coffee.stackexchange.com", b'Title="')):
        with py7zr.SevenZipFile(tmp_path / "2024-07" / f"{site}.7z", "w") as archive:
            archive.writestr(posts.replace(b'Title="', title), "Posts.xml")
    return tmp_path


def commands(block: str) -> list[str]:
    """Return the commands after prompts, with continued lines joined."""
    lines = block.replace("\\\n", " ").splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")]


def run(command: list[str], folder: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(folder), "PYTHONWARNINGS": "error"}
    environment["PYTHONUTF8"] = "1"
    result = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, encoding="utf-8"
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def test_blocks_of_the_readme_run(folder: Path) -> None:
    for name in ("Posts.xml", f"{SITE}.7z"):
        (folder / name).unlink()  # `so2docs sample` writes these files.
    run_blocks("README.md", folder)


@pytest.mark.long
def test_the_index_of_the_tutorial_is_that_of_the_last_quarter(folder: Path) -> None:
    run_blocks(MANY_SITES, folder, SAMPLES[:2])
    with sqlite3.connect(folder / "many-sites" / "search.db") as index:
        rows = index.execute(
            "SELECT site, id, title, body FROM posts JOIN search ON search.rowid = row"
        )
        actual = sorted(rows)
    index.close()
    outputs = sorted((folder / "many-sites" / "questions" / "2024-07").glob("*.jsonl.gz"))
    assert [path.name[:4] for path in outputs] == ["beer", "coff"]
    expected = [
        (path.name.removesuffix(".jsonl.gz"), question["Id"], question["Title"], question["Body"])
        for path in outputs
        for question in so2docs.read(path)
    ]
    assert actual == expected
    assert {title.startswith("Edited: ") for site, _, title, _ in actual if site == SITE} == {True}


@pytest.mark.long
def test_pages_run_one_after_the_other_in_one_folder(folder: Path) -> None:
    for page in PAGES:
        if page != "README.md":
            run_blocks(page, folder)


def runnable(command: str) -> str:
    """Return the part of a command or script that can run on this machine."""
    if command.startswith(("datasette", "pip install")):
        return ""  # Datasette serves until it is stopped; test_datasette.py asks it.
    needed = [name for name in OTHERS if name in command.split()]
    if all(shutil.which(name) for name in needed) and not {"psql", "curl"} & {*needed}:
        return re.sub(r"\| head.*", "| cat", command)
    return "\n".join(line for line in command.splitlines() if line.startswith("so2docs "))


def open_folder(parent: Path, name: str, text: str, samples: tuple[str, ...]) -> Path:
    """Make the folder of a page, with the dumps that its blocks name and that are not samples."""
    folder = parent / name
    folder.mkdir()
    for source in parent.iterdir():
        if source.name.partition("-")[0] in text and source.name not in (*samples, name):
            (folder / source.name).symlink_to(source)
    return folder


def run_blocks(page: str, folder: Path, samples: tuple[str, ...] = SAMPLES) -> None:
    """Run the blocks of a page, except commands that need a server or a missing program.

    With fewer `samples`, the first command does not replace the dumps of the test.
    """
    blocks = BLOCKS.findall((CHECKOUT / page).read_text(encoding="utf-8"))
    count = 0
    for script, language, block in blocks:
        if script:
            (folder / script).write_text(block, encoding="utf-8")
            count += 1
            continue
        if language == "python":
            names = re.findall(r"^(?:from|import) (\w+)", block, re.MULTILINE)
            if all(find_spec(name) for name in names):
                run([sys.executable, "-W", "error", "-c", block], folder)
                count += 1
            continue
        for line in commands(block) if language == "console" else [block]:
            command = runnable(line)
            if match := OPENING.match(line):
                folder = open_folder(folder, match[1], str(blocks), samples)
                command = match[2] if samples == SAMPLES else ""
            if command:
                run(["bash", "-e", "-o", "pipefail", "-c", command], folder)
                count += 1
    assert count >= len(blocks) / 2


def test_every_prompt_is_in_a_block_that_runs() -> None:
    for page in PAGES:
        text = (CHECKOUT / page).read_text(encoding="utf-8")
        outside = BLOCKS.sub("", text)
        assert not re.search(
            r"^(\$ )?so2docs (convert (?!DIR)|show|stats)", outside, re.MULTILINE
        ), page
