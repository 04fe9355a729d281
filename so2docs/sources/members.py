"""Which member of an archive, or file of a folder, holds what is looked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_PACKED = r"(?:7z|zip|gz|bz2|xz|zst)"
_TABLE = re.compile(
    r"(?:.*[-_.])?(?:posts|comments|postlinks|votes|users|posthistory|badges|tags)(?:\.xml)?\.7z",
    re.IGNORECASE,
)
_ARCHIVE = re.compile(r".*\.7z", re.IGNORECASE)
_MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class DumpFile:
    """A file of a dump: the one that is looked for.

    Attributes:
        file: Its name, such as `Posts.xml`.
        rows: What is in it, for messages.
    """

    file: str
    rows: str

    @property
    def row(self) -> str:
        """What one row of it is called."""
        return self.rows.removesuffix("s")

    @property
    def root(self) -> str:
        """The name of its root element, which is what tells one table from another."""
        return self.stem.lower()

    @property
    def stem(self) -> str:
        """Its name without `.xml`."""
        return self.file.removesuffix(".xml")

    def among(self, names: Sequence[str]) -> list[str]:
        """The names that may hold it: the file itself in any case, or an archive of it.

        An archive that is named after no table, as that of a whole site is, may hold every one.

        Args:
            names: Paths with slashes.

        Returns:
            One name, if it is clear which; none, or several.
        """
        return self._matching(names, "(?:.*[-_.])?") or _topmost(
            [name for name in names if _ARCHIVE.fullmatch(_base(name))]
            if self == POSTS
            else [name for name in names if _is_of_site(name)]
        )

    def beside(self, names: Sequence[str], prefix: str) -> list[str]:
        """The names that may hold it, of files whose names start with `prefix`."""
        return self._matching(names, re.escape(prefix), plain=re.escape(prefix))

    def _matching(self, names: Sequence[str], packed: str, plain: str = "") -> list[str]:
        patterns = (
            rf"{plain}{self.stem}\.xml",
            rf"{packed}{self.stem}(?:\.xml)?\.{_PACKED}",
        )
        for pattern in patterns:
            matches = re.compile(pattern, re.IGNORECASE).fullmatch
            if found := [name for name in names if matches(_base(name))]:
                return _topmost(found)
        return []

    def prefix_of(self, name: str) -> str | None:
        """What stands before the table in a file's name: `stackoverflow.com-`, or nothing.

        None if the name is not that of this table.
        """
        pattern = rf"(.*[-_.])?{self.stem}(?:\.xml)?(?:\.{_PACKED})?"
        found = re.fullmatch(pattern, name, re.IGNORECASE)
        return None if found is None else found[1] or ""


POSTS = DumpFile("Posts.xml", "posts")


def _base(name: str) -> str:
    return name.rpartition("/")[2]


def _is_of_site(name: str) -> bool:
    return bool(_ARCHIVE.fullmatch(_base(name))) and not _TABLE.fullmatch(_base(name))


def _topmost(names: list[str]) -> list[str]:
    """Of a tree, the names nearest to its root."""
    depth = min((name.count("/") for name in names), default=0)
    return [name for name in names if name.count("/") == depth]


def listed(names: Iterable[str]) -> str:
    """Names for a message, not too many."""
    found = list(names)
    if not found:
        return "nothing"
    more = len(found) - _MOST_NAMES
    return ", ".join(found[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
