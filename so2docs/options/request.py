"""From the keywords of a call to the `Options` of a conversion."""

from __future__ import annotations

import dataclasses
import operator
import os
from collections.abc import Iterable, Mapping
from datetime import date
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from so2docs.errors import OptionError, flag
from so2docs.options.choices import Core
from so2docs.options.conversion import Options
from so2docs.options.filters import filters_of
from so2docs.options.keywords import FilterKeywords, Tables
from so2docs.options.output_form import OutputForm, form_of
from so2docs.options.sizes import size
from so2docs.recipes.finding import RecipeChoice, choice_of
from so2docs.schema import TABLES

ALL_TABLES = "all"

_FORM = ("format", "compression", "index", "split", "split_by")
_FILTERS = get_type_hints(FilterKeywords)
_OPTIONS = {field.name for field in dataclasses.fields(Options)}
_NAMES = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    date: "a date",
    os.PathLike: "a path",
    Iterable: "a list of texts",
    Mapping: "a dictionary",
}
"""Types that are checked, and what they are called."""


def checked(given: Mapping[str, Any], allowed: type) -> dict[str, Any]:
    """Check the names and types of keywords.

    Args:
        given: The keywords.
        allowed: The `TypedDict` that has them.

    Returns:
        The keywords, iterators as lists and numbers of other libraries as `int`.

    Raises:
        TypeError: There is no such keyword.
        OptionError: A value is of another type.
    """
    hints = get_type_hints(allowed)
    for name in given:
        if name not in hints:
            raise TypeError(f"got an unexpected keyword argument {name!r}")
    return {name: _checked(name, value, hints[name]) for name, value in given.items()}


def _checked(name: str, value: Any, hint: Any) -> Any:
    alternatives = get_args(hint) if get_origin(hint) is UnionType else (hint,)
    kinds = [get_origin(kind) or kind for kind in alternatives if kind is not type(None)]
    if (value is None and len(kinds) < len(alternatives)) or not _NAMES.keys() >= set(kinds):
        return value  # Of literals, their own check says which there are.
    if Iterable in kinds and isinstance(value, Iterable) and not isinstance(value, str):
        value = list(value)
    if int in kinds and hasattr(value, "__index__") and not isinstance(value, bool):
        value = operator.index(value)
    if not any(_is_a(value, kind) for kind in kinds):
        wanted = " or ".join(dict.fromkeys(_NAMES[kind] for kind in kinds))
        raise OptionError(f"{flag(name)} is {value!r}; it must be {wanted}")
    return value


def _is_a(value: object, kind: Any) -> bool:
    if kind is Iterable:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    return isinstance(value, kind)


def output_form(path: str, given: Mapping[str, Any]) -> OutputForm:
    """The form of an output, by its name and the keywords."""
    return form_of(path, **{name: given.get(name) for name in _FORM})


def options_of(
    given: Mapping[str, Any],
    form: OutputForm | None = None,
    site_field: tuple[str, str] | None = None,
    *,
    core: Core,
) -> Options:
    """The options that keywords, checked by `checked`, ask for.

    Args:
        given: The keywords; those that are no options, such as `force`, are left to others.
        form: In what form files are written.
        site_field: Name and value of a field to add to each document.
        core: What the keyword of this name came to.

    Raises:
        OptionError: A value is not allowed, or two contradict each other.
    """
    rest = {name: value for name, value in given.items() if name in _OPTIONS}
    rest["spill_budget"] = _spill_budget(given.get("spill_budget"))
    choice = recipe_of(given)
    rest["recipe"] = choice
    if rest.get("body") is None:
        rest["body"] = "html" if choice is None else choice.recipe.body
    nest = given.get("nest", ())
    needed = () if choice is None else choice.recipe.tables
    rest["nest"] = tables_to_nest(
        [*([nest] if isinstance(nest, str) else nest), *needed], given.get("tables") or {}
    )
    filters: Any = {name: value for name, value in given.items() if name in _FILTERS}
    if choice is not None and choice.recipe.needs_all_questions:
        filters.pop("accepted", None)
    rest["core"] = core
    rest["form"] = form = form or OutputForm()
    if choice is not None:  # Records are not looked up by the ids of questions.
        rest["form"] = dataclasses.replace(form, is_looked_up=False)
    return Options(filters=filters_of(**filters), site_field=site_field, **rest)


def _spill_budget(given: str | int | None) -> int | None:
    budget = None if given is None else size(given)
    if given is not None and budget is None:
        raise OptionError(
            f"{flag('spill_budget')} is {given!r}; it must be a size such as 2GB, or 0"
        )
    return budget


def recipe_of(given: Mapping[str, Any]) -> RecipeChoice | None:
    """The recipe that keywords ask for.

    Raises:
        OptionError: There is no such recipe, or an option needs one.
    """
    recipe, best = given.get("recipe"), given.get("best", False)
    if recipe is None:
        if best:
            raise OptionError(f"{flag('best', True)} is for {flag('recipe', 'qa')}")
        return None
    return choice_of(recipe, accepted=given.get("accepted", False), best=best)


def tables_to_nest(nest: Iterable[str], tables: Tables) -> tuple[str, ...]:
    """Names of the tables to nest, in the order in which they are read.

    Args:
        nest: Names, or `all`.
        tables: Files of tables, which are asked for by that.

    Raises:
        OptionError: There is no such table.
    """
    wanted = {nest} if isinstance(nest, str) else set(nest)
    for name in sorted({*wanted, *tables} - {*TABLES, ALL_TABLES}):
        raise OptionError(f"there is no table {name!r} to nest; choose of {', '.join(TABLES)}, all")
    wanted |= {name for name, path in tables.items() if path is not None}
    return tuple(name for name in TABLES if name in wanted or ALL_TABLES in wanted)
