"""Run the function of a command on each site of a folder, and report the results."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from so2docs.commands.terminal import show_sites


def show_each_site(function: Callable[..., Any], *paths: Any, **options: Any) -> int:
    """Call `for_each_site` with a function and the paths; see `show_sites` for the options."""
    from so2docs.extensions.folders import for_each_site

    return show_sites(partial(for_each_site, function), *paths, **options)
