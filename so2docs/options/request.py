"""Convert the keywords of a call to `Options` and `RunOptions`.

The spill and the manifest record the fingerprint: the options that determine the output.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from so2docs.errors import did_you_mean
from so2docs.options.choices import Core
from so2docs.options.option import Option, entries, none_of
from so2docs.options.table import (
    ALL_TABLES,
    TRANSFORM_OPTIONS,
    Filters,
    Options,
    OutputForm,
    RunOptions,
    options_of,
)
from so2docs.schema import TABLES

Product = TypeVar("Product")


def read_keywords(kwargs: Mapping[str, Any], allowed: Mapping[str, Option]) -> dict[str, Any]:
    """Check the keywords of a call against the options it takes, and convert their values.

    Returns:
        The values by keyword.

    Raises:
        TypeError: A keyword is unknown.
        OptionError: A value has the wrong type or is not allowed.
    """
    for name in kwargs:
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            raise TypeError(f"got an unexpected keyword argument {name!r}{hint}")
    return {name: allowed[name].read(value) for name, value in kwargs.items()}


def read_options(kind: type[Product], kwargs: Mapping[str, Any]) -> Product:
    """Check the keywords of a call, and build the options of a product from them.

    Raises:
        TypeError: A keyword is unknown.
        OptionError: A value has the wrong type or is not allowed, or two options contradict each
            other.
    """
    return kind(**_attributes(kind, read_keywords(kwargs, options_of(kind))))


def recorded(*parts: Any) -> dict[str, Any]:
    """Return the options that determine a product, by name, as JSON for its provenance."""
    values = {}
    for part in parts:
        kind: type = type(part)
        for entry in entries(kind):
            if entry.decides:
                value = getattr(part, entry.name)
                value = list(value) if isinstance(value, tuple) else value
                values[entry.name] = entry.remember(value) if entry.remember else value
    return values


def recorded_options(options: Options) -> dict[str, Any]:
    """Return the options that determine the output of a conversion, by name, as JSON."""
    return recorded(options.records, options, options.form, options.filters)


def build_options(
    values: Mapping[str, Any],
    form: OutputForm | None = None,
    site_field: tuple[str, str] | None = None,
    *,
    core: Core,
) -> Options:
    """Build the options from the values that `read_keywords` returns.

    Raises:
        OptionError: Two options contradict each other.
    """
    records = TRANSFORM_OPTIONS.of(values)
    transform = records.transform
    given = _attributes(Options, values) | {"core": core, "site": None, "site_field": site_field}
    if given.get("body") is None:
        given["body"] = transform.body
    needed = [*transform.tables]
    if values.get("without_linked"):
        needed.append("links")
    given["nest"] = tables_to_nest([*given.get("nest", ()), *needed], values.get("tables") or ())
    filters, form = Filters(**_attributes(Filters, values)), form or OutputForm()
    if transform.name:
        # Records cannot be looked up by question id, so leave out the index.
        form = dataclasses.replace(form, is_looked_up=False)
        if transform.needs_all_questions:
            filters = dataclasses.replace(filters, accepted=False)
    return Options(form=form, filters=filters, records=records, **given)


def build_run_options(values: Mapping[str, Any]) -> RunOptions:
    """Build the run options from the values that `read_keywords` returns."""
    return RunOptions(**{"tables": {}, **_attributes(RunOptions, values)})


def _attributes(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    return {entry.name: values[entry.name] for entry in entries(kind) if entry.name in values}


def tables_to_nest(nest: Iterable[str], tables: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the tables to nest, in the order in which they are read.

    Args:
        nest: Names of tables, or `all`.
        tables: Tables whose files are named, which are nested too.

    Raises:
        OptionError: There is no such table.
    """
    names = set(nest)
    options = {TABLES[name].file_option for name in names & TABLES.keys()}
    names |= {*tables} - options
    for name in sorted(names - {*TABLES, ALL_TABLES}):
        raise none_of([*TABLES, ALL_TABLES], "nest", name)
    tables_chosen = [
        table
        for name, table in TABLES.items()
        if name in names or (ALL_TABLES in names and table.is_in_all)
    ]
    needed = {table.needs for table in tables_chosen}
    tables_chosen = [t for t in TABLES.values() if t in tables_chosen or t.name in needed]
    # If several tables fill the same key, keep the last, which has the most information.
    by_key = {table.key or table.name: table.name for table in tables_chosen}
    return tuple(table.name for table in tables_chosen if table.name in by_key.values())
