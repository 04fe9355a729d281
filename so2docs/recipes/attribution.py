"""Where a document is from, under which licence, and by whom: what CC BY-SA asks to be told.

Stack Exchange asks for a link to the question, the names of the authors, and links to their
profiles (https://stackoverflow.com/help/licensing).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from so2docs.domain import license_at
from so2docs.errors import RecipeError, flag
from so2docs.recipes.recipe import TEXT, Schema, array
from so2docs.schema import CONTENT, HISTORY_TYPES

Row = dict[str, Any]

FIELDS = ("Id", "CreationDate", "OwnerUserId", "OwnerDisplayName", "ContentLicense")
"""Attributes of a post without which that cannot be told."""

KEYS = frozenset({"Url", "Licenses", "Authors"})
"""What is added to a post."""

AUTHORS: Schema = array(
    {
        "type": "object",
        "properties": {"DisplayName": TEXT, "Url": TEXT},
        "required": ["DisplayName"],
    }
)


_WRITTEN = frozenset(HISTORY_TYPES[kind] for kind in CONTENT)
"""Events with a text of the post, whose authors are to be credited."""


def user_url(base: str, user_id: int) -> str:
    """The profile of a user of the site with this address."""
    return f"{base}/users/{user_id}"


def attribute(question: Row, host: str) -> Row:
    """Say of a document where it is from, under which licences, and by whom.

    Where the history is nested, the authors of each revision and its licence are among them.

    Adds `Url` to the question, its answers and the users in it, `ContentLicense` where the dump has
    none, and `Licenses` and `Authors` to the question.

    Args:
        question: The document; it is changed.
        host: Host name of the site.

    Raises:
        RecipeError: A post of the dump has an attribute of such a name.
    """
    answers = question.pop("Answers", None)
    posts = [question, *(answers or ())]
    _check_names(posts)
    for post in posts:
        kind = "questions" if post is question else "a"
        _attribute_post(post, host, f"https://{host}/{kind}/{post['Id']}")
    parts = [part for post in posts for part in (post, *_comments(post), *_revisions(post))]
    question["Licenses"] = sorted(
        {part["ContentLicense"] for part in parts if "ContentLicense" in part}
    )
    base = f"https://{host}"
    authors = {(name, url): None for part in parts for name, url in credit(part, base)}
    question["Authors"] = [
        {"DisplayName": name} if url is None else {"DisplayName": name, "Url": url}
        for name, url in authors
    ]
    if answers is not None:
        question["Answers"] = answers
    return question


def _check_names(posts: list[Row]) -> None:
    """No published dump has such attributes; one that has shall not lose them without a word."""
    for post in posts:
        for name in KEYS.intersection(post):
            raise RecipeError(
                f"post {post['Id']}: the dump has an attribute {name}, which attribution "
                f"adds; convert without {flag('attribution', True)}"
            )


def _attribute_post(post: Row, host: str, url: str) -> None:
    _license(post)
    post["Url"] = url
    for user in (post.get("Owner"), post.get("LastEditor")):
        _link(user, host)
    for part in (*_comments(post), *_revisions(post)):
        _license(part)
    for row in (*_comments(post), *_rows(post, "History"), *_rows(post, "Editors")):
        _link(row.get("User"), host)


def _comments(post: Row) -> list[Row]:
    return _rows(post, "Comments")


def _revisions(post: Row) -> list[Row]:
    """The revisions of a post with their authors, if its history is nested."""
    return [
        entry
        for entry in _rows(post, "History")
        if not _WRITTEN.isdisjoint(entry.get("Events", ()))
    ]


def _rows(post: Row, key: str) -> list[Row]:
    rows = post.get(key)
    return rows if isinstance(rows, list) else []


def _license(part: Row) -> None:
    name = license_at(part.get("CreationDate"))
    if "ContentLicense" not in part and name is not None:
        part["ContentLicense"] = name


def _link(user: Any, host: str) -> None:
    if isinstance(user, dict) and "Id" in user:
        user["Url"] = user_url(f"https://{host}", user["Id"])


def credit(part: Row, base: str) -> Iterator[tuple[str, str | None]]:
    """The name that a post or comment is shown under, and the profile, as far as they are known.

    Args:
        part: The post or comment.
        base: The address of the site.
    """
    user = part.get("Owner", part.get("User"))
    name = part.get("OwnerDisplayName", part.get("UserDisplayName"))
    user_id = part.get("OwnerUserId", part.get("UserId"))
    if isinstance(user, dict):
        name = user.get("DisplayName", name)
        user_id = user.get("Id", user_id)
    if user_id is not None:
        # A user without a name is shown as this.
        yield name or f"user{user_id}", user_url(base, user_id)
    elif name:
        yield name, None
