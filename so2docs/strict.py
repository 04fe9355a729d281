"""What `strict` refuses: anything that has to be repaired or left out, with its place.

Looks closer only at what is refused anyway, so that a sound dump costs nothing.
"""

from __future__ import annotations

from typing import Any

import orjson

from so2docs import posts, rows
from so2docs.dump import Dump
from so2docs.errors import Place, StrictError
from so2docs.posts import Posts

_ADVICE = "without --strict, it would be converted and counted in the report"


def in_slice(dump: Dump, data: bytes, place: Place) -> StrictError:
    """The error for the first row of a slice that is repaired or has no usable key.

    Args:
        dump: The dump.
        data: A slice that has such a row.
        place: Where it starts.
    """
    opening, closing = dump.frame
    last_id = place.last_id
    # One of the rows has a problem: the slice had.
    position, raw, problem = 0, data, None
    for position, raw in rows.pieces(data):  # noqa: B007
        for part in rows.parse(raw, dump.frame):
            problem = None if isinstance(part, rows.Malformed) else _problem(part)
            if problem or isinstance(part, rows.Malformed):
                break
            ids = [rows.row_id(row) for row in part.rows]
            last_id = ids[-1] if ids and ids[-1] is not None else last_id
        if problem:
            break
    line = None if place.line is None else place.line + data.count(b"\n", 0, position)
    return StrictError(
        dump.path,
        f"{problem} in the row",
        Place(place.offset + position, line, last_id),
        advice=_ADVICE,
        excerpt=opening + b"\n" + raw + closing,
    )


def _problem(part: rows.Rows) -> str | None:
    if part.repaired:
        return f"has {part.repaired:,} forbidden characters (strict: nothing is repaired)"
    found = Posts()
    # `posts.add` changes rows in place.
    posts.add(found, [dict(row) for row in part.rows])
    if found.stray_reasons:
        return f"has a stray, {next(iter(found.stray_reasons))} (strict: nothing is left out)"
    return None


def check_lines(dump: str, lines: list[bytes]) -> None:
    """Raise `StrictError` if there are strays, given as lines of the side file."""
    if lines:
        stray = orjson.loads(lines[0])
        # Rows of tables name their post; what is left of a post need not have its id.
        post_id = stray["row"].get("PostId", stray["row"].get("Id"))
        which = "" if post_id is None else f": post {post_id}"
        raise StrictError(
            dump,
            f"has a stray, {stray['reason']}{which} (strict: nothing is left out)",
            advice=_ADVICE,
        )


def check_tallies(path: str, done: dict[int, dict[str, Any]]) -> None:
    """Raise `StrictError` if an earlier session, without `strict`, repaired or left out anything.

    Args:
        path: The dump's name.
        done: The tallies of its chunks.
    """
    for chunk, tally in done.items():
        found = {"repaired_characters": tally["repaired"], **tally["strays"]}
        problems = [f"{name} {count:,}" for name, count in found.items() if count]
        if problems:
            raise StrictError(
                path,
                f"has {', '.join(problems)} in its chunk {chunk} "
                "(strict: nothing is repaired or left out)",
                advice=_ADVICE + "; to see the row, run with --restart",
            )
