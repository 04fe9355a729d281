"""`so2docs recipes`: list the recipes, or describe one with its settings and a record."""

from __future__ import annotations

import inspect
import json
import os
import sys
from importlib.resources import as_file, files
from typing import Any

import click

from so2docs.commands.options import command
from so2docs.commands.terminal import allow_any_encoding
from so2docs.options.recipe import Recipe
from so2docs.options.recipe_choice import ALIASES, RECIPES, choose_recipe

_SHOWN = 60


@command(
    """
    so2docs recipes
    so2docs recipes pairs
    """
)
@click.argument("name", required=False)
def recipes(name: str | None) -> None:
    """List the recipes for convert --recipe, or describe the recipe NAME.

    The description has the settings for --set with their defaults, the columns, and a record from
    the sample, in which long texts are shortened. NAME may also be package.module:name.
    """
    allow_any_encoding()
    if name is None:
        for recipe in map(RECIPES.__getitem__, RECIPES):
            click.echo(f"{_title(recipe)}")
        return
    # Find recipes in the current folder; at the end, so that no file there replaces a module.
    sys.path.append(os.getcwd())
    choice = choose_recipe(name)
    recipe = choice.recipe
    click.echo(_title(recipe))
    settings = [setting.description for setting in recipe.adjustments.settings]
    for heading, lines in (("settings", settings), ("columns", _columns(recipe))):
        if lines:
            click.echo(f"\n{heading}:")
        for line in lines:
            click.echo(f"  {line}")
    click.echo("\nrecord:")
    _show_record(choice.spec)


def _title(recipe: Recipe) -> str:
    summary = recipe.description.summary or inspect.getdoc(recipe.function) or ""
    aliases = [alias for alias, name in ALIASES.items() if name == recipe.name]
    return f"{' or '.join((recipe.name, *aliases))}: {summary.partition(chr(10))[0]}"


def _columns(recipe: Recipe) -> list[str]:
    schemas = [recipe.schema or {}, *recipe.description.schemas.values()]
    names = dict.fromkeys(name for schema in schemas for name in schema.get("properties", ()))
    return [f"{name}: {recipe.description.meanings.get(name, '')}".rstrip(": ") for name in names]


def _show_record(spec: Any) -> None:
    from so2docs.api.documents import documents

    with (
        as_file(files("so2docs") / "sample" / "sample.stackexchange.com.7z") as dump,
        documents(dump, recipe=spec, jobs=1) as records,
    ):
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
