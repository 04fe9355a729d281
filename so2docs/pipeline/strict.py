"""Errors of `strict`: rows that would be repaired or left out, with their positions.

A fault is located only after it was counted, so that an intact dump costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson

from so2docs.counts import RowCounts, list_by_name
from so2docs.dump.dump import Dump
from so2docs.errors import Location, StrictError, flag
from so2docs.parse.rows import Malformed, parse, pieces, row_id


def locate_fault(
    dump: Dump, start: Location, data: bytes, open_sink: Callable[[], Any]
) -> StrictError:
    """Make the error for the first row of a slice that is repaired or has no usable key.

    Args:
        dump: The dump.
        start: Location of the slice.
        data: The slice.
        open_sink: Makes a new sink, which reads the rows of the slice one by one.
    """
    sink, at, raw, last_id, problem = open_sink(), 0, data, start.last_id, "faulty rows"
    for at, raw in pieces(data):  # noqa: B007
        [part] = parse(raw)
        assert not isinstance(part, Malformed)  # It would have been an error.
        if part.rows:
            sink.add(part.rows)
        if part.repaired or sink.buffer.stray_reasons:
            reasons = [f"a stray, {reason}," for reason in sink.buffer.stray_reasons]
            problem = f"{part.repaired:,} forbidden characters" if part.repaired else reasons[0]
            break
        if part.rows and (read_id := row_id(part.rows[-1])) is not None:
            last_id = read_id
    line = None if start.line is None else start.line + data.count(b"\n", 0, at)
    location = Location(start.offset + at, line, last_id)
    opening, closing = dump.frame
    excerpt = opening + b"\n" + raw + closing
    return _error(dump.path, f"has {problem} in the row", location, excerpt)


def check_table(path: str, counts: RowCounts, decoded: int, strays: Iterator[bytes]) -> None:
    """Raise `StrictError` if the first pass, in any session, repaired or left out a row.

    Args:
        path: Name of the table.
        counts: Counts of the whole table.
        decoded: Number of characters that were replaced to decode the table.
        strays: Lines of the side file for rows without a usable key.
    """
    if decoded:
        raise _error(path, f"has {decoded:,} characters that its encoding does not allow")
    if counts.repaired_characters:
        raise _error(path, f"has {counts.repaired_characters:,} forbidden characters")
    if counts.strays:
        reasons = list_by_name(counts.strays)
        raise _error(path, f"has strays, {reasons}; the first is {_name(next(strays))}")


def check_strays(path: str, lines: list[bytes]) -> None:
    """Raise `StrictError` if there are strays, given as lines of the side file."""
    if lines:
        raise _error(path, f"has a stray, {_name(lines[0])}")


def _error(
    path: str, problem: str, location: Location | None = None, excerpt: bytes | None = None
) -> StrictError:
    advice = (
        f"without {flag('errors', 'strict')}, the dump is converted, and the report counts what is "
        "repaired or left out"
    )
    return StrictError(path, problem, location, advice=advice, excerpt=excerpt)


def _name(line: bytes) -> str:
    """Name a stray by its reason and the numbers of the row."""
    stray = orjson.loads(line)
    numbers = {
        name: value for name, value in stray.get("row", stray).items() if isinstance(value, int)
    }
    return f"{stray['reason']}: {orjson.dumps(numbers).decode()}"
