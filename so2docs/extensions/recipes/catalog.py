"""The recipes of this package by name, each imported when it is first used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module

from so2docs.options.recipe import Recipe

_MODULES = {
    "preferences": "answers",
    "pairs": "answers",
    "triplets": "answers",
    "texts": "embeddings",
    "qa": "answers",
    "messages": "answers",
    "thread": "threads",
    "chunks": "threads",
    "blocks": "parts",
    "edits": "parts",
    "hub": "hub",
    "beir": "beir",
    "duplicates": "duplicates",
}
"""Module of each recipe; the name of the recipe in capitals is its name there."""


class _Recipes(Mapping[str, Recipe]):
    def __getitem__(self, name: str) -> Recipe:
        return _load(name)

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


@cache
def _load(name: str) -> Recipe:
    module = import_module(f"so2docs.extensions.recipes.{_MODULES[name]}")
    recipe: Recipe = getattr(module, name.upper())
    return recipe


RECIPES: Mapping[str, Recipe] = _Recipes()
