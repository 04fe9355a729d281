"""`so2docs recipes`: list the recipes, or describe one with its settings and a record."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Iterable
from importlib.resources import as_file, files
from typing import Any

import click

from so2docs.errors import did_you_mean
from so2docs.extensions.json_schema import describe_record
from so2docs.extensions.recipes.catalog import ALIASES, NAMES, load_recipe
from so2docs.extensions.recipes.options import choose_recipe
from so2docs.extensions.recipes.recipe import Recipe
from so2docs.plugin import OptionError, allow_any_encoding, command

_SHOWN = 60

SETS: dict[str, tuple[str, dict[str, str]]] = {
    "HuggingFaceH4/stack-exchange-preferences": ("preferences", {}),
    "lvwerra/stack-exchange-paired": ("pairs", {"form": "paired"}),
    "common-pile/stackexchange": ("thread", {}),
    "HuggingFaceTB/stackexchange_2025_md": ("hub", {}),
    "BeIR/cqadupstack": ("beir", {}),
    "sentence-transformers/stackexchange-duplicates": ("duplicates", {}),
}
"""Recipe and settings that give the form of a published set, by the name of the set."""


@command(
    """
    so2docs recipes
    so2docs recipes pairs
    so2docs recipes stack-exchange-paired
    """
)
@click.argument("name", required=False)
def recipes(name: str | None) -> None:
    """List the recipes for convert --recipe, or describe the recipe NAME.

    The description has the settings for --set with their defaults, the columns, and a record from
    the sample, in which long texts are shortened. NAME may also be package.module:name, or the
    name of a published set, or a part of it, for the recipe that rebuilds the set.
    """
    allow_any_encoding()
    if name is None:
        for recipe in map(load_recipe, NAMES):
            click.echo(_title(recipe))
            _list_sets(set_ for set_, (made_by, _) in SETS.items() if made_by == recipe.name)
        return
    # Find recipes in the current folder; at the end, so that no file there replaces a module.
    sys.path.append(os.getcwd())
    settings: dict[str, str] = {}
    if name not in NAMES and name not in ALIASES and ":" not in name:
        sets = [set_ for set_ in SETS if name.lower() in set_.lower()]
        if not sets:
            names = (*NAMES, *ALIASES)
            raise OptionError(
                f"{name!r} is not a recipe or a part of the name of a set; recipes are "
                f"{', '.join(NAMES)}, or package.module:name of your own; docs/rebuild.md has "
                f"sets of tables, such as SQLStorm's{did_you_mean(name, names)}"
            )
        _list_sets(sets)
        if len(sets) > 1:
            return
        click.echo()
        name, settings = SETS[sets[0]]
    _describe(name, settings)


def _list_sets(names: Iterable[str]) -> None:
    for name in names:
        recipe, settings = SETS[name]
        options = "".join(f" --set {key}={value}" for key, value in settings.items())
        click.echo(f"  {name}: --recipe {recipe}{options}")


def _describe(name: str, given: dict[str, str]) -> None:
    choice = choose_recipe(name, given)
    recipe = choice.recipe
    click.echo(_title(recipe))
    settings = [setting.description for setting in recipe.settings]
    for heading, lines in (("settings", settings), ("columns", _columns(recipe))):
        if lines:
            click.echo(f"\n{heading}:")
        for line in lines:
            click.echo(f"  {line}")
    from so2docs import documents

    spec: Any = choice.spec
    with (
        as_file(files("so2docs") / "sample" / "sample.stackexchange.com.7z") as dump,
        documents(dump, recipe=spec, settings=given or None, jobs=1) as records,
    ):
        for record in records:
            click.echo(f"\nrecord:\n  {json.dumps(_shorten(record), ensure_ascii=False)}")
            break


def _title(recipe: Recipe) -> str:
    summary = recipe.summary or inspect.getdoc(recipe.function) or ""
    aliases = [alias for alias, name in ALIASES.items() if name == recipe.name]
    return f"{' or '.join((recipe.name, *aliases))}: {summary.partition(chr(10))[0]}"


def _columns(recipe: Recipe) -> list[str]:
    records = [recipe.record, *(file and file.record for file in recipe.files.values())]
    columns: dict[str, Any] = {}
    for record in filter(None, records):
        for name, schema in describe_record(record)["properties"].items():
            columns.setdefault(name, schema)
    return [f"{name}: {kind.get('description', '')}".rstrip(": ") for name, kind in columns.items()]


def _shorten(value: object) -> object:
    """Copy a value with long texts shortened and lists cut to one entry."""
    if isinstance(value, str):
        return value if len(value) <= _SHOWN else f"{value[: _SHOWN - 1]}…"
    if isinstance(value, dict):
        return {key: _shorten(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_shorten(member) for member in value[:1]] + ["…"] * (len(value) > 1)
    return value
