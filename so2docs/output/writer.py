"""Segments of documents -> one file, or several, each of them whole.

Header, footer and what stands between two segments are segments of their own, so that none depends
on its neighbours. Files are written one after the other and get their final names together, when
the last one is whole.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from so2docs.options.conversion import Options
from so2docs.output import formats, index
from so2docs.output.file import FileProgress, Output, remove_journal
from so2docs.output.part_files import begins_with, is_sealed, publish
from so2docs.output.paths import Names
from so2docs.output.segments import Segment

_MORE_SEGMENTS = 3
"""What a file gets besides what it has: a separator, a segment, and the footer."""


@dataclass(slots=True, frozen=True)
class Finished:
    """A file that is whole: its bytes and their CRC-32."""

    size: int
    crc: int

    def is_intact(self, path: str) -> bool:
        """Whether the file has these bytes, under its provisional name or the final one."""
        if path == "-":
            return True
        part = f"{path}.part"
        found = part if os.path.exists(part) else path
        return is_sealed(path, self.size) and begins_with(found, self.size, self.crc)


@dataclass(slots=True, frozen=True)
class WriterProgress:
    """How far the files have come: what a checkpoint keeps, in JSON types only.

    Attributes:
        finished: The files that are whole.
        is_begun: Whether the next one has its header.
        output: The next one.
    """

    finished: list[Finished]
    is_begun: bool
    output: FileProgress

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> WriterProgress:
        """What `to_json` returned."""
        finished = [Finished(**file) for file in values["finished"]]
        return cls(finished, values["is_begun"], FileProgress.from_json(values["output"]))

    def files(self, names: Names) -> Iterator[tuple[str, FileProgress]]:
        """The files so far, each with a checkpoint of its own for `matches_checkpoint`."""
        for number, file in enumerate(self.finished):
            yield names.file(number), FileProgress(file.size, file.crc)
        yield names.file(len(self.finished)), self.output


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
        resume: WriterProgress | None = None,
    ) -> None:
        self._names = names
        self._form = options.form
        self._format = formats.of(options)
        self._cuts = cuts
        self._finished = list(resume.finished) if resume else []
        self._is_begun = bool(resume and resume.is_begun)
        self._between_bytes = len(self._format.segment(self._format.between).data)
        self._output = self._open(resume.output if resume else None)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *exception: object) -> None:
        self._output.__exit__()

    def append(self, segment: Segment) -> None:
        """Append a segment, in the next file if it belongs or only fits there."""
        file = bisect_right(self._cuts, segment.first_id)
        while len(self._finished) < file or self._is_too_much(segment):
            self._next_file()
        if self._is_begun:
            self._add(self._format.between)
        else:
            self._add(self._format.header)
        self._output.append(segment)
        self._is_begun = True

    def checkpoint(self) -> WriterProgress:
        """How far the files have come."""
        return WriterProgress(list(self._finished), self._is_begun, self._output.checkpoint())

    def seal(self) -> list[Finished]:
        """End the last file; what is left to do is to give all their names."""
        while len(self._finished) < len(self._cuts):
            self._next_file()
        self._end_file()
        return list(self._finished)

    def _open(self, resume: FileProgress | None = None) -> Output:
        return Output(
            self._names.file(len(self._finished)),
            self._form.compression,
            resume,
            indexed=self._form.is_indexed,
            logs=self._format.logs,
        )

    def _is_too_much(self, segment: Segment) -> bool:
        most = self._form.split_bytes
        if most is None or not self._is_begun:
            return False
        after = self._format.footer_bytes(self._output.journal, segment)
        data_bytes = self._between_bytes + segment.size + after
        return self._output.size_with(_MORE_SEGMENTS, data_bytes) > most

    def _add(self, raw: bytes) -> None:
        if raw:
            self._output.append(self._format.segment(raw))

    def _next_file(self) -> None:
        self._end_file()
        self._is_begun = False
        self._output = self._open()

    def _end_file(self) -> None:
        if not self._is_begun:
            self._add(self._format.header)
        self._add(self._format.footer(self._output.journal))
        size = self._output.seal()
        self._finished.append(Finished(size, self._output.file.crc))


def publish_all(names: Names, sizes: list[int], stray_bytes: int = 0) -> str | None:
    """Give sealed files their names, and remove those of an earlier output of more files.

    Args:
        names: Where the conversion writes.
        sizes: Bytes of each file.
        stray_bytes: Bytes of the side file; 0 if there is none.

    Returns:
        A file that is lost, if one is; none of the others gets its name then.
    """
    paths = [names.file(number) for number in range(len(sizes))]
    sealed = list(zip(paths, sizes, strict=True))
    if stray_bytes:
        sealed.insert(0, (names.strays, stray_bytes))
    for step in is_sealed, publish:
        for path, size in sealed:
            if not step(path, size):
                return path
    if names.output != "-":
        for path, _ in sealed:
            remove_journal(path)
            index.remove_former(path)
    if names.form.is_split:
        for path in set(names.earlier_files()) - set(paths):
            Path(path).unlink(missing_ok=True)
    return None
