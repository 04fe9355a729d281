"""An option is one entry of the table; everything else is derived from it."""

from __future__ import annotations

import ast
import inspect
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete
from click.testing import CliRunner
from support.command import run_python
from support.places import CHECKOUT, SAMPLES

from so2docs.cli import cli
from so2docs.commands.options import product_options
from so2docs.errors import OptionError
from so2docs.extensions.changes.options import ReplaceOptions
from so2docs.options.option import at_least, option
from so2docs.options.request import read_options, recorded
from so2docs.options.signatures import spell_out
from so2docs.options.table import GROUPS, OPTIONS, options_of

BEFORE = "    answered: bool = _filter("
ENTRY = """\
    max_score: int | None = _filter("Keep questions with this score or less.")
"""
RESUME = """
import sys, so2docs
so2docs.convert(sys.argv[1], "q.jsonl")
try:
    so2docs.convert(sys.argv[1], "q.jsonl", max_score=3)
except so2docs.OutputExistsError as error:
    print(error)
try:
    so2docs.convert(sys.argv[1], "q.jsonl", max_score="many")
except ValueError as error:
    print(error)
try:
    so2docs.convert(sys.argv[1], "q.jsonl", max_scor=3)
except TypeError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def with_another(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with an additional option in its table, after `make docs`."""
    folder = tmp_path_factory.mktemp("copy")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "so2docs", folder / "so2docs", ignore=ignored)
    shutil.copytree(CHECKOUT / "tests" / "support", folder / "tests" / "support", ignore=ignored)
    (folder / "docs").mkdir()
    shutil.copy(CHECKOUT / "docs" / "options.md", folder / "docs")
    table = folder / "so2docs" / "options" / "table.py"
    text = table.read_text(encoding="utf-8")
    assert text.count(BEFORE) == 1
    table.write_text(text.replace(BEFORE, ENTRY + BEFORE), encoding="utf-8")
    for name in ("so2docs/options/keywords.py", "docs/options.md"):
        python(folder, "-m", "cogapp", "-r", "-I", "tests", name)
    return folder


def python(folder: Path, *arguments: object, **variables: str) -> str:
    """Run Python in a folder, whose modules take precedence, and return what it prints."""
    result = run_python(
        *arguments,
        cwd=folder,
        env={"PYTHONPATH": str(folder), "COLUMNS": "80", **variables},
        code=None,
    )
    return result.stdout + result.stderr


def test_every_option_is_in_the_help_of_the_command(with_another: Path) -> None:
    text = python(with_another, "-m", "so2docs", "convert", "--help")
    filters = text.partition("Filters:")[2].partition("Documents:")[0]
    assert "--max-score N Keep questions with this score or less." in " ".join(filters.split())


def test_every_option_is_in_the_help_of_the_library(with_another: Path) -> None:
    for name in ("convert", "convert_all", "documents"):
        text = python(with_another, "-c", f"import so2docs; help(so2docs.{name})")
        assert "max_score: 'int | None' = None" in text or "max_score: int | None = None" in text
        assert "max_score: Keep questions with this score or less." in text


def test_it_is_a_typed_keyword_and_in_the_docs(with_another: Path) -> None:
    keywords = (with_another / "so2docs/options/keywords.py").read_text(encoding="utf-8")
    declared = {
        kind.name: ast.unparse(entry.annotation)
        for kind in ast.parse(keywords).body
        if isinstance(kind, ast.ClassDef)
        for entry in kind.body
        if isinstance(entry, ast.AnnAssign) and ast.unparse(entry.target) == "max_score"
    }
    assert declared == {"PartKeywords": "int | None"}
    assert "--max-score N" in (with_another / "docs/options.md").read_text(encoding="utf-8")


def test_an_output_with_another_value_is_refused_and_errors_name_it(with_another: Path) -> None:
    output, value, name = python(with_another, "-c", RESUME, SAMPLES / "posts.xml").splitlines()
    assert "made with other options (without max_score)" in output
    assert value.startswith("max_score is 'many'; ")
    assert name.endswith(" 'max_scor'; did you mean max_score?")
    command = ("-m", "so2docs", "convert", SAMPLES / "posts.xml", "--max-score", "many")
    text = python(with_another, *command)
    assert text.startswith("so2docs: --max-score is 'many'; ")


def test_shells_complete_it(with_another: Path) -> None:
    words = {"COMP_WORDS": "so2docs convert --max-s", "COMP_CWORD": "2"}
    command = "from so2docs.cli import cli; cli(prog_name='so2docs')"
    text = python(with_another, "-c", command, _SO2DOCS_COMPLETE="bash_complete", **words)
    assert text == "plain,--max-score\n"
    words = {"COMP_WORDS": "so2docs convert --nest comments,v", "COMP_CWORD": "3"}
    text = python(with_another, "-c", command, _SO2DOCS_COMPLETE="bash_complete", **words)
    assert text == "plain,comments,votes\n"


@pytest.mark.parametrize(
    ("words", "items"),
    [
        ("convert --recipe pre", ["preferences"]),
        ("convert --recipe sf", ["sft"]),
        ("tables dump --only posts,com", ["posts,comments"]),
        ("convert --work-dir x", ["x"]),
    ],
)
def test_values_are_completed(words: str, items: list[str]) -> None:
    assert [item.value for item in _complete(words)] == items


def _complete(words: str) -> list[CompletionItem]:
    *arguments, incomplete = words.split(" ")
    return ShellComplete(cli, {}, "so2docs", "_").get_completions(arguments, incomplete)


def test_each_entry_is_whole() -> None:
    for name, entry in OPTIONS.items():
        assert entry.group in GROUPS
        assert entry.summary.endswith("."), name
        assert name == name.lower()
        assert entry.decides != "run" or entry.remember is None, name


def test_an_option_of_a_product_is_declared_once() -> None:
    """A new field arrives in the flags, keyword types, docstrings, checks and records."""

    @dataclass(frozen=True, slots=True)
    class WithSeed(ReplaceOptions):
        seed: int | None = option("Run", "output", "Seed of the dice.", parse=at_least(1))

    @spell_out(options_of(WithSeed))
    def roll(dump: str, **keywords: Any) -> WithSeed:
        """Roll.

        Args:
            dump: The dump.
            keywords: The options.

        Returns:
            The options.
        """
        return read_options(WithSeed, keywords)

    @click.command()
    @product_options(WithSeed)
    def command(**keywords: Any) -> None:
        click.echo(recorded(roll("", **keywords)))

    assert recorded(roll("", seed=3)) == {"seed": 3}
    for wrong in ("x", 0):
        with pytest.raises(OptionError, match="seed is "):
            roll("", seed=wrong)
    assert "seed: Seed of the dice." in (inspect.getdoc(roll) or "")
    assert "seed" in inspect.signature(roll).parameters
    run = CliRunner().invoke(command, ["--seed", "4"])
    assert "'seed': 4" in run.output
    assert "--seed N" in CliRunner().invoke(command, ["--help"]).output
