"""Sizes as people write them: `500MB`, `1.5 GiB`, or a plain number."""

from __future__ import annotations

import re

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(b?)", re.IGNORECASE)


def number_and_unit(text: str) -> tuple[float, str] | None:
    """Bytes, and the unit as it was written, if any; None if this is no size."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        return None
    number, unit, binary, byte = found.groups()
    factor = (_BINARY_UNITS if binary and unit else _UNITS)[unit.lower()]
    return float(number) * factor, unit + byte


def size(given: str | int) -> int | None:
    """A size in bytes; None if it is none."""
    found = number_and_unit(str(given))
    return None if found is None else int(found[0])
