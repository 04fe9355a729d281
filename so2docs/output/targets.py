"""What a command may write to, and the names of the files next to an output.

Whoever reads a folder or a glob of outputs must not come upon index, strays, manifest and lock. A
name that starts with a dot keeps out of what folders are read with (Spark, Arrow, Hugging Face,
shells) and one that does not end like data out of the globs of those that take names with a dot,
too (DuckDB, Polars, ClickHouse). They are named after the whole output, so that those of two
formats do not meet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from so2docs.errors import OutputError, OutputExistsError, flag

INDEX, STRAYS, MANIFEST, LOCK, RECORD = "index", "strays", "manifest", "lock", "record"


def side_file(output: str, what: str) -> str:
    """The file next to an output that holds its index, its strays or its manifest."""
    folder, name = os.path.split(output)
    return os.path.join(folder, f".{name}.{what}")


@dataclass(frozen=True, slots=True)
class TargetKind:
    """Files that a command writes next to its work, and that replace only their own kind.

    Attributes:
        name: What one is called.
        option: The option that names it.
        starts: What they start with.
    """

    name: str
    option: str
    starts: tuple[bytes, ...]


REPORT = TargetKind(
    "report", flag("report"), (b"{\n  ", b"[\n  ", b"[]\n")
)  # No JSON lines start so.
PAGE = TargetKind("page", flag("html"), (b"<!DOCTYPE html>",))


def check_folder(path: str, advice: str = "choose another output") -> None:
    """Refuse to write where there is no folder, or where it is closed.

    Raises:
        OutputError: The folder of a file is missing or not writable.
    """
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise OutputError(f"{path}: the folder {folder} {describe_missing_folder(folder, advice)}")
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{path}: the folder {folder} is not writable; {advice}")


def describe_missing_folder(folder: str, advice: str) -> str:
    """Describe why a path is not a folder, with advice."""
    if os.path.exists(folder):
        return f"is a file, not a folder; {advice}"
    return "does not exist; create it first"


def refuse_existing(path: str, *, force: bool, advice: str = "choose another output") -> None:
    """Refuse to overwrite a file, unless forced.

    Raises:
        OutputError: It exists.
    """
    if not force and os.path.exists(path):
        raise OutputExistsError(
            f"{path}: exists; {advice}, or overwrite with {flag('force', True)}"
        )


def check_replaceable(path: str, read: Iterable[str | None] = ()) -> None:
    """Refuse to replace anything but a file, or a file that is read.

    Args:
        path: A name that may exist or not.
        read: Files that are read; None for an input that is not a file.

    Raises:
        OutputError: It is a folder, a device, a pipe, or one of those, by whatever link.
    """
    if os.path.isdir(path):
        raise OutputError(f"{path}: is a folder; give the name of a file")
    if os.path.exists(path) and not os.path.isfile(path):
        raise OutputError(
            f"{path}: is a device or a pipe, which a file would replace; choose another output "
            "(- is standard output)"
        )
    for file in read:
        if file and is_same(path, file):
            raise OutputError(f"{path}: is also an input; choose another output")


def check_own(path: str, kind: TargetKind, read: Iterable[str] = ()) -> None:
    """Refuse to write a report or a page where that cannot be, or over anything else.

    Args:
        path: Its name.
        kind: What it is.
        read: Files that are read or written by the same command.

    Raises:
        OutputError: It cannot be written there, or something else is there.
    """
    advice = f"choose another {kind.option}"
    if not path:
        raise OutputError(
            f"the name of the {kind.name} is empty, as an unset variable is; {advice}"
        )
    is_folder, is_device = os.path.isdir(path), os.path.exists(path) and not os.path.isfile(path)
    if is_folder or (is_device and not os.access(path, os.W_OK)):
        raise OutputError(f"{path}: the {kind.name} cannot be written there; {advice}")
    if not is_device:
        check_folder(path, advice)
    for other in read:
        if os.path.realpath(path) == os.path.realpath(other) or is_same(path, other):
            raise OutputError(f"{path}: is the same file as {other}; {advice}")
    if os.path.isfile(path) and os.path.getsize(path):
        with open(path, "rb") as file:
            start = file.read(max(map(len, kind.starts)))
        if not start.startswith(kind.starts):
            raise OutputError(f"{path}: exists and is not a {kind.name}; {advice}")


def is_same(path: str, other: str) -> bool:
    """Whether two names lead to one file, which hard and symbolic links can bring about."""
    return os.path.exists(path) and os.path.exists(other) and os.path.samefile(path, other)
