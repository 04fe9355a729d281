"""What `help()`, `inspect.signature` and notebooks show of a function that takes options."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from textwrap import fill
from typing import Any, TypeVar

from so2docs.errors import spell_options
from so2docs.options.option import Option, Where
from so2docs.options.table import taken_by

Api = TypeVar("Api", bound=Callable[..., Any])

# Of docstrings without the indentation of the code, which Python 3.13 leaves out by itself.
_GIVEN = re.compile(r"^ {4}keywords: .*(?:\n {5,}.*)*\n", re.MULTILINE)


def spell_out(*where: Where) -> Callable[[Api], Api]:
    """Let a function with `**keywords` show each option that is taken there.

    Args:
        where: Who takes the options: see `Option.where`.
    """

    def spell(api: Api) -> Api:
        options = taken_by(*where)
        signature = inspect.signature(api)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=entry.accepts,
                default=entry.default,
            )
            for name, entry in options.items()
        ]
        api.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        if api.__doc__:  # With -OO there is none.
            described = "\n".join(describe(entry) for entry in options.values())
            text = inspect.getdoc(api) or ""
            api.__doc__ = _GIVEN.sub(lambda _: f"{described}\n", text, count=1)
        return api

    return spell


def describe(entry: Option, indent: str = "    ") -> str:
    """An option as docstrings have it."""
    text = spell_options(f"{entry.name}: {entry.description}")
    return fill(text, 100, initial_indent=indent, subsequent_indent=indent + " " * 4)
