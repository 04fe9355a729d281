"""The origin, licence and authors of a document, as CC BY-SA requires.

Stack Exchange asks for a link to the question, the names of the authors, and links to their
profiles (https://stackoverflow.com/help/licensing).
"""

from __future__ import annotations

from typing import Any

from so2docs.domain import license_at
from so2docs.errors import RecipeError, flag
from so2docs.recipes.recipe import TEXT, Schema, array
from so2docs.schema import CONTENT, HISTORY_TYPES

Row = dict[str, Any]
Author = tuple[str, str | None]
"""Display name and profile URL."""

FIELDS = ("Id", "CreationDate", "OwnerUserId", "OwnerDisplayName", "ContentLicense")
"""Attributes of a post that are needed for the attribution."""

KEYS = frozenset({"Url", "Licenses", "Authors"})
"""Attributes added to posts or documents."""

AUTHORS: Schema = array(
    {
        "type": "object",
        "properties": {"DisplayName": TEXT, "Url": TEXT},
        "required": ["DisplayName"],
    }
)


_WRITTEN = frozenset(HISTORY_TYPES[kind] for kind in CONTENT)
"""Names of history events that contain a text of the post; their authors must be credited."""
_NESTED = frozenset({"Comments", "History", "Editors"})
"""Rows of a post that have users."""


def user_url(base: str, user_id: int) -> str:
    """Return the URL of a user's profile on the site with this base URL."""
    return f"{base}/users/{user_id}"


def attribute(question: Row, host: str) -> Row:
    """Add the origin, the licences and the authors to a document.

    With a nested history, these include the authors and the licence of each revision.

    This adds `Url` to the question, its answers and their users, `ContentLicense` to posts without
    one, and `Licenses` and `Authors` to the question.

    Args:
        question: The document, which is changed.
        host: Host name of the site.

    Returns:
        The same document.

    Raises:
        RecipeError: A post of the dump already has an attribute `Url`, `Licenses` or `Authors`.
    """
    answers = question.pop("Answers", None)
    base = f"https://{host}"
    licenses: set[str] = set()
    authors: dict[Author, None] = {}
    for post in (question, *(answers or ())):
        _check_names(post)
        for part in _attribute_post(post, base):
            if (name := part.get("ContentLicense")) is not None:
                licenses.add(name)
            if (author := credit(part, base)) is not None:
                authors[author] = None
        post["Url"] = f"{base}/{'questions' if post is question else 'a'}/{post['Id']}"
    question["Licenses"] = sorted(licenses)
    question["Authors"] = [
        {"DisplayName": name} if url is None else {"DisplayName": name, "Url": url}
        for name, url in authors
    ]
    if answers is not None:
        question["Answers"] = answers
    return question


def _check_names(post: Row) -> None:
    """Reject a post that already has an attribute in `KEYS`; no published dump has any."""
    if KEYS.isdisjoint(post):
        return
    name = min(KEYS.intersection(post))
    raise RecipeError(
        f"post {post['Id']}: the dump has an attribute {name}, which attribution "
        f"adds; convert without {flag('attribution', True)}"
    )


def _attribute_post(post: Row, base: str) -> list[Row]:
    """Complete licences and users of a post; return the post and its rows with a text by users."""
    _license(post)
    _link(post.get("Owner"), base)
    _link(post.get("LastEditor"), base)
    if _NESTED.isdisjoint(post):
        return [post]
    parts = [*_rows(post, "Comments"), *_revisions(post)]
    for part in parts:
        _license(part)
    for row in (*_rows(post, "Comments"), *_rows(post, "History"), *_rows(post, "Editors")):
        _link(row.get("User"), base)
    return [post, *parts]


def _revisions(post: Row) -> list[Row]:
    """Return the history entries that contain a text of the post, if the history is nested."""
    return [
        entry
        for entry in _rows(post, "History")
        if not _WRITTEN.isdisjoint(entry.get("Events", ()))
    ]


def _rows(post: Row, key: str) -> list[Row]:
    rows = post.get(key)
    return rows if isinstance(rows, list) else []


def _license(part: Row) -> None:
    if "ContentLicense" not in part and (name := license_at(part.get("CreationDate"))) is not None:
        part["ContentLicense"] = name


def _link(user: Any, base: str) -> None:
    if isinstance(user, dict) and "Id" in user:
        user["Url"] = user_url(base, user["Id"])


def credit(part: Row, base: str) -> Author | None:
    """Return the display name and the profile URL of the author of a post, comment or revision.

    The URL is None if the user id is unknown; the result is None for an unknown author. For a
    suggested edit, the proposer is the author.

    Args:
        part: The post, the comment or the revision.
        base: The URL of the site.
    """
    user = part.get("Owner", part.get("User"))
    name = part.get("OwnerDisplayName", part.get("UserDisplayName"))
    user_id = part.get("OwnerUserId", part.get("UserId"))
    if isinstance(user, dict):
        name = user.get("DisplayName", name)
        user_id = user.get("Id", user_id)
    if "SuggestedEditApplied" in part.get("Events", ()):
        proposer = part.get("ProposedBy")
        if user_id not in (None, proposer):  # The name belongs to another account.
            name = None
        user_id = proposer
    if user_id is not None:
        # Without a name, use `user` and the id, as the site does.
        return name or f"user{user_id}", user_url(base, user_id)
    return (name, None) if name else None


def writers(post: Row, base: str) -> list[Author]:
    """Return the authors of a post and its nested revisions, each once: see `credit`."""
    parts = (post, *_revisions(post)) if "History" in post else (post,)
    authors = (credit(part, base) for part in parts)
    return list(dict.fromkeys(author for author in authors if author is not None))
