"""What `help()`, `inspect.signature` and notebooks show of a function that shares its keywords."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_type_hints

from so2docs.options import keywords as shared
from so2docs.options.conversion import Options
from so2docs.options.filters import Filters

Door = TypeVar("Door", bound=Callable[..., Any])

_DEFAULTS = {
    field.name: field.default
    for kind in (Options, Filters)
    for field in fields(kind)
    if field.default is not MISSING
}
# Of docstrings without the indentation of the code, which Python 3.13 leaves out by itself.
_DESCRIPTION = re.compile(r"^ {4}(\w+): .*(?:\n {5,}.*)*", re.MULTILINE)
_GIVEN = re.compile(r"^ {4}keywords: .*(?:\n {5,}.*)*\n", re.MULTILINE)


def spelled_out(door: Door) -> Door:
    """Let a function with `**keywords: Unpack[...]` show each of them."""
    signature = inspect.signature(door)
    (packed,) = (p for p in signature.parameters.values() if p.kind is p.VAR_KEYWORD)
    hints = get_type_hints(getattr(shared, packed.annotation.split("[")[1].rstrip("]")))
    own = [p for p in signature.parameters.values() if p is not packed]
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hint,
            default=_DEFAULTS.get(name, False if hint is bool else None),
        )
        for name, hint in hints.items()
    ]
    door.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    if door.__doc__:  # With -OO there is none.
        described = "\n".join(_descriptions()[name] for name in hints)
        text = inspect.getdoc(door) or ""
        door.__doc__ = _GIVEN.sub(lambda found: f"{described}\n", text, count=1)
    return door


def _descriptions() -> dict[str, str]:
    """What each keyword means, from the docstrings of the classes that have them."""
    classes = [kind for kind in vars(shared).values() if isinstance(kind, type)]
    found = [_DESCRIPTION.finditer(inspect.getdoc(kind) or "") for kind in classes]
    return {one.group(1): one.group() for matches in found for one in matches}
