"""Messages about many sites: each with its site, and warnings of one kind only once."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from so2docs.plugin import log
from so2docs.progress import subject

_VARIES = re.compile(r"[\d,]*\d|; .*")
"""Matches what differs between messages of one kind: numbers, and advice at the end."""


@contextmanager
def warn_by_kind() -> Iterator[None]:
    """If only warnings are logged, log one of each kind at the end, with the number of sites."""
    if log.level < logging.WARNING:
        yield
        return
    kinds: dict[str, list[tuple[str, str]]] = {}

    def take(record: logging.LogRecord) -> bool:
        here = subject.get().removesuffix(": "), record.getMessage()
        site, message = getattr(record, "about", here)
        kinds.setdefault(_VARIES.sub("", message), []).append((site, message))
        return False

    log.addFilter(take)
    try:
        yield
    finally:
        log.removeFilter(take)
        for entries in kinds.values():
            site, message = entries[0]
            count = len(dict(entries))
            log.warning("%s: %s", site if count == 1 else f"{count:,} sites, as {site}", message)
