"""The pages of the documentation: their links, generated parts, names, and code.

Code blocks run as printed: in order, in a new folder for each page.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from reference.keywords import CLASSES
from support.command import run_python, with_programs
from support.places import CHECKOUT

import so2docs

PAGES = {
    str(path.relative_to(CHECKOUT)): path.read_text(encoding="utf-8")
    for pattern in ("*.md", "docs/**/*.md", "checks/*/*.md", "s*/**/*.md", "tests/*.md")
    for path in sorted(CHECKOUT.glob(pattern))
}
"""The texts of all pages by path."""
BLOCKS = re.compile(
    r"(?:^<!-- (\S+\.(?:py|sh)) -->\n)?^```(console|python|sh|sql)\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)
"""Matches a code block, and the name of the file that it shows, if any."""
OPENING = re.compile(r"mkdir (\S+) && cd \1(?: && (.*))?$")
"""The command that a page with code begins with: its folder, and the sample."""
RUN = ["README.md", *(page for page, text in PAGES.items() if re.search(r"^\$ mkdir", text, re.M))]
"""Pages whose code runs."""
IN_DUCKDB = ("docs/loading.md", "docs/queries.md")
"""Pages whose SQL runs in DuckDB, in one session for each page."""
OTHERS = ("clickhouse", "jq", "sqlite3", "psql", "curl", "mongoimport", "zstd")
"""Programs that may be missing, and servers that do not exist here."""


def test_generated_parts_are_current() -> None:
    pages = ["docs/cli.md", "docs/api.md", "docs/options.md"]
    names = ("__init__", "plugin", "options/keywords", "extensions/keywords")
    sources = [f"so2docs/{name}.py" for name in names]
    command = ["-m", "cogapp", "--check", "-I", "packaging", *sources, *pages]
    result = run_python(*command, cwd=CHECKOUT, code=None)
    assert result.returncode == 0, f"{result.stdout}{result.stderr}\nrun `make docs`"


def test_links_and_programs_lead_to_files() -> None:
    missing = []
    for page, text in PAGES.items():
        folder = (CHECKOUT / page).parent
        targets = [folder / link for link in re.findall(r"\]\(([^)#:]+)\)", text)]
        targets += [CHECKOUT / name for name in re.findall(r"python3? ([\w/]+/\w+\.py)", text)]
        for name in re.findall(r"-m (support\.\w+)", text):
            targets.append(CHECKOUT / "tests" / f"{name.replace('.', '/')}.py")
        missing += [(page, str(target)) for target in targets if not target.exists()]
    assert missing == []


def test_pages_list_every_extension_page_and_public_name() -> None:
    folders = {path.parent.name for path in CHECKOUT.glob("so2docs/extensions/*/__init__.py")}
    text = PAGES["so2docs/extensions/README.md"]
    assert set(re.findall(r"^\| `(\w+)/`", text, re.MULTILINE)) == folders
    listed = set(re.findall(r"\]\((docs/[\w-]+\.md)\)", PAGES["README.md"]))
    assert listed >= {page for page in PAGES if re.fullmatch(r"docs/[\w-]+\.md", page)}
    reference = PAGES["docs/api.md"]
    names = re.findall(r"^### (?:class )?`(.+)`$", reference, re.MULTILINE)
    names += re.findall(r"^\| <a id=.*?></a>`(\w+)`", reference, re.MULTILINE)
    assert sorted(names) == sorted({*so2docs.__all__, "open", *CLASSES} - {"__version__"})


def test_links_to_options_lead_to_the_table() -> None:
    described = re.findall(r'<a id="(\w+)"></a>', PAGES["docs/options.md"])
    assert len(described) == len(set(described))
    for page in ("docs/cli.md", "docs/api.md"):
        assert set(re.findall(r"options\.md#(\w+)", PAGES[page])) <= set(described)


def test_every_test_named_in_the_promises_exists() -> None:
    sources: dict[str, str] = {}
    for path in (CHECKOUT / "tests").rglob("test_*.py"):
        sources[path.name] = sources.get(path.name, "") + path.read_text(encoding="utf-8")
    missing, file = [], ""
    pattern = r"`(?:(test_\w+\.py))?(?:::(test_\w+…?))?`"
    for name, test in re.findall(pattern, PAGES["tests/promises.md"]):
        file = name or file
        if name or test:
            source = sources.get(file, "")
            start = f"def {test.removesuffix('…')}" + ("" if test.endswith("…") else "(")
            if not source or (test and start not in source):
                missing.append(f"{file}::{test}")
    assert missing == []


def run(command: list[str], folder: Path) -> str:
    """Run a command in a folder with the programs of this environment; it must succeed."""
    environment = with_programs() | {"HOME": str(folder), "PYTHONWARNINGS": "error"}
    result = subprocess.run(
        command, check=False, cwd=folder, env=environment, capture_output=True, encoding="utf-8"
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def commands(block: str) -> list[str]:
    """Return the commands after prompts, with continued lines joined."""
    lines = block.replace("\\\n", " ").splitlines()
    return [line[2:] for line in lines if line.startswith("$ ")]


def runnable(command: str) -> str:
    """Return the part of a command or script that can run on this machine, and ends."""
    if command.startswith(("pip install", "so2docs serve")):
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


@pytest.mark.long
@pytest.mark.parametrize("page", RUN)
def test_blocks_of_a_page_run_in_an_empty_folder(page: str, tmp_path: Path) -> None:
    """Commands are left out that need a server or a missing program."""
    folder, count, blocks = tmp_path, 0, BLOCKS.findall(PAGES[page])
    session = pytest.importorskip("duckdb").connect() if page in IN_DUCKDB else None
    for script, language, block in blocks:
        if script:
            (folder / script).write_text(block, encoding="utf-8")
            count += 1
        elif language == "sql" and session is not None:
            run_sql(block, folder, session)
            count += 1
        elif language == "python":
            names = re.findall(r"^(?:from|import) (\w+)", block, re.MULTILINE)
            if all(find_spec(name) for name in names):
                run([sys.executable, "-W", "error", "-c", block], folder)
                count += 1
        elif language != "sql":
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
    for page in RUN:
        outside = BLOCKS.sub("", PAGES[page])
        commands_outside = r"^(\$ )?so2docs (convert (?!DIR)|show|inspect)"
        assert not re.search(commands_outside, outside, re.MULTILINE), page


@pytest.mark.long
def test_types_of_blocks(tmp_path: Path) -> None:
    """Python of the README is typed for its users; that of other pages has no wrong type.

    Records of a recipe are read as `dict`, since other types of `read` have no such keys.
    """
    blocks: dict[str, list[str]] = {}
    for page in RUN:
        blocks[page] = [block for _, kind, block in BLOCKS.findall(PAGES[page]) if kind == "python"]
    readme = blocks.pop("README.md")
    assert readme
    (tmp_path / "readme.py").write_text("\n".join(readme), encoding="utf-8")
    run_python("-m", "mypy", "--strict", tmp_path / "readme.py", cwd=CHECKOUT)
    for number, block in enumerate(block for page in blocks.values() for block in page):
        (tmp_path / f"block_{number}.py").write_text(block, encoding="utf-8")
    skipped = [f"--disable-error-code={code}" for code in ("name-defined", "union-attr")]
    run_python("-m", "mypy", "--config-file=", "--ignore-missing-imports", *skipped, tmp_path)
