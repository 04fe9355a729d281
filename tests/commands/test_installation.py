"""Tools for packagers and bug reports: the check of a package, versions, completion."""

from __future__ import annotations

import bz2
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import requires
from pathlib import Path

import pytest
from support.command import run, run_process, run_python
from support.places import CHECKOUT, SAMPLES

import so2docs
from so2docs.commands.installation import describe_installation
from so2docs.errors import require_packages
from so2docs.parse import core


@pytest.mark.long
def test_packages_are_checked_by_a_conversion(tmp_path: Path) -> None:
    """The check that builds of wheels, images and packages run."""
    check = CHECKOUT / "packaging" / "check_conversion.py"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, core.VARIABLE: core.built(), "TMPDIR": str(tmp_path)}
    command = [sys.executable, check]
    subprocess.run(command, env=environment, check=True)
    assert not list(tmp_path.iterdir())
    other = check.read_text(encoding="utf-8").replace('EXPECTED = "', 'EXPECTED = "0')
    (tmp_path / "other.py").write_text(other, encoding="utf-8")
    command = [sys.executable, str(tmp_path / "other.py")]
    failed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("Posts.xml: SHA-256 is ")


def install(folder: Path, core_file: str, content: bytes) -> Callable[..., tuple[int, str]]:
    """Install the package with another core; returns a function that runs its command."""
    package = folder / "so2docs"
    shutil.copytree(CHECKOUT / "so2docs", package, ignore=shutil.ignore_patterns("_core.*"))
    (package / "parse" / core_file).write_bytes(content)

    def run_installed(*arguments: object) -> tuple[int, str]:
        environment = {"PYTHONPATH": str(folder), core.VARIABLE: "auto"}
        result = run_process(*arguments, cwd=folder, env=environment)
        return result.returncode, result.stdout + result.stderr

    return run_installed


def test_a_core_of_another_version_is_not_used(tmp_path: Path) -> None:
    stale = install(tmp_path, "_core.py", b"def add_rows(): ...")
    archive = tmp_path / "posts.xml.bz2"
    archive.write_bytes(bz2.compress((SAMPLES / "posts.xml").read_bytes()))
    code, text = stale("convert", archive, tmp_path / "questions.jsonl")
    assert code == 0, text
    assert text.count("another version of so2docs and lacks add_sizes, answer_ids, ") == 1
    assert "reinstall so2docs with" in text
    assert (tmp_path / "questions.jsonl").read_bytes() == (SAMPLES / "posts.jsonl").read_bytes()
    code, text = stale("convert", archive, tmp_path / "again.jsonl", "--core", "compiled")
    assert code == 2
    assert "reinstall so2docs with" in text


@pytest.mark.long
def test_a_core_that_fails_to_load_is_named(tmp_path: Path) -> None:
    broken = install(tmp_path, f"_core{EXTENSION_SUFFIXES[0]}", b"of another system")
    assert re.search(
        r"\(python core; the compiled one cannot be used: .*_core", broken("--version")[1]
    )
    sites = [shutil.copytree(SAMPLES / "site", tmp_path / name) for name in ("a", "b")]
    code, text = broken(
        *("tables", *sites, "--output-dir", tmp_path / "csv", "--format", "csv", "--jobs", "2")
    )
    assert (code, text.count("the compiled core cannot be used")) == (0, 1)


def test_an_uninstalled_package_reports_its_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    assert describe_installation().keys() == {"so2docs", "Python", "system", "SQLite", "processors"}


def test_the_version_and_its_dependencies() -> None:
    short = run("--version").stdout
    assert short == f"so2docs {so2docs.__version__} ({core.built()} core)\n"
    long = run("--version", "--verbose").stdout.splitlines()
    assert long[0] == short.rstrip()
    assert {"so2docs", "Python", "system", "lxml", "isal", "orjson"} <= {
        line.partition(":")[0] for line in long
    }
    assert describe_installation()["lxml"][0].isdecimal()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_of_a_shell(shell: str) -> None:
    assert "_SO2DOCS_COMPLETE" in run("completion", shell).stdout


@pytest.mark.long
def test_bash_completes_commands_options_and_values() -> None:
    def completed(words: str, at: int) -> list[str]:
        result = run_process(
            env={"_SO2DOCS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(at)}
        )
        return result.stdout.splitlines()

    assert "plain,convert" in completed("so2docs co", 1)
    assert "plain,--format" in completed("so2docs convert --fo", 2)
    assert completed("so2docs convert --format par", 3) == ["plain,parquet"]
    assert completed("so2docs convert sam", 2) == ["file,sam"]
    assert completed("so2docs show que", 2) == ["file,que"]


OPTIONAL = ("pyarrow", "pandas", "duckdb", "markdown_it", "urllib3", "mcp", "starlette", "nh3")


def test_commands_without_optional_packages(tmp_path: Path) -> None:
    """`pip install so2docs` brings none of them, but the environment of the tests has all."""
    script = f"""
import importlib.util, sys
for name in {OPTIONAL}:
    sys.modules[name] = None
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name in {OPTIONAL} else find(name, *a)
from so2docs.cli import run
ends = [run(command.split()) for command in sys.argv[1:]]
print(ends, file=sys.stderr)
"""
    shutil.copy(SAMPLES / "posts.xml", tmp_path / "Posts.xml")
    works = [
        "sample site -q",
        "convert Posts.xml out/q.jsonl.gz -q",
        "inspect Posts.xml",
        "inspect out",
        "sqlite site/sample.stackexchange.com.7z databases -q",
        "diff out out changes -q",
        "card out/q.jsonl.gz -q",
    ]
    lacks = ["convert Posts.xml q.parquet", "tables Posts.xml t", "serve q.db", "mcp q.db"]
    (tmp_path / "out").mkdir()
    result = run_python("-c", script, *works, *lacks, cwd=tmp_path, code=0)
    extras = re.findall(r"needs ([\w, -]+): pip install 'so2docs\[(.+)\]'", result.stderr)
    assert [extra for _, extra in extras] == ["parquet", "parquet", "serve", "mcp"]
    for packages, extra in extras:
        for package in packages.split(", "):
            pattern = re.compile(rf"{package}\b.*extra == .{extra}.$")
            assert any(map(pattern.match, requires("so2docs") or ())), (package, extra)
    ends = [0] * len(works) + [2] * len(lacks)
    assert result.stderr.endswith(f"{ends}\n"), result.stderr


def test_packages_that_are_missing_are_named_as_on_pypi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "markdown_it", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(so2docs.OptionError, match=r"pip install markdown-it-py$"):
        require_packages("HTML", "markdown-it-py")
