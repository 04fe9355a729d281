"""The files of a spill by their names, and a spill removed with nothing else of its folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from so2docs.dump.dump import PIECE_END, PIECES

INDEX = "index.sqlite"
TEMPORARY = "segments."
"""What the names of files begin with that tasks of the second pass hand over."""

_ENDS = (".blocks", ".map", ".map.runs")


def is_ours(path: Path) -> bool:
    """Whether something in the folder of a spill belongs to it."""
    if path.name == PIECES:
        return path.is_dir() and all(piece.suffix == PIECE_END for piece in path.iterdir())
    return path.name.endswith(_ENDS) or path.name.startswith((INDEX, TEMPORARY))


def clear(folder: Path) -> None:
    """Delete a spill that nobody uses, and nothing else that may be in its folder."""
    if not folder.exists():
        return
    # The index last, so that what a kill leaves is still a spill.
    for path in sorted(filter(is_ours, folder.iterdir()), key=lambda path: path.name == INDEX):
        if path.name == PIECES:
            for piece in path.iterdir():
                piece.unlink(missing_ok=True)
            with suppress(OSError):
                path.rmdir()
        else:
            path.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()
