"""Errors of `strict`, with the location of rows that would be repaired or left out.

Only slices with an error are examined in detail, so that an intact dump costs nothing.
"""

from __future__ import annotations

import orjson

from so2docs.counts import ChunkTally
from so2docs.dump.dump import Dump
from so2docs.errors import Location, StrictError, flag
from so2docs.parse import rows
from so2docs.parse.posts import RecordBuffer
from so2docs.parse.rows import TextRow


def _advice() -> str:
    counted = "the dump is converted, and the report counts what is repaired or left out"
    return f"without {flag('errors', 'strict')}, {counted}"


def in_slice(
    dump: Dump, data: bytes, location: Location, parsed: list[TextRow], records: RecordBuffer
) -> StrictError:
    """Make the error for the first row of a slice that is repaired or has no usable key.

    Args:
        dump: The dump that contains the slice.
        data: The slice.
        location: Location of the slice.
        parsed: All rows of the slice; the first stray is one of these objects.
        records: The records made from the rows, with the strays.
    """
    opening, closing = dump.frame
    position, raw, problem, last_id = 0, data, "", location.last_id
    remaining = iter(parsed)
    for position, raw in rows.pieces(data):  # noqa: B007
        row = next(remaining) if rows.ROW_START.match(raw) else {}
        if repaired := _count_repaired(raw):
            problem = f"has {repaired:,} forbidden characters (strict: nothing is repaired)"
        elif row is records.first_stray:
            reason = next(iter(records.stray_reasons))
            problem = f"has a stray, {reason} (strict: nothing is left out)"
        if problem:
            break
        row_id = rows.row_id(row)
        last_id = last_id if row_id is None else row_id
    line = None if location.line is None else location.line + data.count(b"\n", 0, position)
    return StrictError(
        dump.path,
        f"{problem} in the row",
        Location(location.offset + position, line, last_id),
        advice=_advice(),
        excerpt=opening + b"\n" + raw + closing,
    )


def _count_repaired(raw: bytes) -> int:
    return sum(part.repaired for part in rows.parse(raw) if isinstance(part, rows.Rows))


def check_lines(dump: str, lines: list[bytes]) -> None:
    """Raise `StrictError` if there are strays, given as lines of the side file."""
    if lines:
        stray = orjson.loads(lines[0])
        numbers = {name: value for name, value in stray["row"].items() if isinstance(value, int)}
        row = f": {orjson.dumps(numbers).decode()}" if numbers else ""
        raise StrictError(
            dump,
            f"has a stray, {stray['reason']}{row} (strict: nothing is left out)",
            advice=_advice(),
        )


def check_decoded(path: str, characters: int) -> None:
    """Raise `StrictError` if characters had to be replaced to decode a dump."""
    if characters:
        raise StrictError(
            path,
            f"has {characters:,} characters that its encoding does not allow "
            "(strict: nothing is repaired)",
            advice=_advice(),
        )


def check_tallies(path: str, tallies: dict[int, ChunkTally]) -> None:
    """Raise `StrictError` if an earlier session, without `strict`, repaired or left out a row."""
    for chunk, tally in tallies.items():
        counts = {"repaired_characters": tally.repaired_characters, **tally.strays}
        problems = [f"{name} {count:,}" for name, count in counts.items() if count]
        if problems:
            raise StrictError(
                path,
                f"has {', '.join(problems)} in its chunk {chunk} "
                "(strict: nothing is repaired or left out)",
                advice=f"{_advice()}; to locate the first such row, "
                f"run with {flag('restart', True)}",
            )
