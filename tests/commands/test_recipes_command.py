"""`so2docs recipes`: the list, and the description of a recipe."""

from __future__ import annotations

import json

import pytest
from support.command import run

from so2docs.extensions.recipes.catalog import ALIASES, NAMES, load_recipe
from so2docs.extensions.recipes.options import choose_recipe
from so2docs.extensions.recipes.recipes_command import SETS


def test_lists_every_recipe() -> None:
    result = run("recipes")
    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.partition(": ") for line in result.stdout.splitlines()]
    heads = [line for line in lines if not line[0].startswith("  ")]
    assert [names.split(" or ")[0] for names, _, _ in heads] == list(NAMES)
    assert all(summary for _, _, summary in heads)
    assert all(alias in result.stdout for alias in ALIASES)
    assert [name.strip() for name, _, _ in lines if name.startswith("  ")] == sorted(
        SETS, key=lambda name: NAMES.index(SETS[name][0])
    )


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("stack-exchange-paired", "--recipe pairs --set form=paired"),
        ("CQADupStack", "--recipe beir"),
        ("stackexchange-duplicates", "--recipe duplicates"),
    ],
)
def test_finds_the_recipe_of_a_set(name: str, command: str) -> None:
    result = run("recipes", name)
    assert (result.returncode, result.stderr) == (0, "")
    first, _, head, *_ = result.stdout.splitlines()
    assert first.lower().startswith("  ")
    assert name.lower() in first.lower()
    assert first.endswith(f": {command}")
    assert head.startswith(command.split()[1])
    if name == "stack-exchange-paired":
        assert "\n  response_j: better answer" in result.stdout
        assert '"response_k": "' in result.stdout


def test_lists_the_sets_that_a_word_names() -> None:
    result = run("recipes", "stackexchange")
    assert (result.returncode, result.stderr) == (0, "")
    assert len(result.stdout.splitlines()) == 3
    assert all("stackexchange" in line for line in result.stdout.splitlines())


def test_every_set_has_a_recipe_with_its_settings() -> None:
    for recipe, settings in SETS.values():
        assert choose_recipe(recipe, settings).settings == tuple(settings.items())


def test_an_unknown_name() -> None:
    for name, hint in (
        ("kto", "docs/rebuild.md has sets of tables, such as SQLStorm's\n"),
        ("prefrences", "did you mean preferences?\n"),
    ):
        result = run("recipes", name)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.startswith(f"so2docs: {name!r} is not a recipe or a part of the name")
        assert result.stderr.endswith(hint)
        assert "--recipe" not in result.stderr


@pytest.mark.parametrize("name", ["dpo", "chunks", "beir"])
def test_describes_a_recipe(name: str) -> None:
    result = run("recipes", name)
    assert (result.returncode, result.stderr) == (0, "")
    recipe = load_recipe(ALIASES.get(name, name))
    settings = [f"\n  {setting} [" for setting in recipe.settings_by_name]
    assert [setting for setting in settings if setting in result.stdout] == settings
    assert ("settings:" in result.stdout) == bool(settings)
    *_, last = result.stdout.splitlines()
    assert json.loads(last)
    assert result.stdout.count("\n  {") == 1
    if name == "dpo":
        assert "\n  min_margin [1]: Minimum difference" in result.stdout
        assert "\n  chosen: better answer" in result.stdout
