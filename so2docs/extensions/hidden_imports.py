"""Let a library be imported without libraries that it uses only if they are installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def hidden(*names: str) -> Iterator[None]:
    """Let imports of modules fail that were not imported before."""
    unneeded = {*names} - sys.modules.keys()
    sys.modules.update(dict.fromkeys(unneeded))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in unneeded:
            del sys.modules[name]
