"""Writing an index while its output grows.

The entries are only ever appended; what a checkpoint keeps of them is their number and a CRC-32, so
that a checkpoint costs the same however long the output is.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from isal import isal_zlib

from so2docs.output import index


class Writer:
    """Writes the index of an output that is being written, under `.OUTPUT.index.part`.

    Attributes:
        builder: Its state, for a checkpoint.
    """

    def __init__(self, output: str, builder: index.Builder, *, go_on: bool) -> None:
        """Start an index, or go on with one.

        Args:
            output: Name of the output.
            builder: A new one, or one with the state of the last checkpoint.
            go_on: Whether it is the latter.

        Raises:
            UnusableIndexError: There is nothing to go on with.
        """
        self.path = index.path_of(output)
        self.part = f"{self.path}.part"
        self.builder = builder
        if go_on:
            self._file = self._go_on()
        else:
            self._file = open(self.part, "wb")  # noqa: SIM115
            self._file.write(index.HEADER)

    def _go_on(self) -> BinaryIO:
        """What was written up to the checkpoint, under whichever of the two names it is."""
        size = len(index.HEADER) + self.builder.pieces * index.ENTRY.size
        for path in (self.part, self.path):
            if not os.path.exists(path):
                continue
            data = Path(path).read_bytes()[:size]
            if len(data) == size and isal_zlib.crc32(data) == self.builder.crc:
                if path == self.path:
                    Path(self.part).write_bytes(data)
                file = open(self.part, "r+b")  # noqa: SIM115
                file.seek(file.truncate(size))
                return file
        raise index.UnusableIndexError("the index that was begun is gone")

    def add(self, first_id: int, offset: int, raw_size: int, documents: int, crc: int) -> None:
        """Append the entry of a piece."""
        self._file.write(self.builder.add(first_id, offset, raw_size, documents, crc))

    def flush(self) -> None:
        """Hand all entries to the system."""
        self._file.flush()

    def finish(self, end: int, part: str, size: int) -> None:
        """Complete the index and give it its name, before the output gets its own.

        Args:
            end: End of the last piece.
            part: The whole output, under its provisional name.
            size: Its bytes.
        """
        with open(part, "rb") as output:
            self._file.write(self.builder.end(end, output, size))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self.part, self.path)

    def close(self) -> None:
        """Give the file up; what it holds stays."""
        self._file.close()

    def discard(self) -> None:
        """Remove what was written."""
        self.close()
        Path(self.part).unlink(missing_ok=True)
