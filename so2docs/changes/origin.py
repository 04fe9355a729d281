"""What a file of changes was made from: so that `patch` can tell, and can give every byte.

The file of changes itself holds nothing but changes, for whatever reads it. `.NAME.origin` beside
it says which output the changes are to be applied to, and where the segments of the new one start:
compressed in the same segments with the same level, it comes out byte for byte.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from so2docs.errors import OutputError
from so2docs.lookup.collection import Collection
from so2docs.options.choices import Compression
from so2docs.output.compression import compress
from so2docs.output.index import Entry, tail_crc
from so2docs.sources.storage import unreadable

VERSION = 1

_LEVELS = {"gzip": (2, 1, 0, 3, 6, 4, 5, 7, 8, 9), "zstd": (2, 3, *range(1, 20)), "none": (2,)}


@dataclass(frozen=True, slots=True)
class OutputIdentity:
    """Which file it is.

    Attributes:
        size: Bytes of the file.
        tail: CRC-32 of its last 64 KiB; of a gzip output, these hold the CRC-32 of all documents.
    """

    size: int
    tail: int

    @classmethod
    def of(cls, path: str) -> OutputIdentity:
        """The identity of a file.

        Raises:
            OutputError: It cannot be read.
        """
        try:
            with open(path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                return cls(size, tail_crc(file, size))
        except OSError as error:
            raise OutputError(f"{path}: {unreadable(path, error)}") from error


@dataclass(frozen=True, slots=True)
class OriginSegment:
    """Consecutive documents that are compressed together."""

    first_id: int
    documents: int
    crc: int


@dataclass(frozen=True, slots=True)
class Origin:
    """What a file of changes was made from.

    Attributes:
        changes: The file of changes.
        old: The output to apply it to.
        new: What comes out.
        compression: Of the new output.
        level: Of its compression.
        segments: Of the new output, in order.
    """

    changes: OutputIdentity
    old: OutputIdentity
    new: OutputIdentity
    compression: Compression
    level: int
    segments: tuple[OriginSegment, ...]

    def save(self, path: str) -> None:
        """Write it beside the changes.

        Raises:
            OutputError: That cannot be done.
        """
        values: dict[str, Any] = {"version": VERSION, **asdict(self)}
        values["segments"] = [[s.first_id, s.documents, s.crc] for s in self.segments]
        try:
            Path(path).write_text(json.dumps(values) + "\n", encoding="utf-8", newline="\n")
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror or error}") from error


def path_beside(changes: str) -> str:
    """The name of the origin of a file of changes."""
    folder, name = os.path.split(changes)
    return os.path.join(folder, f".{name}.origin")


def load(changes: str) -> Origin | None:
    """The origin beside a file of changes; None if there is none, or if it is of another file."""
    try:
        values = json.loads(Path(path_beside(changes)).read_bytes())
        if values.pop("version") != VERSION:
            return None
        values["segments"] = tuple(OriginSegment(*numbers) for numbers in values["segments"])
        for name in ("changes", "old", "new"):
            values[name] = OutputIdentity(**values[name])
        found = Origin(**values)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.changes == OutputIdentity.of(changes) else None


def origin_of(changes: str, old: Collection, new: Collection) -> Origin:
    """Find out what has to be known of two outputs for the new one to be made from the old one."""
    compression, level = compression_used(new)
    return Origin(
        OutputIdentity.of(changes),
        OutputIdentity.of(old.path),
        OutputIdentity.of(new.path),
        compression,
        level,
        tuple(OriginSegment(entry.first_id, entry.documents, entry.crc) for entry in new.entries()),
    )


def compression_used(output: Collection) -> tuple[Compression, int]:
    """How an output was compressed: the level that gives the bytes of its first segment again.

    Level 2, the usual one, if none does.
    """
    compression = output.compression
    first: Iterator[Entry] = output.entries()
    for entry in first:
        raw, stored = output.read(entry), output.stored(entry)
        for level in _LEVELS[compression]:
            if compress(raw, compression, level).data == stored:
                return compression, level
        break
    return compression, 2
