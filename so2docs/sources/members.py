"""Which member of an archive, or file of a folder, holds the posts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_POSTS = re.compile(r"posts\.xml", re.IGNORECASE)
_PACKED_POSTS = re.compile(r"(?:.*[-_.])?posts(?:\.xml)?\.(?:7z|zip|gz|bz2|xz|zst)", re.IGNORECASE)
_ARCHIVE = re.compile(r".*\.7z", re.IGNORECASE)
_MOST_NAMES = 12


def posts_among(names: Sequence[str]) -> list[str]:
    """The names that may hold the posts: `Posts.xml` in any case, or an archive of it.

    Args:
        names: Paths with slashes.

    Returns:
        One name, if it is clear which; none, or several.
    """
    for pattern in (_POSTS, _PACKED_POSTS, _ARCHIVE):
        if found := [name for name in names if pattern.fullmatch(name.rpartition("/")[2])]:
            # Of a tree, the topmost.
            depth = min(name.count("/") for name in found)
            return [name for name in found if name.count("/") == depth]
    return []


def listed(names: Iterable[str]) -> str:
    """Names for a message, not too many."""
    found = list(names)
    if not found:
        return "nothing"
    more = len(found) - _MOST_NAMES
    return ", ".join(found[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
