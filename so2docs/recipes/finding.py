"""The recipe that was asked for: one that comes with the package, or one's own."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from so2docs.errors import OptionError, flag
from so2docs.recipes.answers import MESSAGES, PAIRS, PREFERENCES, QA
from so2docs.recipes.beir import BEIR
from so2docs.recipes.hub import HUB
from so2docs.recipes.parts import BLOCKS, EDITS
from so2docs.recipes.recipe import Recipe
from so2docs.recipes.threads import CHUNKS, THREAD
from so2docs.registry import Registry


def _check_entry_point(name: str, recipe: Any) -> Recipe:
    if not isinstance(recipe, Recipe):
        raise TypeError("it is not a so2docs.Recipe")
    return replace(recipe, name=name)


_OWN = (PREFERENCES, PAIRS, QA, MESSAGES, THREAD, CHUNKS, BLOCKS, EDITS, HUB, BEIR)
RECIPES: Registry[Recipe] = Registry(
    "so2docs.recipes", {recipe.name: recipe for recipe in _OWN}, _check_entry_point
)
"""By name: those that come with the package, and those that others offer as entry points."""

ALIASES = {"dpo": "pairs", "sft": "messages", "rag": "chunks"}
"""What people call that which a recipe is for."""

RecipeLike = str | Recipe | Callable[..., Any]
"""A name, `package.module:name`, or what that names."""


@dataclass(frozen=True, slots=True)
class RecipeChoice:
    """Which recipe makes the records: by name, so that every worker finds it.

    Attributes:
        spec: Name of a recipe, or `package.module:name` of one's own.
        accepted: Whether only accepted answers count.
        settings: Names and values of the options for this recipe alone.
    """

    spec: str
    accepted: bool = False
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def recipe(self) -> Recipe:
        """The recipe itself."""
        return _variant(_load(self.spec), self)

    @property
    def fingerprint(self) -> str:
        """The recipe's name, and for one's own what its module says: it may have been edited."""
        name = self.spec
        if self.recipe.needs_all_questions:
            name += ", accepted"
        if self.spec in RECIPES.own:
            return name
        place, colon, _ = self.spec.partition(":")
        module = importlib.import_module(place if colon else self.recipe.function.__module__)
        path = inspect.getsourcefile(module)
        source = Path(path).read_bytes() if path else b""
        return f"{name} {hashlib.sha256(source).hexdigest()[:12]}"


def choose_recipe(
    recipe_like: RecipeLike, *, accepted: bool = False, **settings: Any
) -> RecipeChoice:
    """The choice that options ask for.

    Args:
        recipe_like: Name of a recipe, `package.module:name`, a `Recipe`, or a function.
        accepted: Whether questions are kept only if they have an accepted answer.
        settings: Options for certain recipes; one that is None or False is not given.

    Raises:
        OptionError: There is no such recipe, workers cannot import it, or an option is not for it.
    """
    if isinstance(recipe_like, str):
        recipe_like = ALIASES.get(recipe_like, recipe_like)
    spec = recipe_like if isinstance(recipe_like, str) else _full_name(recipe_like)
    values = {name: value for name, value in settings.items() if value not in (None, False)}
    choice = RecipeChoice(spec, accepted, tuple(values.items()))
    recipe = choice.recipe
    check_settings(values, recipe)
    if accepted and values.get("best"):
        raise OptionError(
            f"{flag('best', True)} and {flag('accepted', True)} contradict each other; give one"
        )
    if recipe.check is not None:
        recipe.check(**values)
    if not isinstance(recipe_like, str) and _load(spec).function is not _function(recipe_like):
        raise _not_importable(choice.spec, "another function has this name there")
    return choice


def check_settings(settings: Mapping[str, Any], recipe: Recipe | None = None) -> None:
    """Refuse options that are for another recipe.

    Args:
        settings: Options for certain recipes, those that are given.
        recipe: The recipe, if there is one.

    Raises:
        OptionError: One is for another recipe.
    """
    for name, value in settings.items():
        if recipe is None or name not in recipe.settings:
            owner = next(r.name for r in RECIPES.own.values() if name in r.settings)
            raise OptionError(f"{flag(name, value)} needs {flag('recipe', owner)}")


def _variant(recipe: Recipe, choice: RecipeChoice) -> Recipe:
    settings = dict(choice.settings) | ({"accepted": True} if choice.accepted else {})
    for name, variant in recipe.variants.items():
        if settings.pop(name, False):
            recipe = variant
    settings = {name: value for name, value in settings.items() if name in recipe.settings}
    return replace(recipe, function=partial(recipe.function, **settings)) if settings else recipe


def _function(recipe: Recipe | Callable[..., Any]) -> Callable[..., Any]:
    return recipe.function if isinstance(recipe, Recipe) else recipe


def _full_name(recipe_like: Recipe | Callable[..., Any]) -> str:
    for name, recipe in RECIPES.own.items():
        if recipe_like is recipe or recipe_like is recipe.function:
            return name
    function = _function(recipe_like)
    module, name = str(function.__module__), str(function.__qualname__)
    if isinstance(recipe_like, Recipe):
        names = vars(importlib.import_module(module)).items()
        name = next((key for key, value in names if value is recipe_like), name)
    if module == "__main__":
        raise _not_importable(f"{module}:{name}", "it is in the script or notebook itself")
    if "<" in name:
        raise _not_importable(f"{module}:{name}", "it has no name of its own in its module")
    return f"{module}:{name}"


def _not_importable(spec: str, why: str) -> OptionError:
    return OptionError(
        f"recipe {spec}: workers cannot import it: {why}; define it in a module, under its own name"
    )


@cache
def _load(spec: str) -> Recipe:
    module_name, _, name = spec.partition(":")
    if not name and spec in RECIPES:
        return RECIPES[spec]
    if not (module_name and name):
        raise OptionError(
            f"{flag('recipe')} is {spec!r}; it must be one of: {', '.join(RECIPES)}, "
            "or package.module:function of your own"
        )
    try:
        item: Any = importlib.import_module(module_name)
        for part in name.split("."):
            item = getattr(item, part)
    except ImportError as error:
        raise OptionError(f"recipe {spec}: {module_name} cannot be imported: {error}") from error
    except AttributeError as error:
        raise OptionError(f"recipe {spec}: {error}") from error
    if isinstance(item, Recipe):
        return replace(item, name=spec)
    if not callable(item):
        raise OptionError(f"recipe {spec}: is not a function but {type(item).__name__}")
    return Recipe(spec, item)
