"""Pieces on their way from a worker into the output.

A worker whose place in the file is known writes its pieces there itself, and hands over only what
the report and the index need. The place is known once every earlier task has said how many bytes it
has, which is nearly always: tasks end about in the order in which they begin. Where it is not, the
pieces go to a file aside, from where the main process copies them. Either way the output is the
same, and a checkpoint counts only what the main process has taken in, in order.

Sent through a pipe and written by the main process alone, the pieces took a sixth of a conversion
at two jobs, and memory for what waited there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import RawIOBase
from pathlib import Path
from typing import Any

from isal import isal_zlib

from so2docs.output.compression import Piece, Written
from so2docs.output.file import output_error
from so2docs.store.disk import write_all


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task may write its pieces.

    Attributes:
        turns: Path of the file in which the tasks say how many bytes they have.
        output: Path of the file that grows.
        task: Number of the task: tasks stand in the output in the order of their numbers.
    """

    turns: str
    output: str
    task: int


def is_possible() -> bool:
    """Whether processes can take turns on this system."""
    return find_spec("fcntl") is not None


@contextmanager
def turns(path: Path, offset: int) -> Iterator[str]:
    """The file in which tasks, counted from 0, find their places from `offset` on."""
    _remove(path)
    path.write_text(json.dumps({"known": 0, "end": offset, "sizes": {}}), encoding="ascii")
    try:
        yield str(path)
    finally:
        _remove(path)


def _remove(turns: Path) -> None:
    """Remove the file and those aside, which are named after it."""
    for path in turns.parent.glob(f"{turns.name}*"):
        path.unlink(missing_ok=True)


def forget(pieces: Iterable[Piece]) -> None:
    """Remove what stands aside of pieces that are in the output."""
    for path in {piece.written.aside for piece in pieces if piece.written}:
        if path:
            Path(path).unlink(missing_ok=True)


def place_pieces(pieces: list[Piece], place: Place | None) -> list[Piece]:
    """Write the pieces of a task: where they belong if that is known, else aside.

    Args:
        pieces: In order.
        place: None if the main process is to write them.

    Returns:
        The pieces, without their data if it was written.

    Raises:
        OutputError: The file cannot be written.
        DiskFullError: The disk is full.
    """
    if place is None:
        return pieces
    offset = _claimed(place, sum(len(piece.data) for piece in pieces))
    aside = f"{place.turns}.{place.task}" if offset is None else None
    try:
        with open(aside or place.output, "wb" if aside else "r+b", buffering=0) as file:
            return list(_written(file, offset or 0, pieces, aside))
    except OSError as error:
        raise output_error(aside or place.output, error) from error


def _written(
    file: RawIOBase, offset: int, pieces: list[Piece], aside: str | None
) -> Iterator[Piece]:
    file.seek(offset)
    for piece in pieces:
        write_all(file, piece.data)
        written = Written(len(piece.data), isal_zlib.crc32(piece.data), aside, offset)
        offset += written.size
        yield replace(piece, data=b"", written=written)


def _claimed(place: Place, size: int) -> int | None:
    """Say how many bytes a task has; where they go, if all earlier tasks have said it too."""
    import fcntl

    offset = None
    # Where files cannot be locked, everything goes aside.
    with suppress(OSError), open(place.turns, "r+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        state: dict[str, Any] = json.load(file)
        state["sizes"][str(place.task)] = size
        while (next_size := state["sizes"].pop(str(state["known"]), None)) is not None:
            if state["known"] == place.task:
                offset = state["end"]
            state["end"] += next_size
            state["known"] += 1
        file.seek(0)
        json.dump(state, file)
        file.truncate()
    return offset
