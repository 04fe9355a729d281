"""Resolve the options of a conversion against its dump: its host, and the tables to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from so2docs.dump.source import Source
from so2docs.errors import OptionError, flag
from so2docs.options.request import build_options, tables_to_nest
from so2docs.options.sites import checked_host, published_host
from so2docs.options.table import Options, OutputForm
from so2docs.parse.core import choose_core
from so2docs.pipeline.tasks import find_step
from so2docs.progress import log
from so2docs.schema import TABLES


def options_for(
    source: Source, values: Mapping[str, Any], form: OutputForm | None = None
) -> Options:
    """Build the options of a conversion from their values; look for its host and tables."""
    site, field = values.get("site"), values.get("site_field")
    site_field = None if field is None else (field, source.site() if site is None else site)
    options = build_options(values, form, site_field, core=choose_core(values.get("core", "auto")))
    source.check_exists()
    if site is not None and (options.is_attributed or field is None):
        host: str | None = checked_host(site)
    else:
        host = published_host(site) or source.published_host()
    if options.is_attributed or options.body == "markdown" or options.filters.as_of is not None:
        options = replace(options, site=host)
    if options.is_attributed and host is None:
        raise OptionError(
            f"the host name of the site cannot be derived from {source.site()!r}; give it, as in "
            f"{flag('site', 'beer.stackexchange.com')}, or put the dump into a folder of that name"
        )
    options = _choose_tables(source, values, options)
    transform = options.transform
    optional = [name for name in transform.optional_tables if name not in options.nest]
    present = source.select_present(optional)
    for name in sorted({*optional} - {*present}):
        log.info(
            "recipe %s: records do not contain the %s, which were not found",
            transform.name,
            name,
        )
    return replace(options, nest=tables_to_nest([*options.nest, *present], {}))


def _choose_tables(source: Source, values: Mapping[str, Any], options: Options) -> Options:
    """Add the tables that a step needs; leave out missing tables with `if_present`."""
    step = find_step(options)
    consequences = {} if step is None else step.tables
    nested = {TABLES[name].file for name in options.nest}
    needed = [name for name in consequences if TABLES[name].file not in nested]
    if options.if_present:
        required = {*(values.get("tables") or ()), *options.transform.tables}
        wanted = [
            name
            for name in (*options.nest, *needed)
            if not {name, TABLES[name].file_option} & required
        ]
        missing = {*wanted} - {*source.select_present(wanted)}
        missing |= {name for name in options.nest if TABLES[name].needs in missing}
        for name in sorted(missing):
            if name in options.nest:
                log.warning("the dump has no %s; they are not nested", name)
            else:
                log.warning("the dump has no %s; %s", TABLES[name].file, consequences[name])
        nest = tuple(name for name in options.nest if name not in missing)
        absent = tuple(name for name in options.nest if name in missing)
        needed = [name for name in needed if name not in missing]
        recorded = tuple(sorted(missing))
        options = replace(options, nest=nest, absent=absent, if_present=recorded)
    elif needed:
        for name in sorted({*needed} - {*source.select_present(needed)}):
            raise OptionError(
                f"{flag('as_of')} needs {TABLES[name].file}, which is neither in the dump "
                "nor next to it; put it next to the dump"
            )
    if step is not None:
        optional = [name for name in step.optional_tables if name not in options.nest]
        step_tables = (*needed, *source.select_present(optional))
        options = replace(options, step_tables=step_tables)
        step.check(options, source.site())
    return options
