"""Find the outputs in a folder, by site."""

from __future__ import annotations

import os
from collections import Counter

from so2docs.dump.names import members_with
from so2docs.dump.storage import list_folder
from so2docs.options.choices import FORMATS, split_compression
from so2docs.output.new_files import open_folder
from so2docs.output.paths import OutputPaths
from so2docs.plugin import (
    POSTS,
    OptionError,
    OutputError,
    read_provenance,
    unreadable_output,
    without_date,
)

_LINES = FORMATS["jsonl"].extensions


def is_folder_of_outputs(path: str) -> bool:
    """Whether a path is a folder other than the folder of a single dump."""
    return os.path.isdir(path) and len(members_with(POSTS, list_folder(path))) != 1


def outputs_in(folder: str) -> dict[str, list[str]]:
    """List the outputs in a folder by site.

    Outputs are recognized by file name, so damaged ones are included. A date or release before or
    after the name of a published site is removed, unless two outputs would then have the same site,
    as with the files of a split output.

    Returns:
        The paths of the outputs by site, in the order of the sites. A site has several paths if it
        has outputs in several formats.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except NotADirectoryError:
        raise OptionError(f"{folder}: is a file; give a folder of outputs") from None
    except OSError as error:
        raise unreadable_output(folder, error) from error
    by_stem: dict[str, list[str]] = {}
    for name in names:
        path = os.path.join(folder, name)
        if _is_output(path, name):
            by_stem.setdefault(OutputPaths(name, None).stem, []).append(path)
    sites = Counter(map(without_date, by_stem))
    outputs = {
        site if sites[site := without_date(stem)] == 1 else stem: paths
        for stem, paths in by_stem.items()
    }
    return dict(sorted(outputs.items()))


def _is_output(path: str, name: str) -> bool:
    plain, _ = split_compression(name)
    if name.startswith("."):
        return False
    # Exclude reports, which also end in .json.
    if plain.endswith(".json"):
        return read_provenance(path) is not None
    return plain.endswith(tuple(end for kind in FORMATS.values() for end in kind.extensions))


def readable(paths: list[str]) -> str:
    """Choose which output of a site to read: the one in JSON lines, or else the first."""
    lines = [path for path in paths if any(end in os.path.basename(path) for end in _LINES)]
    if len(lines) > 1:
        names = " and ".join(map(os.path.basename, lines))
        raise OutputError(f"{names} are outputs of the same site; move away all but one")
    return lines[0] if lines else paths[0]


def open_new_folder(folder: str | os.PathLike[str] | None, *read: str) -> str:
    """Make an output folder, and return its path; `read` are the input folders.

    Raises:
        OptionError: The name is empty, or the folder is one of the input folders.
        OutputError: The folder cannot be made.
    """
    path = "" if folder is None else os.fspath(folder)
    if path in ("", "-"):
        raise OptionError("outputs of several sites go to a folder; give its name")
    try:
        open_folder(path)
    except OSError as error:
        raise unreadable_output(path, error) from error
    for other in read:
        if os.path.samefile(path, other):
            raise OptionError(f"{path}: is also an input; choose another folder")
    return path
