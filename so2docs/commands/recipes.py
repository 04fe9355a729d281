"""`so2docs recipes`: list the recipes, each with an example of a record."""

from __future__ import annotations

import inspect
import json
from importlib.resources import as_file, files

import click

from so2docs.commands.options import command
from so2docs.commands.terminal import allow_any_encoding
from so2docs.recipes.finding import ALIASES, RECIPES, SUMMARIES

_SHOWN = 60


@command("so2docs recipes")
def recipes() -> None:
    """List the recipes for so2docs convert --recipe, each with a record from the sample.

    Long texts in the records are shortened.
    """
    from so2docs.api.convert import documents

    allow_any_encoding()
    sample = files("so2docs") / "sample" / "beer.stackexchange.com.7z"
    with as_file(sample) as dump:
        for name in RECIPES:
            names = [name, *(alias for alias, recipe in ALIASES.items() if recipe == name)]
            summary = SUMMARIES.get(name) or inspect.getdoc(RECIPES[name].function) or ""
            click.echo(f"{' or '.join(names)}: {summary.partition(chr(10))[0]}")
            with documents(dump, recipe=name, jobs=1) as records:
                for record in records:
                    click.echo(f"  {json.dumps(_shorten(record), ensure_ascii=False)}")
                    break


def _shorten(value: object) -> object:
    """Copy a value with long texts shortened and lists cut to one entry."""
    if isinstance(value, str):
        return value if len(value) <= _SHOWN else f"{value[: _SHOWN - 1]}…"
    if isinstance(value, dict):
        return {key: _shorten(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_shorten(member) for member in value[:1]] + ["…"] * (len(value) > 1)
    return value
