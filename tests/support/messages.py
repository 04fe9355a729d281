"""Log messages of the library."""

from collections.abc import Iterator
from contextlib import contextmanager

from so2docs.progress import listen


@contextmanager
def heard() -> Iterator[list[str]]:
    """Collect the log messages of a block."""
    messages: list[str] = []
    with listen(lambda _, text: messages.append(text)):
        yield messages
