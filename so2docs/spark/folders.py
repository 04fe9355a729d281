"""The folder of a site: drafts of each attempt, published as a whole, marked when finished."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from so2docs.errors import DumpError, OutputError, So2docsError
from so2docs.report import Report
from so2docs.sources import storage

SUCCESS = "_SUCCESS"
ERROR = "_error.xml"
PART = "part-"
STRAYS = ".strays"
_TEMPORARY = "_temporary"
_OURS = (PART, STRAYS, "_strays", _TEMPORARY, SUCCESS, ERROR)


def names_in(folder: str) -> list[str]:
    """Names of the files in the folder of a site; an error if so2docs did not write them."""
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
    """Mark the folder of a site as unfinished. Earlier files stay until they are replaced."""
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


def publish(folder: str, draft: str, report: Report, number: int = 0) -> set[str]:
    """Give finished files their places, under the names that are returned; complete the report.

    Another attempt does the same with the same bytes. `number` is the one of the side file, whose
    name is not that of data to readers.
    """
    made = {}
    if report.questions:
        made = {
            name: os.path.join(draft, name) for name in os.listdir(draft) if name.startswith(PART)
        }
    else:
        report.files = report.output_bytes = 0
    if report.strays_path is not None:
        name = f"{STRAYS}-{number:05}"
        made[name], report.strays_path = report.strays_path, name
    for name, path in made.items():
        storage.publish(path, storage.join(folder, name))
    return set(made)


def finish(folder: str, names: set[str]) -> None:
    """Remove all but these files, which an earlier conversion left, and mark it as finished."""
    for name in storage.listed(folder):
        if name.startswith((PART, STRAYS)) and name not in names:
            storage.remove(storage.join(folder, name))
    storage.write(storage.join(folder, SUCCESS), b"")
    with suppress(OSError):  # Of an attempt that still runs, and whose result nobody wants.
        storage.remove(storage.join(folder, _TEMPORARY))


def end(task: tuple[str, set[str] | So2docsError]) -> None:
    """Mark a folder that several tasks have written as finished, or clear it for an error."""
    folder, result = task
    if isinstance(result, set):
        finish(folder, result)
        return
    for name in storage.listed(folder):
        if name.startswith(_OURS):
            storage.remove(storage.join(folder, name))
    if isinstance(result, DumpError):
        save_excerpt(folder, result)


def save_excerpt(folder: str, error: DumpError) -> None:
    """Save the bytes that show what is wrong with a dump; the error loses them if that fails."""
    if not folder or error.excerpt is None:
        return
    try:
        storage.make_folder(folder)
        storage.write(storage.join(folder, ERROR), error.excerpt)
    except OSError:
        error.excerpt = None
