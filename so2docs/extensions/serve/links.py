"""Find the pages that URLs in texts lead to. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from so2docs.domain import site_host
from so2docs.escape import unescape

AFTER_ADDRESS = ".,;:!?)*_"
"""Punctuation that does not belong to a URL if it follows the URL in a text."""

# A URL, or, in an attribute, a path on the same site. The repetition is possessive, so the time
# is linear.
_ADDRESS = re.compile(r"""(?:(?:https?:)?//|(?<=["'])/)[^\s"'<>()]{1,2000}+""", re.IGNORECASE)
_PATHS = {
    kind: re.compile(path + "/?")
    for kind, path in {
        "post": r"/questions/(?P<post>\d{1,18})(?:/[^/]*(?:/(?P<name>\d{1,18}))?)?",
        "short": r"/(?:q|a|posts)/(?P<name>\d{1,18})(?:/\d+)?",
        "comment": r"/posts/comments/(?P<name>\d{1,18})",
        "user": r"/users/(?P<name>-?\d{1,18})(?:/[^/]*)?",
        "tag": r"/(?:questions/tagged|tags)/(?P<name>[^/]+?)(?:/info)?",
    }.items()
}
_COMMENT = re.compile(r"comment(\d{1,18})_(\d{1,18})")


class Link(NamedTuple):
    """A page of a site.

    Attributes:
        host: The site's current host; empty for a site whose host is unknown.
        kind: `post`, `comment`, `user` or `tag`.
        name: Id, or name of the tag.
        post: Id of the question of a post, or of the post of a comment, which is shown if the
            page is missing; empty if unknown.
    """

    host: str
    kind: str
    name: str
    post: str = ""

    @property
    def key(self) -> str:
        """The fields as one string, by which the path of the page is looked up."""
        return " ".join(self)


def parse_link(address: str, host: str | None) -> Link | None:
    """Parse a URL as a link to a page of a site; None if it is invalid or of no known form.

    Args:
        address: A URL, or a path on the same site.
        host: Current host of this site; None if unknown.
    """
    try:
        parts = urlsplit(address)
        name = parts.hostname or ""
    except ValueError:
        return None
    is_path = not parts.scheme and not parts.netloc and address.startswith("/")
    if not is_path and (parts.scheme.lower() not in ("http", "https", "") or not name):
        return None
    host = (host or "") if is_path else site_host(name.removeprefix("www."))
    if comment := _COMMENT.fullmatch(parts.fragment):
        return Link(host, "comment", *comment.groups())
    for kind, path in _PATHS.items():
        if match := path.fullmatch(parts.path):
            values = match.groupdict(default="")
            if kind == "tag":
                values["name"] = unquote(values["name"])
            elif kind == "post" and not values["name"]:
                # In the old form of URLs, the id of an answer is only in the fragment.
                fragment = parts.fragment if re.fullmatch(r"\d{1,18}", parts.fragment) else ""
                values["name"] = fragment or values["post"]
            return Link(host, "post" if kind == "short" else kind, **values)
    return None


def find_links(texts: Iterable[str], host: str | None) -> Iterator[Link]:
    """Yield the pages that texts link to, including pages of sites that are not served."""
    for text in texts:
        for match in _ADDRESS.finditer(text):
            link = parse_link(unescape(match[0]).rstrip(AFTER_ADDRESS), host)
            if link is not None:
                yield link
