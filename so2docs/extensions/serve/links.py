"""Tell which posts URLs lead to. Pure functions."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from so2docs.domain import site_host

AFTER_ADDRESS = ".,;:!?)*_"
"""Punctuation that does not belong to a URL if it follows the URL in a text."""

_QUESTION = re.compile(r"/questions/(\d{1,18})(?:/[^/]*(?:/(\d{1,18}))?)?/?")
_POST = re.compile(r"/(?:q|a|posts)/(\d{1,18})(?:/\d+)?/?")
_FRAGMENT = re.compile(r"(?:comment\d{1,18}_)?(\d{1,18})")
"""The id of an answer in the old form of URLs, or a comment with the id of its post."""


class Link(NamedTuple):
    """A link to a post.

    Attributes:
        host: Current host of the site; empty for a site whose host is unknown.
        posts: Id of the post, and that of its question, which is shown if the post is missing.
    """

    host: str
    posts: tuple[int, ...]


def parse_link(address: str, host: str | None) -> Link | None:
    """Parse a URL as a link to a post; None if it is invalid or of no known form.

    Args:
        address: A URL, or a path on the same site. The URL of a comment leads to its post.
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
    path = _QUESTION.fullmatch(parts.path) or _POST.fullmatch(parts.path)
    if path is None:
        return None
    ids = [number for number in reversed(path.groups()) if number]
    if fragment := _FRAGMENT.fullmatch(parts.fragment):
        ids.insert(0, fragment[1])
    return Link(host, tuple(dict.fromkeys(map(int, ids))))
