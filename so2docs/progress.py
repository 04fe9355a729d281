"""What a user may see while it works: tqdm's bars, and messages, only where they were asked for."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

Notify = Callable[[str], object]
"""Takes messages such as how much an interrupted conversion had done."""


def silent(message: str) -> None:
    """Take a message and show nothing."""


class Bar(Protocol):
    """What the passes tell their progress to."""

    def update(self, n: int) -> object:
        """Go on by `n` bytes or other units."""


class _NoBar:
    def update(self, n: int) -> None:
        pass


def bar(
    description: str, total: int | None, done: int = 0, *, unit: str = "B", shown: bool = True
) -> AbstractContextManager[Bar]:
    """A bar, with rate and time left.

    Args:
        description: What is going on.
        total: Bytes, or other units, in all; None if that is not known.
        done: What an earlier session did of them.
        unit: Of what there is a total.
        shown: Without it, a bar that nobody sees.
    """
    if not shown:
        return nullcontext(_NoBar())
    from tqdm.auto import tqdm

    made: AbstractContextManager[Bar] = tqdm(
        desc=description, total=total, initial=done, unit=unit, unit_scale=True, mininterval=0.2
    )
    return made
