"""Files that options add to the output of a conversion, such as a card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from so2docs.options.table import Options
from so2docs.output.paths import OutputPaths
from so2docs.registry import Registry


class Check(Protocol):
    """Refuses an addition that cannot be written."""

    def __call__(
        self, names: OutputPaths, options: Options, read: Sequence[str | None], *, force: bool
    ) -> None:
        """Check the output and the paths of the inputs; None is an input that is not a file."""


class Complete(Protocol):
    """Writes an addition of an output that is up to date, if it is missing."""

    def __call__(self, output: str, *, force: bool) -> object:
        """Complete the output, as named in its report."""


@dataclass(frozen=True, slots=True)
class Addition:
    """Files that an option of the run adds to an output.

    Attributes:
        check_sources: Called first, with the paths or URLs of the inputs, before any is opened.
        check: Called before the conversion.
        write: Called after it, with the paths of the output and of the inputs.
        complete: Called instead if the output is up to date.
    """

    check_sources: Callable[[Iterable[str | None]], None]
    check: Check
    write: Callable[[OutputPaths, Sequence[str | None]], None]
    complete: Complete


def _check(name: str, item: Any) -> Addition:
    if not isinstance(item, Addition):
        raise TypeError("it is not a so2docs.output.additions.Addition")
    return item


ADDITIONS: Registry[Addition] = Registry("so2docs.additions", _check)
"""Additions by the name of the option that requests them; see `RunOptions.additions`."""
