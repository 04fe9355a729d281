"""Memory that a call does not free."""

import gc
import tracemalloc
from collections.abc import Callable

_MOST_BYTES = 10_000


def assert_nothing_is_kept(run: Callable[[], None]) -> None:
    """Assert that a second call leaves no more memory allocated than before it."""
    run()
    tracemalloc.start()
    try:
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        run()
        gc.collect()  # This empties Python's lists of free objects.
        assert tracemalloc.get_traced_memory()[0] - before < _MOST_BYTES
    finally:
        tracemalloc.stop()
