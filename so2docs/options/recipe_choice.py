"""Find the requested recipe: one of this package, or of the user."""

from __future__ import annotations

import hashlib
import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from so2docs.errors import OptionError, did_you_mean, flag
from so2docs.options.recipe import BEST, QUERIES_UNTIL, Recipe
from so2docs.registry import find_hook

RECIPES: Mapping[str, Recipe] = find_hook("recipes")
"""The recipes of this package by name."""

ALIASES = {"dpo": "pairs", "sft": "messages", "rag": "chunks"}
"""Recipes by other common names, after the purpose of the records."""

RECIPE_OPTIONS = ("accepted", "drop_users")
"""Options of a conversion that change the records of some recipes; see `Adjustments.options`."""

RecipeLike = str | Recipe | Callable[..., Any]
"""The name of a recipe, `package.module:name`, or the recipe or function itself."""


@dataclass(frozen=True, slots=True)
class RecipeChoice:
    """A choice of a recipe by name, so that every worker can find it.

    Attributes:
        spec: Name of a recipe, or `package.module:name` for a recipe of the user.
        options: Names of the given options among `RECIPE_OPTIONS`.
        settings: Settings that differ from the defaults, by name.
        left_out: Columns to leave out of the records.
    """

    spec: str
    options: tuple[str, ...] = ()
    settings: tuple[tuple[str, Any], ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def recipe(self) -> Recipe:
        """The chosen recipe, with the settings and the changes to its columns applied."""
        recipe = _variant(_load(self.spec), self)
        return recipe.without(self.left_out) if self.left_out else recipe

    @property
    def identified_settings(self) -> dict[str, Any]:
        """The settings in the form that outputs record."""
        known = _load(self.spec).adjustments.by_name
        identify = {name: known[name].identify for name, _ in self.settings}
        return {
            name: value if (identified := identify[name]) is None else identified(value)
            for name, value in self.settings
        }

    @property
    def fingerprint(self) -> str:
        """The recipe's name; for recipes outside this package, also a hash of the module."""
        name = self.spec
        if self.recipe.needs_all_questions:
            name += ", accepted"
        if self.spec in RECIPES:
            return name
        place, colon, _ = self.spec.partition(":")
        module = importlib.import_module(place if colon else self.recipe.function.__module__)
        path = inspect.getsourcefile(module)
        source = Path(path).read_bytes() if path else b""
        return f"{name} {hashlib.sha256(source).hexdigest()[:12]}"


def find_recorded(spec: str | None, settings: Mapping[str, Any]) -> Recipe | None:
    """Return the recipe of an output; None for documents, and for a user's own recipe.

    Args:
        spec: Name of the recipe, if any.
        settings: Settings in the form that outputs record.
    """
    if spec is None or spec not in RECIPES:
        return None
    return RecipeChoice(spec, settings=tuple(settings.items())).recipe


def choose_recipe(
    recipe_like: RecipeLike,
    settings: Mapping[str, Any] | None = None,
    options: tuple[str, ...] = (),
) -> RecipeChoice:
    """Find a recipe, and check its settings.

    Args:
        recipe_like: Name of a recipe, `package.module:name`, a `Recipe`, or a function.
        settings: Values of settings by name, as text or with their type.
        options: Names of the given options among `RECIPE_OPTIONS`, which any recipe allows.

    Raises:
        OptionError: The recipe is unknown, workers cannot import it, or it does not have one of the
            settings or does not allow its value.
    """
    if not (isinstance(recipe_like, str | Recipe) or callable(recipe_like)):
        raise OptionError(
            f"{flag('recipe')} is {recipe_like!r}; it must be a name, a Recipe or a function"
        )
    if isinstance(recipe_like, str):
        recipe_like = ALIASES.get(recipe_like, recipe_like)
    spec = recipe_like if isinstance(recipe_like, str) else _full_name(recipe_like)
    values = _read_settings(_load(spec), settings or {})
    choice = RecipeChoice(spec, options, tuple(values.items()))
    recipe = choice.recipe
    if "accepted" in options and values.get("best"):
        raise OptionError(
            f"{flag('settings', 'best=true')} and {flag('accepted', True)} contradict each other; "
            "give one of them"
        )
    if (check := recipe.adjustments.check) is not None:
        check(**values)
    if not isinstance(recipe_like, str) and _load(spec).function is not _function(recipe_like):
        raise _not_importable(choice.spec, "another function has this name in the module")
    return choice


def _read_settings(recipe: Recipe, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that differ from the defaults, in the order of their declaration.

    Raises:
        OptionError: The recipe does not have a setting, or does not allow its value.
    """
    known = recipe.adjustments.by_name
    for name, value in given.items():
        if name not in known:
            has = f"it has: {', '.join(known)}" if known else "it has no settings"
            raise OptionError(
                f"{flag('settings', f'{name}={value}')}: recipe {recipe.name} has no such setting; "
                f"{has}{did_you_mean(name, known)}"
            )
    values = {}
    for name, setting in known.items():
        if given.get(name) is None:
            continue
        try:
            value = setting.read(given[name])
        except ValueError as error:
            raise OptionError(f"{flag('settings')} {name} of {recipe.name} {error}") from None
        if value != setting.default:
            values[name] = value
    return values


def _variant(recipe: Recipe, choice: RecipeChoice) -> Recipe:
    values = dict(choice.settings) | dict.fromkeys(choice.options, True)
    given = {name if value is True else f"{name}={value}": name for name, value in values.items()}
    while key := next((key for key in recipe.adjustments.variants if key in given), None):
        del values[given.pop(key)]
        recipe = replace(recipe, **recipe.adjustments.variants[key])
    if not values:  # Most choices; this is asked 29 times in a conversion.
        return recipe
    if not recipe.adjustments.needs_all_answers:
        recipe = replace(recipe, best_only=values.pop(BEST.name, recipe.best_only))
    recipe = replace(recipe, later_until=values.get(QUERIES_UNTIL.name))
    names = {*recipe.adjustments.by_name, *recipe.adjustments.options}
    values = {name: value for name, value in values.items() if name in names}
    return replace(recipe, function=partial(recipe.function, **values)) if values else recipe


def _function(recipe: Recipe | Callable[..., Any]) -> Callable[..., Any]:
    return recipe.function if isinstance(recipe, Recipe) else recipe


def _full_name(recipe_like: Recipe | Callable[..., Any]) -> str:
    for name in RECIPES:
        recipe = RECIPES[name]
        if recipe_like is recipe or recipe_like is recipe.function:
            return name
    function = _function(recipe_like)
    module, name = str(function.__module__), str(function.__qualname__)
    if isinstance(recipe_like, Recipe):
        names = vars(importlib.import_module(module)).items()
        name = next((key for key, value in names if value is recipe_like), name)
    if module == "__main__":
        raise _not_importable(f"{module}:{name}", "it is defined in the script or notebook itself")
    if "<" in name:
        raise _not_importable(f"{module}:{name}", "it has no name in its module")
    return f"{module}:{name}"


def _not_importable(spec: str, why: str) -> OptionError:
    return OptionError(
        f"recipe {spec}: workers cannot import it, because {why}; define it by name in a module"
    )


@cache
def _load(spec: str) -> Recipe:
    module_name, _, name = spec.partition(":")
    if not name and spec in RECIPES:
        return RECIPES[spec]
    if not (module_name and name):
        raise OptionError(
            f"{flag('recipe')} is {spec!r}; it must be one of: {', '.join(RECIPES)}, "
            "or package.module:function of your own" + did_you_mean(spec, [*RECIPES, *ALIASES])
        )
    try:
        item: Any = importlib.import_module(module_name)
        for part in name.split("."):
            item = getattr(item, part)
    except ImportError as error:
        raise OptionError(
            f"recipe {spec}: {module_name} cannot be imported: {error}; check its name, and "
            "install it or put it into the current folder"
        ) from error
    except AttributeError as error:
        raise OptionError(f"recipe {spec}: {error}; check the name after the colon") from error
    if isinstance(item, Recipe):
        return replace(item, name=spec)
    if not callable(item):
        kind = type(item).__name__
        raise OptionError(f"recipe {spec}: is not a function but {kind}; give one by name")
    return Recipe(spec, item)
