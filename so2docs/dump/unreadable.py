"""Errors for files that cannot be read, with advice such as similar names."""

from __future__ import annotations

import os

from so2docs.dump.storage import is_url
from so2docs.errors import DumpError, DumpNotFoundError, OutputError, OutputNotFoundError

_SHOWN = 5


def check_exists(path: str) -> None:
    """Raise `DumpError` if a path does not exist; URLs are not checked."""
    try:
        if not is_url(path):
            os.stat(path)
    except OSError as error:
        raise unreadable_dump(path, error) from error


def unreadable_dump(path: str, error: Exception) -> DumpError:
    """Make the error for an unreadable dump or file of a dump, with advice."""
    if isinstance(error, DumpError):
        return error
    kind = DumpNotFoundError if isinstance(error, FileNotFoundError) else DumpError
    return kind(path, _unreadable(path, error))


def unreadable_output(path: str, error: Exception) -> OutputError:
    """Make the error for an unreadable output or side file."""
    if is_url(path):
        return OutputError(f"{path}: is a URL, but outputs are read from files; download it first")
    kind = OutputNotFoundError if isinstance(error, FileNotFoundError) else OutputError
    return kind(f"{path}: {_unreadable(path, error)}")


def _unreadable(path: str, error: Exception) -> str:
    reason = getattr(error, "strerror", None) or error
    return f"cannot be read: {reason}; {_advice(path, error)}"


def _advice(path: str, error: Exception) -> str:
    if is_url(path):
        return "check the URL and your access to its store"
    if not path:
        return "the name is empty, perhaps from an unset variable; give a file"
    if path.startswith("~"):
        return "write ~ without quotes, so that the shell replaces it with your home folder"
    # If a parent is a file, Windows raises FileNotFoundError, other systems NotADirectoryError.
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        existing = _existing_part(path)
        return f"{existing} is a file, not a folder" if os.path.isfile(existing) else _nearest(path)
    kinds: dict[type[Exception], str] = {
        PermissionError: "ask its owner to let you read it",
        IsADirectoryError: "name a file in it",
    }
    return kinds.get(type(error), "check its disk, then try again")


def _nearest(path: str) -> str:
    """Advise on a path that does not exist: a broken link, a missing folder, or similar names."""
    from difflib import get_close_matches

    if os.path.islink(path):
        return f"it is a link to {os.readlink(path)}, which does not exist"
    folder, name = os.path.split(path.rstrip("/"))
    existing = _existing_part(path)
    if existing != (folder or "."):
        missing = os.path.relpath(path, existing).split(os.sep)[0]
        return f"{missing} does not exist in {_called(existing)}"
    try:
        names = sorted(entry for entry in os.listdir(existing) if not entry.startswith("."))
    except OSError:
        return f"check the name in {_called(existing)}"
    by_case = {entry.lower(): entry for entry in reversed(names)}
    if near := get_close_matches(name.lower(), by_case, n=3, cutoff=0.75):
        alike = " or ".join(os.path.join(folder, by_case[entry]) for entry in near)
        return f"did you mean {alike}?"
    if not names:
        return f"there is nothing in {_called(existing)}"
    remainder = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{_called(existing)} holds {', '.join(names[:_SHOWN])}{remainder}"


def _existing_part(path: str) -> str:
    """Find the longest part of a path that exists."""
    while path and not os.path.exists(path):
        path = os.path.dirname(path.rstrip("/"))
    return path or "."


def _called(folder: str) -> str:
    return "this folder" if folder == "." else folder
