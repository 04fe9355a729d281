"""What a user may see while it works: tqdm's bars, and messages, only where they were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

Notify = Callable[[str], object]
"""Takes messages such as how much an interrupted conversion had done."""

_subject = ContextVar("_subject", default="")


def silent(message: str) -> None:
    """Take a message and show nothing."""


class Bar(Protocol):
    """What the passes tell their progress to."""

    def update(self, n: int) -> object:
        """Go on by `n` bytes or other units."""


class _NoBar:
    def update(self, n: int) -> None:
        pass


class _Tqdm:
    """A bar of tqdm that never goes beyond its total."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def update(self, n: int) -> None:
        left = None if self.made.total is None else self.made.total - self.made.n
        self.made.update(n if left is None else max(0, min(n, left)))


@contextmanager
def about(subject: str) -> Iterator[None]:
    """Let bars say what they are about, such as which of several dumps."""
    token = _subject.set(f"{subject}: ")
    try:
        yield
    finally:
        _subject.reset(token)


@contextmanager
def bar(
    description: str, total: int | None, done: int = 0, *, unit: str = "B", shown: bool = True
) -> Iterator[Bar]:
    """A bar, with rate and time left; at exactly 100 % when all went well.

    Args:
        description: What is being done.
        total: Bytes, or other units, in all; None or 0 if that is not known.
        done: What an earlier session did of them.
        unit: Of what there is a total.
        shown: Without it, a bar that nobody sees.
    """
    if not shown:
        yield _NoBar()
        return
    from tqdm.auto import tqdm

    with tqdm(
        desc=f"{_subject.get()}{description}",
        total=total or None,
        initial=done,
        unit=unit,
        unit_scale=True,
        mininterval=0.2,
    ) as made:
        yield _Tqdm(made)
        # What no task counts, such as a closing tag, or what a limit made needless.
        made.total = made.total or made.n
        made.update(made.total - made.n)
        made.refresh()
