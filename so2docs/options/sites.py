"""Which site a dump is of, as far as its name tells."""

from __future__ import annotations

import os
import re
from pathlib import Path

from so2docs.errors import OptionError
from so2docs.recipes.attribution import checked_host, host_of

_EXTENSION = re.compile(r"\.(?:7z|zip|gz|bz2|xz|zst|xml)$", re.IGNORECASE)
_TABLE = re.compile(r"(?:^|[-_.])posts$", re.IGNORECASE)


def site_of(source: str | os.PathLike[str]) -> str:
    """The site that a dump is of, as far as its name tells.

    `beer.stackexchange.com.7z` and `beer.stackexchange.com/Posts.xml` are of
    `beer.stackexchange.com`, `stackoverflow.com-Posts.7z` is of `stackoverflow.com`.

    Raises:
        OptionError: It is standard input, which has no name.
    """
    if source == "-":
        raise OptionError("standard input has no name; give the name of a file")
    path = Path(source)
    if path.is_dir():
        return path.resolve().name
    name = path.name
    while shorter := _EXTENSION.sub("", name):
        if shorter == name:
            break
        name = shorter
    return _TABLE.sub("", name) or path.resolve().parent.name


def host(source: object, given: str | None) -> str:
    """The host name of the site that a dump is of.

    Args:
        source: What the dump is read from.
        given: What the user says that it is; None: what the name of the dump says.

    Raises:
        OptionError: It is none, or cannot be told.
    """
    if given is not None:
        return checked_host(given)
    if isinstance(source, str | os.PathLike) and source != "-":
        return host_of(site_of(source))
    raise OptionError(
        "the host name of the site cannot be told: the dump has no name; "
        "give it, as in --site beer.stackexchange.com"
    )
