"""Errors of `strict`, with the location of rows that would be repaired or left out.

Only slices with an error are examined in detail, so that an intact dump costs nothing.
"""

from __future__ import annotations

from typing import Any

import orjson

from so2docs.counts import ChunkTally
from so2docs.dump.dump import Dump
from so2docs.errors import Location, StrictError, flag
from so2docs.parse import posts, rows, table_rows
from so2docs.parse.posts import RecordBuffer
from so2docs.schema import POSTS, RESERVED, TABLES, Table

_TABLE_ROWS = {table.row for table in TABLES.values()}


def _advice() -> str:
    counted = "the dump is converted, and the report counts what is repaired or left out"
    return f"without {flag('strict', True)}, {counted}"


def in_slice(
    dump: Dump,
    data: bytes,
    location: Location,
    table: Table = POSTS,
    reserved: frozenset[str] = RESERVED,
) -> StrictError:
    """Make the error for the first row of a slice that is repaired or has no usable key."""
    opening, closing = dump.frame
    last_id = location.last_id
    # Parse the rows one by one to find the invalid row of this slice.
    position, raw, problem = 0, data, None
    for position, raw in rows.pieces(data):  # noqa: B007
        for part in rows.parse(raw):
            problem = None if isinstance(part, rows.Malformed) else _problem(part, table, reserved)
            if problem or isinstance(part, rows.Malformed):
                break
            ids = [rows.row_id(row) for row in part.rows]
            last_id = ids[-1] if ids and ids[-1] is not None else last_id
        if problem:
            break
    line = None if location.line is None else location.line + data.count(b"\n", 0, position)
    return StrictError(
        dump.path,
        f"{problem} in the row",
        Location(location.offset + position, line, last_id),
        advice=_advice(),
        excerpt=opening + b"\n" + raw + closing,
    )


def _problem(part: rows.Rows, table: Table, reserved: frozenset[str]) -> str | None:
    if part.repaired:
        return f"has {part.repaired:,} forbidden characters (strict: nothing is repaired)"
    posts_read = RecordBuffer(reserved=reserved)
    # Pass copies, because `add` changes rows in place.
    copies = [dict(row) for row in part.rows]
    if table == POSTS:
        posts.add(posts_read, copies)
    else:
        table_rows.reject(posts_read, table, copies)
    if posts_read.stray_reasons:
        return f"has a stray, {next(iter(posts_read.stray_reasons))} (strict: nothing is left out)"
    return None


def check_lines(dump: str, lines: list[bytes]) -> None:
    """Raise `StrictError` if there are strays, given as lines of the side file."""
    if lines:
        stray = orjson.loads(lines[0])
        raise StrictError(
            dump,
            f"has a stray, {stray['reason']}{_describe(stray)} (strict: nothing is left out)",
            advice=_advice(),
        )


def _describe(stray: dict[str, Any]) -> str:
    """Describe the row of a stray by its ids."""
    row, word = stray["row"], stray["reason"].partition("_")[0]
    if word not in _TABLE_ROWS:
        return f": post {row['Id']}" if "Id" in row else ""
    if "count" in stray:
        if "Class" in row:
            return f": {stray['count']:,} of class {row['Class']} for user {row['UserId']}"
        return f": {stray['count']:,} of type {row['VoteTypeId']} for post {row['PostId']}"
    post = f" of post {row['PostId']}" if "PostId" in row else ""
    return f": {word} {row['Id']}{post}" if "Id" in row else f": a {word}{post}"


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
