"""Run a function on several sites, and print the results: `show_sites`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import click

from so2docs.extensions.sites.tasks import SiteResult, exit_code, summary
from so2docs.plugin import UP_TO_DATE, say, tell


def show_converted(paths: tuple[str, ...], output_dir: str, **options: Any) -> int:
    """Convert several dumps into a folder; see `show_sites` for the options."""
    from so2docs.extensions.sites.batch import convert_all

    return show_sites(convert_all, paths, output_dir, **options)


def show_each_site(function: Callable[..., Any], *paths: Any, **options: Any) -> int:
    """Call `for_each_site` with a function and the paths; see `show_sites` for the options."""
    from so2docs.extensions.sites.each_site import for_each_site

    return show_sites(partial(for_each_site, function), *paths, **options)


def show_sites(
    function: Callable[..., Any],
    *paths: Any,
    quiet: bool,
    as_json: bool = False,
    is_asked: bool = False,
    **options: Any,
) -> int:
    """Run a function on several sites, and report the results.

    Args:
        function: `convert_all`, or `for_each_site` with a function.
        paths: Dumps or folders for the function.
        quiet: Report failures only.
        as_json: Print all results as JSON.
        is_asked: Whether the user asked for the table, so that it goes to standard output.
        options: Other arguments of the function.

    Returns:
        The exit code.
    """

    def show(result: SiteResult) -> None:
        is_made = result.source and result.state != UP_TO_DATE and not quiet
        if result.error is not None or result.note or is_made:
            say(result)

    results = function(*paths, progress=not quiet, when_done=show, **options)
    if as_json:
        values = [result.as_dict() for result in results]
        click.echo(json.dumps(values, indent=2, ensure_ascii=False))
    elif is_asked:
        click.echo(summary(results))
    elif not quiet:
        tell(summary(results))
    return exit_code(results)
