"""Run a function on several sites, and print the results: `show_sites`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import click

from so2docs.extensions.sites.each_site import for_each_site
from so2docs.extensions.sites.tasks import SiteResult, exit_code, summary
from so2docs.plugin import UP_TO_DATE, say, tell


def show_sites(
    function: Callable[..., Any],
    *paths: Any,
    quiet: bool,
    as_json: bool = False,
    is_asked: bool = False,
    **options: Any,
) -> int:
    """Run a function on several sites with `for_each_site`, and report the results.

    Args:
        function: The function.
        paths: Dumps or folders for the function, and the folder for files.
        quiet: Report failures only.
        as_json: Print all results as JSON.
        is_asked: Whether the user asked for the table, so that it goes to standard output.
        options: Other arguments of `for_each_site`.

    Returns:
        The exit code.
    """

    def show(result: SiteResult) -> None:
        is_made = result.source and result.state != UP_TO_DATE and not quiet
        if result.error is not None or result.note or is_made:
            say(result)

    results = for_each_site(function, *paths, progress=not quiet, when_done=show, **options)
    if as_json:
        values = [result.as_dict() for result in results]
        click.echo(json.dumps(values, indent=2, ensure_ascii=False))
    elif is_asked:
        click.echo(summary(results))
    elif not quiet:
        tell(summary(results))
    return exit_code(results)
