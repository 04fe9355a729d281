"""The recipes of this package by name, each imported when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from so2docs.extensions.recipes.recipe import Recipe

_MODULES = {
    "preferences": "answers",
    "pairs": "answers",
    "qa": "answers",
    "messages": "answers",
    "thread": "threads",
    "chunks": "threads",
    "hub": "hub",
    "beir": "beir",
    "duplicates": "duplicates",
}
"""Module of each recipe, in which its name in capitals is the recipe."""

NAMES = tuple(_MODULES)
"""Names of the recipes, in the order of lists."""

ALIASES = {"dpo": "pairs", "sft": "messages", "rag": "chunks", "cqadupstack": "beir"}
"""Recipes by other common names: the purpose of the records, or the set that people know."""


def load_recipe(name: str) -> Recipe:
    """Import a recipe of this package."""
    module = import_module(f"so2docs.extensions.recipes.{_MODULES[name]}")
    recipe: Recipe = getattr(module, name.upper())
    return recipe
