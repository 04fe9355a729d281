"""Derive the site of a dump from its name."""

from __future__ import annotations

import os
import re

from so2docs.domain import site_host
from so2docs.errors import OptionError, flag, without_secrets
from so2docs.escape import printable

COPY = r"(?:\s?\(\d{1,2}\)| - copy(?: \(\d{1,2}\))?| copy(?: \d{1,2})?)"
"""Pattern of what browsers and file managers add to the name of a second copy: `SITE (1).7z`."""
NUMBER = r"(?:\.[1-9]\d?)"
"""Pattern of what wget adds to the name of a second copy: `SITE.7z.1`."""

_EXTENSIONS = re.compile(
    rf"(?<!^)(?:\.(?:7z|zip|gz|bz2|xz|zst|xml|tar|tgz|tbz2?|txz|tzst))+{NUMBER}?$", re.IGNORECASE
)
_TABLE = re.compile(rf"(?:^|[-_.])posts{COPY}?$", re.IGNORECASE)
_WHEN = (
    r"(?:(?:19|20)\d\d(?:[-_.]?(?:0[1-9]|1[0-2])(?:[-_.]?(?:0[1-9]|[12]\d|3[01]))?|[-_.]?q[1-4])?"
    r"|q[1-4]|release|dump)"
)
_BEFORE = re.compile(rf"^[(\[]?(?:{_WHEN}[-_.\s)\]]+)+", re.IGNORECASE)
_AFTER = re.compile(rf"(?:[-_.\s(\[]+{_WHEN}[)\]]?|{COPY})+$", re.IGNORECASE)
"""Matches dates, releases and marks of copies after the name of a site."""

_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}", re.IGNORECASE)
_PUBLISHED = re.compile(
    r"(?:[a-z0-9-]+\.)*"
    r"(?:stackexchange\.com|stackoverflow\.com|superuser\.com|serverfault\.com|askubuntu\.com"
    r"|stackapps\.com|mathoverflow\.net)",
    re.IGNORECASE,
)


def site_from_name(source: str | os.PathLike[str]) -> str:
    """Derive the name of a site from the name of its dump.

    `beer.stackexchange.com.7z` and `beer.stackexchange.com/Posts.xml` give
    `beer.stackexchange.com`; `stackoverflow.com-Posts.7z` gives `stackoverflow.com`. A date or a
    release before or after the name of a published site, as in
    `beer.stackexchange.com-2024-07.7z`, is removed, and so is the mark of a copy, as in
    `beer.stackexchange.com (1).7z`. A link to a folder gives its own name, unless only the folder
    has the name of a published site.

    Raises:
        OptionError: The dump is standard input.
    """
    if source == "-":
        raise OptionError("standard input has no name; give the name of a file")
    path = without_secrets(os.fspath(source))
    if not os.path.isdir(path):
        if name := stem(printable(os.path.basename(path))):
            return without_date(name)
        path = os.path.dirname(path)
    # A link may lead from the name of the site to another folder, or the other way round.
    named, real = (
        without_date(printable(os.path.basename(folder)))
        for folder in (os.path.abspath(path), os.path.realpath(path))
    )
    is_link_to_site = _PUBLISHED.fullmatch(real) and not _PUBLISHED.fullmatch(named)
    return (real if is_link_to_site else named) or "posts"


def stem(name: str) -> str:
    """Remove the extensions and `Posts` from the name of a dump's file; `Posts.xml` gives ""."""
    return _TABLE.sub("", _EXTENSIONS.sub("", name))


def without_date(name: str) -> str:
    """Remove the date, the release, or the mark of a copy from the name of a published site."""
    bare = _TABLE.sub("", _AFTER.sub("", _BEFORE.sub("", name)))
    return bare if _PUBLISHED.fullmatch(bare) else name


def published_host(site: str | None) -> str | None:
    """Return the current host of a site whose dumps are published; None for any other name."""
    return site_host(site.lower()) if site and _PUBLISHED.fullmatch(site) else None


def checked_host(host: str) -> str:
    """Return the current host of a site given as a host name or a URL.

    Raises:
        OptionError: The text is not a host name.
    """
    name = re.sub(r"^https?://|/+$", "", host.strip())
    if not _HOST.fullmatch(name):
        raise OptionError(
            f"{flag('site')} is {host!r}; it must be a host such as beer.stackexchange.com"
        )
    return site_host(name.lower())
