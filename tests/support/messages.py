"""What the library tells people, through logging."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from so2docs.progress import listen


@contextmanager
def heard(take: Callable[[str], object] | None = None) -> Iterator[list[str]]:
    """The messages of a block.

    Args:
        take: Called with each of them.
    """
    messages: list[str] = []
    with listen(take or messages.append):
        yield messages
