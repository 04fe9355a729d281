"""Pieces of documents -> one file, or several, each of them whole.

Header, footer and what stands between two pieces are pieces of their own, so that no piece depends
on its neighbours. Files are written one after the other and get their final names together, when
the last one is whole.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from so2docs.options.conversion import Options
from so2docs.output import formats
from so2docs.output.compression import Piece
from so2docs.output.file import Output
from so2docs.output.part_files import publish
from so2docs.output.paths import Names

_MORE_PIECES = 3
"""What a file gets besides what it has: a separator, a piece, and the footer."""


class Writer:
    """Writes the output.

    Args:
        names: Where it goes.
        options: In what form.
        cuts: Question ids that start another file, in ascending order; for files by number.
        resume: A checkpoint of an earlier session, of files that are all as it says.

    Raises:
        OutputError: A file cannot be written.
    """

    def __init__(
        self,
        names: Names,
        options: Options,
        cuts: tuple[int, ...] = (),
        resume: dict[str, Any] | None = None,
    ) -> None:
        self._names = names
        self._form = options.form
        self._format = formats.of(options)
        self._cuts = cuts
        self._finished: list[list[int]] = resume["finished"] if resume else []
        self._is_begun = bool(resume and resume["is_begun"])
        self._between_bytes = len(self._format.piece(self._format.between).data)
        self._output = self._open(resume["output"] if resume else None)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *exception: object) -> None:
        self._output.__exit__()

    def append(self, piece: Piece) -> None:
        """Append a piece, in the next file if it belongs or only fits there."""
        file = bisect_right(self._cuts, piece.first_id)
        while len(self._finished) < file or self._is_too_much(piece):
            self._next_file()
        if self._is_begun:
            self._add(self._format.between)
        else:
            self._add(self._format.header)
        self._output.append(piece)
        self._is_begun = True

    def begin(self) -> int | None:
        """Begin the file, if nothing comes between pieces: the offset of the next, in bytes."""
        if self._form.is_split or self._format.between or self._names.output == "-":
            return None
        if not self._is_begun:
            self._add(self._format.header)
            self._is_begun = True
        return self._output.begin()

    def checkpoint(self) -> dict[str, Any]:
        """How far the files have come."""
        return {
            "finished": [list(file) for file in self._finished],
            "is_begun": self._is_begun,
            "output": self._output.checkpoint(),
        }

    def seal(self) -> list[int]:
        """End the last file; what is left to do is to give all their names. Bytes of each."""
        while len(self._finished) < len(self._cuts):
            self._next_file()
        self._end_file()
        return [size for size, _ in self._finished]

    def _open(self, resume: dict[str, int] | None = None) -> Output:
        return Output(
            self._names.file(len(self._finished)),
            self._form.compression,
            resume,
            indexed=self._form.is_indexed,
            logs=self._format.logs,
        )

    def _is_too_much(self, piece: Piece) -> bool:
        most = self._form.split_bytes
        if most is None or not self._is_begun:
            return False
        after = self._format.footer_bytes(self._output.log, piece)
        data_bytes = self._between_bytes + len(piece.data) + after
        return self._output.size_with(_MORE_PIECES, data_bytes) > most

    def _add(self, raw: bytes) -> None:
        if raw:
            self._output.append(self._format.piece(raw))

    def _next_file(self) -> None:
        self._end_file()
        self._is_begun = False
        self._output = self._open()

    def _end_file(self) -> None:
        if not self._is_begun:
            self._add(self._format.header)
        self._add(self._format.footer(self._output.log))
        size = self._output.seal()
        self._finished.append([size, self._output.progress.file_crc])


def written(
    names: Names, checkpoint: dict[str, Any] | None
) -> Iterator[tuple[str, dict[str, int]]]:
    """The files that a checkpoint is of, each with a checkpoint of its own for `is_as_left`."""
    if checkpoint is None:
        return
    for number, (size, crc) in enumerate(checkpoint["finished"]):
        yield names.file(number), {"size": size, "file_crc": crc}
    yield names.file(len(checkpoint["finished"])), checkpoint["output"]


def publish_all(names: Names, sizes: list[int]) -> bool:
    """Give sealed files their names, and remove those of an earlier output of more files.

    Returns:
        Whether files of these sizes have them.
    """
    paths = [names.file(number) for number in range(len(sizes))]
    if not all(publish(path, size) for path, size in zip(paths, sizes, strict=True)):
        return False
    if names.form.is_split:
        for path in set(names.earlier_files()) - set(paths):
            Path(path).unlink(missing_ok=True)
    return True
