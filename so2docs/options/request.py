"""From the keywords of a call to what they ask for: `Options` and `RunOptions`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from so2docs.errors import OptionError, flag
from so2docs.options.choices import Core
from so2docs.options.option import Where, did_you_mean, entries
from so2docs.options.table import (
    ALL_TABLES,
    OPTIONS,
    SETTINGS,
    Filters,
    Options,
    OutputForm,
    RunOptions,
    Tables,
    taken_by,
)
from so2docs.recipes.finding import RecipeChoice, check_settings, choose_recipe
from so2docs.schema import TABLES


def validate_keywords(kwargs: Mapping[str, Any], *where: Where) -> dict[str, Any]:
    """Check the names and types of keywords.

    Args:
        kwargs: The keywords.
        where: Who is called: see `Option.where`.

    Returns:
        The keywords, iterators as lists and numbers of other libraries as `int`.

    Raises:
        TypeError: There is no such keyword.
        OptionError: A value has another type.
    """
    allowed = taken_by(*where)
    for name in kwargs:
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            raise TypeError(f"got an unexpected keyword argument {name!r}{hint}")
    return {name: OPTIONS[name].check(value) for name, value in kwargs.items()}


def build_options(
    kwargs: Mapping[str, Any],
    form: OutputForm | None = None,
    site_field: tuple[str, str] | None = None,
    *,
    core: Core,
) -> Options:
    """What keywords, checked by `checked`, ask to be made.

    Args:
        kwargs: The keywords; others are ignored.
        form: In what form files are written.
        site_field: Name and value of a field to add to each document.
        core: What the keyword of this name came to.

    Raises:
        OptionError: A value is not allowed, or two contradict each other.
    """
    values = _values(Options, kwargs)
    choice = find_recipe(kwargs)
    values |= {"recipe": choice, "core": core, "host": None, "site_field": site_field}
    if values.get("body") is None:
        values["body"] = "html" if choice is None else choice.recipe.body
    needed = () if choice is None else choice.recipe.tables
    values["nest"] = tables_to_nest([*values.get("nest", ()), *needed], table_files(kwargs))
    form = form or OutputForm()
    if choice is not None:  # Records are not looked up by the ids of questions.
        form = dataclasses.replace(form, is_looked_up=False)
    filters = build_filters(kwargs)
    if choice is not None and choice.recipe.needs_all_questions:
        filters = dataclasses.replace(filters, accepted=False)
    return Options(form=form, filters=filters, **values)


def build_filters(kwargs: Mapping[str, Any]) -> Filters:
    """The filters that keywords ask for."""
    return Filters(**_values(Filters, kwargs))


def build_run_options(kwargs: Mapping[str, Any]) -> RunOptions:
    """How keywords ask to run."""
    return RunOptions(**_values(RunOptions, kwargs), tables=table_files(kwargs))


def _values(kind: type, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {
        entry.attribute: entry.read(kwargs[entry.name])
        for entry in entries(kind)
        if entry.name in kwargs
    }


def table_files(kwargs: Mapping[str, Any]) -> Tables:
    """Files of tables that keywords name."""
    names = dict.fromkeys(table.file_option for table in TABLES.values())
    return {
        name: OPTIONS[name].read(kwargs[name]) for name in names if kwargs.get(name) is not None
    }


def find_recipe(kwargs: Mapping[str, Any]) -> RecipeChoice | None:
    """The recipe that keywords ask for.

    Raises:
        OptionError: There is no such recipe, or an option needs one.
    """
    settings = {name: OPTIONS[name].read(kwargs[name]) for name in SETTINGS if kwargs.get(name)}
    if (recipe := kwargs.get("recipe")) is None:
        check_settings(settings)
        return None
    return choose_recipe(recipe, accepted=kwargs.get("accepted", False), **settings)


def tables_to_nest(nest: Iterable[str], tables: Tables) -> tuple[str, ...]:
    """Names of the tables to nest, in the order in which they are read.

    Args:
        nest: Names, or `all`.
        tables: Files of tables, which are asked for by that.

    Raises:
        OptionError: There is no such table.
    """
    names = set(nest)
    options = {TABLES[name].file_option for name in names & TABLES.keys()}
    names |= tables.keys() - options
    for name in sorted(names - {*TABLES, ALL_TABLES}):
        raise OptionError(
            f"{flag('nest')} is {name!r}; it must be one or more of: {', '.join(TABLES)}, all"
            + did_you_mean(name, TABLES)
        )
    tables_chosen = [
        table
        for name, table in TABLES.items()
        if name in names or (ALL_TABLES in names and table.is_in_all)
    ]
    # Of tables that fill the same key, the last one tells most.
    by_key = {table.key or table.name: table.name for table in tables_chosen}
    return tuple(table.name for table in tables_chosen if table.name in by_key.values())
