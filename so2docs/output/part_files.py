"""Output files under their provisional names: whether they are as they were left, and renamed."""

from __future__ import annotations

import os
from pathlib import Path

from isal import isal_zlib

from so2docs.output import index
from so2docs.output.file import output_error

_READ_BYTES = 4 * 1024 * 1024


def is_as_left(path: str, checkpoint: dict[str, int] | None) -> bool:
    """Whether the `.part` file of an output begins with what a checkpoint says that it has.

    Reads it, at the speed of the disk: far less than writing it again, and the length alone would
    not show a byte that changed, nor what a power cut left unwritten.
    """
    left = checkpoint["size"] if checkpoint else 0
    if not checkpoint or not left:
        return True
    crc, logged = 0, checkpoint.get("logged", 0)
    try:
        if logged and os.path.getsize(f"{path}.part.pieces") < logged:
            return False
        with open(f"{path}.part", "rb", buffering=0) as file:
            while left and (data := file.read(min(left, _READ_BYTES))):
                crc = isal_zlib.crc32(data, crc)
                left -= len(data)
    except OSError:
        return False
    return not left and crc == checkpoint["file_crc"]


def publish(path: str, size: int) -> bool:
    """Give a sealed file its name, unless an earlier session already did.

    Returns:
        Whether a file of that size has it.
    """
    if path == "-":
        return True
    try:
        if os.path.exists(f"{path}.part"):
            os.replace(f"{path}.part", path)
            index.remove_former(path)
        Path(f"{path}.part.pieces").unlink(missing_ok=True)
        return os.path.getsize(path) == size
    except FileNotFoundError:
        return False
    except OSError as error:
        raise output_error(path, error) from error
