"""The code blocks of README and docs run as printed: in order, in a new folder for each page."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.packed import seven_zip
from support.places import CHECKOUT

IN_DUCKDB = ("docs/loading.md", "docs/queries.md")
"""Pages whose SQL runs in DuckDB, in one session for each page."""
MANY_SITES = "docs/tutorials/many-sites.md"
PAGES = (
    "README.md",
    "docs/as-of.md",
    "docs/flat-tables.md",
    "docs/history.md",
    "docs/reading.md",
    "docs/nesting.md",
    "docs/sources.md",
    "docs/datasets.md",
    "docs/publishing.md",
    "docs/changes.md",
    "docs/sqlite.md",
    *IN_DUCKDB,
    *(f"docs/tutorials/{name}.md" for name in ("database", "dataset", "notebook")),
    MANY_SITES,
)
OTHERS = ("clickhouse", "jq", "sqlite3", "psql", "curl", "mongoimport", "zstd")
"""Programs that may be missing, and servers that do not exist here."""
BLOCKS = re.compile(
    r"(?:^<!-- (\S+\.(?:py|sh)) -->\n)?^```(console|python|sh|sql)\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)
"""Matches a code block, and the name of the file that it shows, if any."""
OPENING = re.compile(r"mkdir (\S+) && cd \1(?: && (.*))?$")
"""The command that each page begins with: its folder, and the sample."""


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


def posts_of(*ids: int) -> bytes:
    rows = "".join(
        f'<row Id="{id_}" PostTypeId="1" CreationDate="2024-01-01T00:00:00.000" Title="T{id_}" '
        f'Body="b" Tags="|a|" Score="1" AnswerCount="0" />\n'
        for id_ in ids
    )
    return f"<posts>\n{rows}</posts>".encode()


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_the_script_of_a_quarter(tmp_path: Path) -> None:
    """Sites that fail, close, are renamed or are new; a deletion during a failed quarter."""
    quarters: dict[str, dict[str, tuple[int, ...] | None]] = {
        "2024-04": {"tea": (1, 2), "coffee": (1, 2), "closed": (1,), "oldname": (1,)},
        "2024-07": {"tea": (2, 3), "coffee": None, "newname": (1,), "milk": (5,)},
        "2024-10": {"tea": (3,), "coffee": (2,), "newname": (1,), "milk": (5, 6)},
    }
    page = (CHECKOUT / MANY_SITES).read_text(encoding="utf-8")
    files = {name: block for name, _, block in BLOCKS.findall(page) if name}
    script = CHECKOUT / "docs" / "tutorials" / "quarter.sh"
    assert files["quarter.sh"] == script.read_text(encoding="utf-8")
    (tmp_path / "update_index.py").write_text(files["update_index.py"], encoding="utf-8")

    def update(code: int, *arguments: str) -> str:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "PYTHONUTF8": "1"}
        done = subprocess.run(
            ["sh", script, *arguments],
            check=False, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8",
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done.stderr

    def index() -> list[tuple[str, int]]:
        with sqlite3.connect(tmp_path / "search.db") as connection:
            rows = connection.execute("SELECT site, id FROM posts ORDER BY site, id").fetchall()
        connection.close()
        return rows

    for quarter, sites in quarters.items():
        (tmp_path / quarter).mkdir()
        for site, ids in sites.items():
            archive = tmp_path / quarter / f"{site}.7z"
            if ids is None:
                archive.write_text("<html>404</html>", encoding="utf-8")
            else:
                seven_zip(archive, {"Posts.xml": posts_of(*ids)})
        if quarter == "2024-04":
            assert update(0) == ""
            # A shell completes the name of a folder with a slash.
            assert update(0, f"{quarter}/") == ""
        elif quarter == "2024-07":
            said = update(1)
            assert "coffee.7z: is a web page" in said
            assert "so2docs: no output, because the conversion failed: 2024-07/coffee.7z" in said
            assert "closed: is gone" in said
            assert "oldname: is gone" in said
            assert index() == [
                *(("closed", 1), ("coffee", 1), ("coffee", 2), ("milk", 5), ("newname", 1)),
                *(("oldname", 1), ("tea", 2), ("tea", 3)),
            ]
            assert {path.stem for path in (tmp_path / "databases").glob("*.db")} == {
                *("milk", "newname", "tea", "coffee", "closed", "oldname")
            }
    for site in ("closed", "oldname"):
        for output in (tmp_path / "questions").glob(f"*/{site}.jsonl.gz"):
            output.unlink()
    assert update(0) == ""
    assert index() == [
        *(("closed", 1), ("coffee", 2), ("milk", 5), ("milk", 6), ("newname", 1)),
        *(("oldname", 1), ("tea", 3)),
    ]


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_blocks_of_a_page_run_in_an_empty_folder(page: str, tmp_path: Path) -> None:
    run_blocks(page, tmp_path)


@pytest.mark.long
def test_types_of_blocks(tmp_path: Path) -> None:
    """Records of a recipe are read as `dict`, since other types of `read` have no such keys."""
    for number, page in enumerate(PAGES):
        for place, (_, language, block) in enumerate(BLOCKS.findall((CHECKOUT / page).read_text())):
            if language == "python":
                (tmp_path / f"block_{number}_{place}.py").write_text(block, encoding="utf-8")
    skipped = [f"--disable-error-code={code}" for code in ("name-defined", "union-attr")]
    options = ["--config-file=", "--ignore-missing-imports", *skipped]
    run([sys.executable, "-m", "mypy", *options, str(tmp_path)], tmp_path)


def runnable(command: str) -> str:
    """Return the part of a command or script that can run on this machine."""
    if command.startswith("pip install"):
        return ""
    needed = [name for name in OTHERS if name in command.split()]
    if all(shutil.which(name) for name in needed) and not {"psql", "curl"} & {*needed}:
        return re.sub(r"\| head.*", "| cat", command)
    return "\n".join(line for line in command.splitlines() if line.startswith("so2docs "))


def run_sql(block: str, folder: Path, session: Any) -> None:
    """Run statements in DuckDB; each query has rows."""
    for statement in session.extract_statements(block):
        with chdir(folder):
            rows = session.execute(statement).fetchall()
        assert rows or not statement.query.lstrip().startswith(("SELECT", "FROM")), statement.query


def run_blocks(page: str, folder: Path) -> None:
    """Run the blocks of a page, except commands that need a server or a missing program."""
    blocks = BLOCKS.findall((CHECKOUT / page).read_text(encoding="utf-8"))
    count = 0
    session = pytest.importorskip("duckdb").connect() if page in IN_DUCKDB else None
    for script, language, block in blocks:
        if script:
            (folder / script).write_text(block, encoding="utf-8")
            count += 1
            continue
        if language == "sql":
            if session is not None:
                run_sql(block, folder, session)
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
                folder = folder / match[1]
                folder.mkdir()
                command = match[2]
            if command:
                run(["bash", "-e", "-o", "pipefail", "-c", command], folder)
                count += 1
    assert count >= len(blocks) / 2


def test_every_prompt_is_in_a_block_that_runs() -> None:
    for page in PAGES:
        text = (CHECKOUT / page).read_text(encoding="utf-8")
        outside = BLOCKS.sub("", text)
        assert not re.search(
            r"^(\$ )?so2docs (convert (?!DIR)|show|inspect)", outside, re.MULTILINE
        ), page
