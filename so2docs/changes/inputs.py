"""What to compare: outputs as they are, dumps converted on the way."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import zstandard
from isal import igzip

from so2docs.conversion import convert
from so2docs.errors import DiskFullError, OutputError
from so2docs.lookup.collection import Collection, Notify
from so2docs.lookup.collection import open as open_output
from so2docs.output.compression import GZIP_HEADER, ZSTD_MAGIC
from so2docs.store.disk import is_full

_HEAD_BYTES = 4096
_ARCHIVES = (b"7z\xbc\xaf\x27\x1c", b"PK\x03\x04", b"BZh", b"\xfd7zXZ\x00")
_SPACE = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"


def is_dump(path: str) -> bool:
    """Whether a path is of a dump, in any form; what is not is taken for an output.

    Raises:
        OutputError: It cannot be read.
    """
    if os.path.isdir(path):
        return True
    try:
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
            if head.startswith(GZIP_HEADER[:2]):
                file.seek(0)
                packed: Any = igzip
                head = packed.open(file).read(_HEAD_BYTES)
            elif head.startswith(ZSTD_MAGIC):
                file.seek(0)
                head = zstandard.ZstdDecompressor().stream_reader(file).read(_HEAD_BYTES)
    except (EOFError, zstandard.ZstdError):
        return False
    except OSError as error:
        if error.strerror is None:  # What igzip says of a damaged file.
            return False
        raise OutputError(f"{path}: cannot be read: {error.strerror}") from error
    return head.startswith(_ARCHIVES) or head.lstrip(_SPACE).startswith(b"<")


@contextmanager
def opened(
    path: str, *, work_dir: str | None, notify: Notify, progress: bool, **options: Any
) -> Iterator[Collection]:
    """Open an output, or convert a dump into a temporary one and open that.

    Args:
        path: An output or a dump.
        work_dir: Folder for a dump's output, which is removed at the end; the system's temporary
            folder if None.
        notify: Takes messages.
        progress: Show progress bars.
        options: Of the conversion.

    Raises:
        So2docsError: As `convert` and `open` do.
    """
    if not is_dump(path):
        with open_output(path, notify=notify, progress=progress) as found:
            yield found
        return
    try:
        folder = tempfile.TemporaryDirectory(prefix="so2docs-", dir=work_dir)
    except OSError as error:
        kind = DiskFullError if is_full(error) else OutputError
        raise kind(
            f"{work_dir or tempfile.gettempdir()}: cannot be written: {error.strerror}; "
            "choose another --work-dir"
        ) from error
    with folder as name:
        made = os.path.join(name, "questions.jsonl.gz")
        notify(f"{path}: is a dump; converting it first")
        convert(path, made, progress=progress, level=1, **options)
        with open_output(made, notify=notify, progress=progress) as found:
            yield found
