"""Make the texts of posts for the full-text index. Pure functions."""

from __future__ import annotations

import re
from typing import Any

import orjson

from so2docs.escape import strip_tags
from so2docs.extensions.sqlite.accents import list_forms
from so2docs.parse import core
from so2docs.plugin import POSTS

# No pattern looks beyond the next `<`, so the time is linear for any body. In bodies from the
# site's sanitizer, every `<` starts a tag.
_CLOSING = re.compile(r"</(?:p|pre|code|a|li|em|strong)>")
_BLOCK = re.compile(
    r"</?(?:p|div|br|hr|li|[uod]l|d[td]|pre|blockquote|h[1-6]|t[dhr]|table)\b[^<>]*>"
)
_IMAGE = re.compile(r"<img\b((?:[^<>\"]|\"[^<\"]*+\")*+)>")
_ALT = re.compile(r"\balt=\"([^\"]*)\"")

_PLACES = [*POSTS.attributes].index
_ID, _TYPE, _TITLE, _TAGS, _BODY = map(_PLACES, ("Id", "PostTypeId", "Title", "Tags", "Body"))
_SEARCHED_TYPES = (1, 2)
"""Questions and answers."""


def texts_of_posts(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Make the texts of rows of posts: id, title, tags, body, and additional forms of words."""
    texts = []
    for row in rows:
        if row[_TYPE] in _SEARCHED_TYPES:
            title, body = row[_TITLE], html_to_text(row[_BODY] or "")
            tags = " ".join(orjson.loads(row[_TAGS])) if row[_TAGS] else None
            texts.append((row[_ID], title, tags, body, list_forms((title, tags, body))))
    return texts


def is_html(body: str) -> bool:
    """Whether a body is HTML rather than text or Markdown."""
    return body.lstrip().startswith("<") or _CLOSING.search(body) is not None


def html_to_text(body: str) -> str:
    """Convert a body to text for the index.

    For well-formed bodies, the words are the same as with `--body text`.
    """
    if not is_html(body):
        return body
    body = _IMAGE.sub(_alternative, body) if "<img" in body else body
    text = None if core.compiled is None else core.compiled.to_text(body)
    return separate_words(body) if text is None else text


def separate_words(body: str) -> str:
    """Convert a body without images to text; the compiled core does the same for usual bodies."""
    return strip_tags(_BLOCK.sub(" ", body))


def _alternative(image: re.Match[str]) -> str:
    """Return the alt text of an image; an empty string if it has none."""
    alt = _ALT.search(image[1])
    return "" if alt is None else alt[1]
