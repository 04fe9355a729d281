"""`so2docs recipes`: the list, and the description of a recipe."""

from __future__ import annotations

import json

import pytest
from support.command import run

from so2docs.options.recipe_choice import ALIASES, RECIPES


def test_lists_every_recipe() -> None:
    result = run("recipes")
    assert (result.returncode, result.stderr) == (0, "")
    heads = [line.partition(": ") for line in result.stdout.splitlines()]
    assert [names.split(" or ")[0] for names, _, _ in heads] == list(RECIPES)
    assert all(summary for _, _, summary in heads)
    assert all(alias in result.stdout for alias in ALIASES)


@pytest.mark.parametrize("name", ["dpo", "chunks", "beir"])
def test_describes_a_recipe(name: str) -> None:
    result = run("recipes", name)
    assert (result.returncode, result.stderr) == (0, "")
    recipe = RECIPES[ALIASES.get(name, name)]
    settings = [f"\n  {setting} [" for setting in recipe.adjustments.by_name]
    assert [setting for setting in settings if setting in result.stdout] == settings
    assert ("settings:" in result.stdout) == bool(settings)
    *_, last = result.stdout.splitlines()
    assert json.loads(last)
    assert result.stdout.count("\n  {") == 1
    if name == "dpo":
        assert "\n  min_margin [1]: Minimum difference" in result.stdout
        assert "\n  chosen: better answer" in result.stdout
