"""Reading documents back, one at a time."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import orjson
from isal import igzip

from so2docs.errors import OutputError

_GZIP_MAGIC = b"\x1f\x8b"


def read(path: str | os.PathLike[str] | BinaryIO) -> Iterator[dict[str, Any]]:
    """Read the documents of an output (or of any JSON lines), streamed.

    Args:
        path: A file name, or an open binary file, which is left open. Compressed by gzip or not.

    Yields:
        One question a time, its answers under `Answers`.

    Raises:
        OutputError: The file cannot be opened, is damaged, or a line is not JSON.
    """
    if not isinstance(path, str | os.PathLike):
        yield from _read(path, getattr(path, "name", "the file"))
        return
    name = os.fspath(path)
    try:
        file = open(name, "rb")  # noqa: SIM115
    except OSError as error:
        raise OutputError(f"{name}: cannot be read: {error.strerror or error}") from error
    with file:
        yield from _read(file, name)


def _read(file: BinaryIO, name: str) -> Iterator[dict[str, Any]]:
    start = file.read(len(_GZIP_MAGIC))
    file.seek(-len(start), os.SEEK_CUR)
    opened: Any = igzip
    lines = opened.open(file) if start == _GZIP_MAGIC else file
    number = 1
    try:
        for line in lines:
            yield orjson.loads(line)
            number += 1
    except orjson.JSONDecodeError as error:
        raise OutputError(f"{name}: line {number:,} is not JSON ({error})") from None
    except (EOFError, OSError, zlib.error) as error:
        raise OutputError(
            f"{name}: is damaged or cut off in line {number:,} ({error}); convert the dump again"
        ) from error
