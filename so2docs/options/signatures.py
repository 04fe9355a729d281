"""Signatures and docstrings that spell out `**keywords`, for `help()` and notebooks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from textwrap import fill
from typing import Any, TypeVar

from so2docs.errors import naming_flags
from so2docs.options.option import Option

Api = TypeVar("Api", bound=Callable[..., Any])

# Matches the entry with and without the docstring's indentation, which Python removes from 3.13 on.
_GIVEN = re.compile(r"^ {4}keywords: .*(?:\n {5,}.*)*\n", re.MULTILINE)


def spell_out(options: Mapping[str, Option]) -> Callable[[Api], Api]:
    """Make a decorator that spells out these `**keywords` in a signature and docstring."""

    def spell(api: Api) -> Api:
        signature = inspect.signature(api)
        kept = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=entry.accepts,
                default=entry.default,
            )
            for name, entry in options.items()
        ]
        api.__signature__ = signature.replace(parameters=[*kept, *added])  # type: ignore[attr-defined]
        if api.__doc__:  # With -OO, there are no docstrings.
            described = "\n".join(describe(entry) for entry in options.values())
            text = inspect.getdoc(api) or ""
            api.__doc__ = _GIVEN.sub(lambda _: f"{described}\n", text, count=1)
        return api

    return spell


def describe(entry: Option) -> str:
    """Format an option as an entry in the `Args` of a docstring."""
    with naming_flags(None):
        text = f"{entry.name}: {entry.description}"
    return fill(text, 100, initial_indent=" " * 4, subsequent_indent=" " * 8)
