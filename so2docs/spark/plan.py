"""Which dumps, under which names: pure."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from so2docs.errors import OptionError
from so2docs.sources import storage

Dumps = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]

_HADOOP = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/(?!/)")


@dataclass(frozen=True, slots=True)
class PlannedSite:
    """A dump.

    Attributes:
        name: What its folder, and `Site` in its documents, is called.
        path: The dump, or the folder that it is in.
        folder: Where its files go; empty for a data frame.
    """

    name: str
    path: str
    folder: str = ""


def located(path: str | os.PathLike[str]) -> str:
    """A path that means the same in every process, whatever its current folder.

    Hadoop writes a URL without a host with one slash (`file:/x`), fsspec with three.
    """
    name = _HADOOP.sub(r"\1:///", os.fspath(path), count=1)
    return name if storage.is_url(name) else os.path.abspath(name)


def patterns(source: Dumps) -> list[str]:
    """The paths and patterns that were given.

    Raises:
        OptionError: There is none.
    """
    several = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not several:
        raise OptionError("no dump is given; give a path or a pattern")
    return [located(one) for one in several]


def is_several(source: Dumps) -> bool:
    """Whether a source may stand for several dumps."""
    return not isinstance(source, str | os.PathLike) or glob.has_magic(os.fspath(source))


def sites(paths: Sequence[str], folder: str) -> list[PlannedSite]:
    """Name the dumps.

    Args:
        paths: The dumps.
        folder: The folder for the folders of all; empty for a data frame.
    """
    return [
        PlannedSite(name, path, storage.join(folder, *name.split("/")) if folder else "")
        for name, path in zip(names(paths), paths, strict=True)
    ]


def names(dumps: Sequence[str]) -> list[str]:
    """A name for each dump: its folder if the file is `Posts.xml`, else its file name.

    Dumps that would share a name (several dates of one site) get the folders above as well, as
    many for all as it takes to tell them apart.

    Raises:
        OptionError: Two dumps cannot be told apart.
    """
    places = [_place(path) for path in dumps]
    for depth in range(1, max(map(len, places)) + 1):
        found = ["/".join(place[-depth:]) for place in places]
        if len(set(found)) == len(found):
            return found
    raise OptionError(f"two dumps have the same name, such as {dumps[0]}; convert them one by one")


def _place(path: str) -> list[str]:
    """Folders and name of a dump, without the parts that all dumps have."""
    if storage.is_url(path):
        parts = path.partition("://")[2].strip("/").split("/")
    else:
        parts = os.path.abspath(path).strip(os.sep).split(os.sep)
    stem = parts[-1].partition(".7z")[0]
    for extension in (".zip", ".gz", ".bz2", ".xz", ".zst", ".xml"):
        stem = stem.removesuffix(extension)
    stem = stem.removesuffix("-Posts")
    place = parts[:-1] if stem == "Posts" else [*parts[:-1], stem]
    return [part for part in place if part not in ("", ".", "..")] or ["posts"]
