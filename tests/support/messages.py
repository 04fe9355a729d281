"""Log messages of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from so2docs.progress import listen


@contextmanager
def heard(take: Callable[[str], object] | None = None) -> Iterator[list[str]]:
    """Collect the log messages of a block.

    Args:
        take: Called with each message.
    """
    messages: list[str] = []
    with listen(lambda _, text: (take or messages.append)(text)):
        yield messages
