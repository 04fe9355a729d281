"""The origin, licence and authors of a document, as CC BY-SA requires.

Stack Exchange asks for a link to the question, the names of the authors, and links to their
profiles (https://stackoverflow.com/help/licensing).
"""

from __future__ import annotations

from collections.abc import Sequence

from so2docs.errors import RecipeError
from so2docs.extensions.event_names import HISTORY_TYPES
from so2docs.extensions.site_facts import license_at
from so2docs.plugin import flag
from so2docs.schema import CONTENT, Row

Author = tuple[str, str | None]
"""Display name and profile URL."""

_ADDED = {"Url", "Licenses", "Authors"}
"""Attributes added to posts or documents."""

_WRITTEN = frozenset(HISTORY_TYPES[kind] for kind in CONTENT)
"""Names of history events that contain a text of the post; their authors must be credited."""


def locate(question: Row, host: str) -> Row:
    """Add `Url` to the posts of a document, and `ContentLicense` to posts and rows without one.

    Args:
        question: The document, which is changed.
        host: Host name of the site.

    Returns:
        The same document.

    Raises:
        RecipeError: A post of the dump already has an attribute `Url`, `Licenses` or `Authors`.
    """
    place = f"https://{host}/questions"
    for post in (question, *question.get("Answers", ())):
        if given := _ADDED & post.keys():  # No published dump has such an attribute.
            raise RecipeError(
                f"post {post['Id']}: the dump has an attribute {min(given)}, "
                f"which attribution adds; convert without {flag('attribution', True)}"
            )
        for part in _parts(post):
            if "ContentLicense" not in part and (name := license_at(part.get("CreationDate"))):
                part["ContentLicense"] = name
        post["Url"] = f"{place}/{post['Id']}"
        place = f"https://{host}/a"
    return question


def attribute(question: Row, host: str) -> Row:
    """Add the origin, the licences and the authors to a document.

    With a nested history, these include the authors and the licence of each revision.

    This adds what `locate` adds, `Url` to users, and `Licenses` and `Authors` to the question. The
    arguments, the result and the errors are those of `locate`.
    """
    base = f"https://{host}"
    locate(question, host)
    licenses, authors = sum_up(question, base)
    for post in (question, *question.get("Answers", ())):
        users = [post.get("Owner"), post.get("LastEditor")]
        for key in ("Comments", "History", "Editors"):
            users += [row.get("User") for row in _rows(post, key)]
        for user in users:
            if isinstance(user, dict) and "Id" in user:
                user["Url"] = f"{base}/users/{user['Id']}"
    answers = question.pop("Answers", None)
    question["Licenses"] = licenses
    question["Authors"] = [
        {"DisplayName": name} if url is None else {"DisplayName": name, "Url": url}
        for name, url in authors
    ]
    if answers is not None:
        question["Answers"] = answers
    return question


def sum_up(question: Row, base: str) -> tuple[list[str], list[Author]]:
    """Return the licences and the authors of all texts in a document, each once."""
    posts = (question, *question.get("Answers", ()))
    parts = [part for post in posts for part in _parts(post)]
    licenses = {part["ContentLicense"] for part in parts if "ContentLicense" in part}
    return sorted(licenses), _credit_all(parts, base)


def _parts(post: Row) -> Sequence[Row]:
    """Return a post, and its nested rows with a text by users."""
    return [post, *_rows(post, "Comments"), *_revisions(post)]


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


def credit(part: Row, base: str) -> Author | None:
    """Return the display name and the profile URL of the author of a post, comment or revision.

    The URL is None if the user id is unknown; the result is None for an unknown author. For a
    suggested edit, the proposer is the author.

    Args:
        part: The post, the comment or the revision.
        base: The URL of the site.
    """
    user = part.get("Owner") or part.get("User")
    name = part.get("OwnerDisplayName") or part.get("UserDisplayName")
    user_id = part["OwnerUserId"] if "OwnerUserId" in part else part.get("UserId")
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
        return name or f"user{user_id}", f"{base}/users/{user_id}"
    return (name, None) if name else None


def writers(post: Row, base: str) -> list[Author]:
    """Return the authors of a post and its nested revisions, each once: see `credit`."""
    return _credit_all((post, *_revisions(post)) if "History" in post else (post,), base)


def _credit_all(parts: Sequence[Row], base: str) -> list[Author]:
    # A dictionary keeps the order.
    return list({a: None for part in parts if (a := credit(part, base)) is not None})
