"""Memory that a call leaves behind."""

import tracemalloc
from collections.abc import Callable

_MOST_BYTES = 10_000


def assert_nothing_is_kept(run: Callable[[], None]) -> None:
    """A second run leaves no more memory allocated than there was before it."""
    run()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        run()
        assert tracemalloc.get_traced_memory()[0] - before < _MOST_BYTES
    finally:
        tracemalloc.stop()
