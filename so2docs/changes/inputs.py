"""What to compare: outputs as they are, dumps converted on the way."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from so2docs.conversion import convert_checked
from so2docs.errors import DiskFullError, DumpError, OutputError, flag, resumable
from so2docs.lookup.collection import Collection
from so2docs.lookup.collection import open as open_output
from so2docs.lookup.file_kinds import is_output, start_of
from so2docs.progress import log
from so2docs.store.disk import is_full


@contextmanager
def opened(
    path: str, *, work_dir: str | None, progress: bool, **options: Any
) -> Iterator[Collection]:
    """Open an output, or convert a dump into a temporary one and open that.

    Args:
        path: An output or a dump.
        work_dir: Folder for a dump's output, which is removed at the end; the system's temporary
            folder if None.
        progress: Show progress bars.
        options: Of the conversion.

    Raises:
        So2docsError: As `convert` and `open` do.
    """
    if not os.path.isdir(path) and is_output(path, start_of(path)):
        with open_output(path, progress=progress) as found:
            yield found
        return
    try:
        folder = tempfile.TemporaryDirectory(prefix="so2docs-", dir=work_dir)
    except OSError as error:
        kind = DiskFullError if is_full(error) else OutputError
        raise kind(
            f"{work_dir or tempfile.gettempdir()}: cannot be written: {error.strerror}; "
            f"choose another {flag('work_dir')}"
        ) from error
    # Nothing stays of what was converted, neither to resume from nor to look at.
    with folder as name, resumable(False):
        made = os.path.join(name, "questions.jsonl.gz")
        log.info("%s: is a dump; converting it first", path)
        try:
            convert_checked(path, made, {**options, "progress": progress, "level": 1})
        except DumpError as error:
            error.excerpt_path = None
            raise
        with open_output(made, progress=progress) as found:
            yield found
