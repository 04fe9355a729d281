"""What a spill was made from: whether it belongs to the conversion that wants to resume it."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

from so2docs.dump.tables import TableFile
from so2docs.errors import SpillError, flag
from so2docs.options.fingerprint import Fingerprint
from so2docs.options.table import Options
from so2docs.spill import FORMAT, Spill


@dataclass(frozen=True, slots=True)
class SourceState:
    """What the blocks of a table were made from, and how it was cut.

    Attributes:
        format: Version of the spill.
        size: Bytes of the file.
        modified: Its modification time, in ns.
        content: Hash of its bytes at 17 places.
        chunk_bytes: Bytes of a chunk; 0 for pieces that grow with the stream.
    """

    format: int
    size: int
    modified: int
    content: str
    chunk_bytes: int

    @classmethod
    def of(cls, file: TableFile, chunk_bytes: int) -> SourceState:
        """Look at a file."""
        source = file.source
        if source is None or not source.is_file:
            # What can be read only once is like nothing else.
            return cls(FORMAT, 0, 0, os.urandom(16).hex(), chunk_bytes)
        size, modified, _ = source.identity
        return cls(FORMAT, size, modified, source.digest, chunk_bytes)

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> SourceState:
        """What `to_json` returned."""
        return cls(**values)

    def differences(self, other: SourceState) -> list[str]:
        """In what another file differs, in words."""
        labels = {
            "size of the dump": self.size == other.size,
            "modification time of the dump": self.modified == other.modified,
            "content of the dump": self.content == other.content,
        }
        return [label for label, is_same in labels.items() if not is_same]


def claim(spill: Spill, posts: TableFile, chunk_bytes: int, options: Options) -> int:
    """Make sure that a spill was made from this dump with these options, or mark it so.

    Args:
        spill: The spill, new or from an earlier session.
        posts: The posts of the dump to convert.
        chunk_bytes: Bytes of a chunk, where the spill is new.
        options: How to convert.

    Returns:
        Bytes of a chunk.

    Raises:
        SpillError: It was made from something else.
    """
    asked = Fingerprint.of(options)
    now = SourceState.of(posts, chunk_bytes)
    values = spill.get("source")
    if values is None:
        spill.put_all({"source": now.to_json(), "options": asked.to_json()})
        return chunk_bytes
    spill.check()
    if values["format"] != FORMAT:
        raise _another(spill, ["format of the spill (another version of so2docs)"])
    before, asked_before = (
        SourceState.from_json(values),
        Fingerprint.from_json(spill.get("options")),
    )
    # Of a finished conversion, only the first pass is used again.
    is_finished = bool(spill.get("finished"))
    differences = before.differences(now)
    differences += asked_before.differences(asked, of_spill_only=is_finished)
    if differences:
        raise _another(spill, differences)
    spill.put_all({"options": asked.to_json(), "finished": False})
    return before.chunk_bytes


def _another(spill: Spill, differences: list[str]) -> SpillError:
    advice = f"run with {flag('restart', True)} to start over, or choose another {flag('work_dir')}"
    if spill.get("sealed"):
        advice = (
            "that one has written its output: finish it with its own options, or run with "
            f"{flag('restart', True)} and {flag('force', True)}"
        )
    elif all(what.endswith(" of the dump") for what in differences):
        advice = (
            "it was made from another dump, or from this one before it changed: run with "
            f"{flag('restart', True)} to convert the changed dump, or choose another "
            f"{flag('work_dir')}"
        )
    return SpillError(
        f"{spill.folder}: was made for another conversion "
        f"(different: {', '.join(sorted(differences))}); {advice}"
    )


def claim_table(spill: Spill, file: TableFile, chunk_bytes: int) -> int:
    """Make sure that what a spill has of a table was made from this file, or mark it so.

    Args:
        spill: The spill, which `claim` found to be this conversion's.
        file: The table.
        chunk_bytes: Bytes of a chunk, where the spill has nothing of the table.

    Returns:
        Bytes of a chunk.

    Raises:
        SpillError: It was made from another file.
    """
    now = SourceState.of(file, chunk_bytes)
    values = spill.get(file.table.name)
    if values is None:
        spill.put(file.table.name, now.to_json())
        return chunk_bytes
    before = SourceState.from_json(values)
    if before.differences(now):
        raise _another(spill, [file.table.file])
    return before.chunk_bytes
