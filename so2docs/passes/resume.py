"""What a spill was made from: whether it belongs to the conversion that wants to go on with it."""

from __future__ import annotations

import os
from collections.abc import Container
from hashlib import blake2b
from typing import Any

from so2docs import spill
from so2docs.errors import SpillError
from so2docs.sources import storage
from so2docs.sources.stream import AnyDump
from so2docs.sources.tables import TableFile
from so2docs.spill import Spill

_SAMPLES = 16
_SAMPLE_BYTES = 4096

_NAMES = {
    "size": "size of the dump",
    "modified": "modification time of the dump",
    "content": "content of the dump",
    "format": "format of the spill (another version of so2docs)",
}


def fingerprint(dump: AnyDump | TableFile) -> dict[str, Any]:
    """What tells a dump from another: size, time, and its bytes at 17 places."""
    if dump.file is None:
        # What can be read only once is like nothing else.
        return {"format": spill.FORMAT, "size": 0, "modified": 0, "content": os.urandom(16).hex()}
    digest = blake2b(digest_size=16)
    size = dump.identity[0]
    with storage.open_file(dump.file) as file:
        for part in range(_SAMPLES + 1):
            file.seek(max(0, size * part // _SAMPLES - _SAMPLE_BYTES))
            digest.update(file.read(_SAMPLE_BYTES))
    return {
        "format": spill.FORMAT,
        "size": size,
        "modified": dump.identity[1],
        "content": digest.hexdigest(),
    }


def claim(
    found: Spill,
    dump: AnyDump,
    chunk_bytes: int,
    options: dict[str, Any],
    of_the_spill: Container[str] = frozenset({"--skip-malformed"}),
) -> int:
    """Make sure that a spill was made from this dump with these options, or mark it so.

    Args:
        found: The spill, new or from an earlier session.
        dump: The dump to convert.
        chunk_bytes: Bytes of a chunk, where the spill is new.
        options: What changes the output, by the name that users know.
        of_the_spill: Names of those that change what the first pass makes.

    Returns:
        Bytes of a chunk.

    Raises:
        SpillError: It was made from something else.
    """
    source = fingerprint(dump)
    made_from = found.get("source")
    if made_from is None:
        found.put_all({"source": source, "options": options, "chunk_bytes": chunk_bytes})
        return chunk_bytes
    found.check()
    differences = [label for name, label in _NAMES.items() if made_from.get(name) != source[name]]
    before = found.get("options")
    # Chunks without malformed rows are the same with and without --skip-malformed, and of a
    # finished conversion only the first pass is used again.
    free = {"--skip-malformed"} if options["--skip-malformed"] else set()
    if found.get("finished"):
        free |= {name for name in options if name not in of_the_spill}
    differences += [
        name for name in options if name not in free and before.get(name) != options[name]
    ]
    if differences:
        raise _another(found, differences)
    found.put_all({"options": options, "finished": False})
    return int(found.get("chunk_bytes"))


def _another(found: Spill, differences: list[str]) -> SpillError:
    advice = "run with --restart to start over, or choose another --work-dir"
    if found.get("sealed"):
        advice = (
            "that one has written its output: end it as it began, or run with --restart --force"
        )
    return SpillError(
        f"{found.folder}: was made for another conversion "
        f"(different: {', '.join(sorted(differences))}); {advice}"
    )


def claim_table(found: Spill, file: TableFile, chunk_bytes: int) -> int:
    """Make sure that what a spill has of a table was made from this file, or mark it so.

    Args:
        found: The spill, which `claim` found to be this conversion's.
        file: The table.
        chunk_bytes: Bytes of a chunk, where the spill has nothing of the table.

    Returns:
        Bytes of a chunk.

    Raises:
        SpillError: It was made from another file.
    """
    source = fingerprint(file)
    table = file.table
    made_from = found.get(table.name)
    if made_from is None:
        found.put(table.name, {"source": source, "chunk_bytes": chunk_bytes})
        return chunk_bytes
    if made_from["source"] != source:
        raise _another(found, [table.file])
    return int(made_from["chunk_bytes"])
