"""An option is one entry of the table; everything else is derived from it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import click
import pytest
from click.shell_completion import CompletionItem, ShellComplete
from click.testing import CliRunner

from so2docs import convert
from so2docs.cli import cli
from so2docs.commands.options import add_options
from so2docs.errors import OptionError
from so2docs.extensions.changes.options import ReplaceOptions
from so2docs.options.option import at_least, option
from so2docs.options.request import read_options, recorded
from so2docs.options.signatures import spell_out
from so2docs.options.table import GROUPS, OPTIONS, options_of


def test_every_entry_is_a_flag_and_a_keyword() -> None:
    command = cli.get_command(click.Context(cli), "convert")
    assert command is not None
    flags = {param.name for param in command.params}
    assert flags >= OPTIONS.keys() - {"progress"}
    assert inspect.signature(convert).parameters.keys() >= OPTIONS.keys()


@pytest.mark.parametrize(
    ("words", "items"),
    [
        ("co", ["convert", "completion"]),
        ("convert --min-s", ["--min-score"]),
        ("convert --recipe pre", ["preferences"]),
        ("convert --recipe sf", ["sft"]),
        ("tables dump --only posts,com", ["posts,comments"]),
        ("convert --nest comments,v", ["comments,votes"]),
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
        assert entry.decides or entry.remember is None, name


def test_an_option_of_a_product_is_declared_once() -> None:
    """A new field arrives in the flags, keyword types, docstrings, checks and records."""

    @dataclass(frozen=True, slots=True)
    class WithSeed(ReplaceOptions):
        seed: int | None = option("Input", "Seed of the dice.", parse=at_least(1))

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
    @add_options(options_of(WithSeed))
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
