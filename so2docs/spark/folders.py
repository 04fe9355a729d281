"""The folder of a site: drafts of each attempt, published as a whole, marked when finished."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from so2docs.errors import DumpError, OutputError, So2docsError
from so2docs.sources import storage

SUCCESS = "_SUCCESS"
ERROR = "_error.xml"
PART = "part-"
STRAYS = ".strays"
_TEMPORARY = "_temporary"
_OURS = (PART, STRAYS, "_strays", _TEMPORARY, SUCCESS, ERROR)


def names_in(folder: str) -> list[str]:
    """Names of the files in the folder of a site, none if there is no folder.

    Raises:
        OutputError: It is a file, or holds what so2docs did not write.
    """
    try:
        names = storage.listed(folder)
    except NotADirectoryError:
        raise OutputError(f"{folder}: is a file; choose another output") from None
    if others := [name for name in names if not name.startswith(_OURS)]:
        raise OutputError(
            f"{folder}: holds {others[0]}, which so2docs did not write; "
            "choose another output, or move it away"
        )
    return names


def begin(folder: str) -> None:
    """Mark the folder of a site as unfinished. Earlier files stay until they are replaced.

    Raises:
        OutputError: It cannot be written.
    """
    try:
        for name in (SUCCESS, ERROR, _TEMPORARY):
            storage.remove(storage.join(folder, name))
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror or error}") from error


@contextmanager
def draft(folder: str) -> Iterator[str]:
    """A folder of this attempt's own, on the disk of the output where that is a disk."""
    storage.make_folder(folder)
    if storage.is_url(folder):
        with temporary_folder() as found:
            yield found
    else:
        common = os.path.join(folder, _TEMPORARY)
        os.makedirs(common, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=common, ignore_cleanup_errors=True) as found:
            yield found


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder where Spark keeps its own temporary files, removed with them at the latest."""
    places = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
    return tempfile.TemporaryDirectory(
        prefix="so2docs-", dir=next((place for place in places if os.path.isdir(place)), None)
    )


def publish(folder: str, made: Mapping[str, str]) -> None:
    """Give finished files their place. Another attempt does the same with the same bytes.

    Args:
        folder: The folder of the site.
        made: The files by their names there.
    """
    for name, path in made.items():
        storage.publish(path, storage.join(folder, name))


def finish(folder: str, names: set[str]) -> None:
    """Remove what an earlier conversion left, and mark a folder as finished.

    Args:
        folder: The folder of the site.
        names: The files that are there to stay.
    """
    for name in storage.listed(folder):
        if name.startswith((PART, STRAYS)) and name not in names:
            storage.remove(storage.join(folder, name))
    storage.write(storage.join(folder, SUCCESS), b"")
    with suppress(OSError):  # Of an attempt that still runs, and whose result nobody wants.
        storage.remove(storage.join(folder, _TEMPORARY))


@dataclass(frozen=True, slots=True)
class SiteEnd:
    """How a site that several tasks have written ends.

    Attributes:
        folder: The folder of the site.
        names: The files that are there to stay.
        error: Why the site cannot be converted; None if it is finished.
    """

    folder: str
    names: set[str]
    error: So2docsError | None = None


def end(task: SiteEnd) -> None:
    """Mark the folder of a site as finished, or clear it and show what is wrong."""
    if task.error is None:
        finish(task.folder, task.names)
        return
    for name in storage.listed(task.folder):
        if name.startswith(_OURS):
            storage.remove(storage.join(task.folder, name))
    if isinstance(task.error, DumpError):
        save_excerpt(task.folder, task.error)


def save_excerpt(folder: str, error: DumpError) -> None:
    """Save the bytes that show what is wrong with a dump; the error loses them if that fails."""
    if not folder or error.excerpt is None:
        return
    try:
        storage.make_folder(folder)
        storage.write(storage.join(folder, ERROR), error.excerpt)
    except OSError:
        error.excerpt = None
