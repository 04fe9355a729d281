"""Pieces of documents -> one file, or several, each of them whole.

Header, footer and what stands between two pieces are pieces of their own, so that no piece depends
on its neighbours. Files are written one after the other and get their final names together, when
the last one is whole.
"""

from __future__ import annotations

from bisect import bisect_right
from pathlib import Path
from typing import Any

from so2docs import formats
from so2docs.errors import OutputError
from so2docs.options import Options
from so2docs.output import Output, Piece, give_name
from so2docs.paths import Names

_MORE_PIECES = 3
"""What a file gets besides what it has: a separator, a piece, and the footer."""


class Writer:
    """Writes the output.

    Args:
        names: Where it goes.
        options: In what form.
        cuts: Question ids that start another file, in ascending order; for files by number.
        resume: A checkpoint of an earlier session.

    Raises:
        OutputError: A file cannot be written, or is not what the checkpoint says.
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
        self._file = resume["file"] if resume else 0
        self._finished_bytes = resume["finished_bytes"] if resume else 0
        self._has_documents = bool(resume and resume["has_documents"])
        for file in range(self._file):
            if not Path(f"{self._path(file)}.part").exists():
                raise OutputError(f"{self._path(file)}.part: is missing; run again with --restart")
        self._between_bytes = len(self._format.piece(self._format.between).data)
        self._output = self._open(resume["output"] if resume else None)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *exception: object) -> None:
        self._output.__exit__()

    def append(self, piece: Piece) -> None:
        """Append a piece, in the next file if it belongs or only fits there."""
        while self._file < bisect_right(self._cuts, piece.first_id) or self._is_too_much(piece):
            self._next_file()
        if self._has_documents:
            self._add(self._format.between)
        else:
            self._add(self._format.header)
        self._output.append(piece)
        self._has_documents = True

    def checkpoint(self) -> dict[str, Any]:
        """How far the files have come."""
        return {
            "file": self._file,
            "finished_bytes": self._finished_bytes,
            "has_documents": self._has_documents,
            "output": self._output.checkpoint(),
        }

    def finish(self) -> tuple[int, int]:
        """End the last file and give all their names; bytes and number of files."""
        while self._file < len(self._cuts):
            self._next_file()
        self._end_file()
        files = self._file + 1
        if self._names.output != "-":
            for file in range(files):
                give_name(self._path(file))
            for path in self._names.earlier_files():
                if self._form.is_split and path not in map(self._path, range(files)):
                    Path(path).unlink()
        return self._finished_bytes, files

    def _path(self, file: int) -> str:
        return self._names.file(file)

    def _open(self, resume: dict[str, int] | None = None) -> Output:
        return Output(
            self._path(self._file), self._form.compression, resume, logs=self._format.logs
        )

    def _is_too_much(self, piece: Piece) -> bool:
        most = self._form.split_bytes
        if most is None or not self._has_documents:
            return False
        after = self._format.footer_bytes(self._output.log, piece)
        data_bytes = self._between_bytes + len(piece.data) + after
        return self._output.size_with(_MORE_PIECES, data_bytes) > most

    def _add(self, raw: bytes) -> None:
        if raw:
            self._output.append(self._format.piece(raw))

    def _next_file(self) -> None:
        self._end_file()
        self._file += 1
        self._has_documents = False
        self._output = self._open()

    def _end_file(self) -> None:
        if not self._has_documents:
            self._add(self._format.header)
        self._add(self._format.footer(self._output.log))
        self._finished_bytes += self._output.end()
