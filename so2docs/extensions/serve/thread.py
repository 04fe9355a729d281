"""Turn documents into values for templates. Pure functions."""

from __future__ import annotations

from typing import Any

from so2docs.extensions.serve.bodies import Renderer
from so2docs.extensions.site_facts import license_at, license_url

Values = dict[str, Any]


def question_title(question: Values) -> str:
    """Return the title of a question, or `Question ID` if it has none."""
    return str(question.get("Title") or f"Question {question['Id']}")


def complete(document: Values, renderer: Renderer) -> Values:
    """Add what the page of a question shows to the question, its answers and their rows.

    These are the HTML of the texts, the authors, and the licence and the source of each post.

    Args:
        document: The question with its answers in the order of the page, which is changed.
        renderer: Renders the texts of the site.
    """
    for post in _posts(document):
        name = find_license(post)
        kind = "a" if "ParentId" in post else "q"
        post["html"] = renderer.render("body", post.get("Body") or "")
        post["license"] = name and {"name": name, "address": license_url(name)}
        post["source"] = f"https://{renderer.host}/{kind}/{post['Id']}" if renderer.host else None
        post["owner"], post["editor"] = find_user(post, "Owner"), find_user(post, "LastEditor")
        for row in (*post["Comments"], *post["Bounties"]):
            row["owner"] = find_user(row, "User")
        for comment in post["Comments"]:
            comment["html"] = renderer.render("comment", comment.get("Text") or "")
    document["heading"] = renderer.render("title", question_title(document))
    document["has_images"] = any("<img" in (post.get("Body") or "") for post in _posts(document))
    return document


def _posts(document: Values) -> list[Values]:
    return [document, *document["Answers"]]


def find_license(record: Values) -> str | None:
    """Return the licence of a post or comment: the recorded one, or that of its date."""
    return record.get("ContentLicense") or license_at(record.get("CreationDate"))


def find_user(record: Values, key: str) -> Values | None:
    """Return id, name and reputation of a user in a record; None if the record names no user.

    Args:
        record: A post, comment or bounty.
        key: The role of the user, such as `Owner`.
    """
    user_id = record.get("UserId" if key == "User" else f"{key}UserId")
    name = record.get(key) or record.get(f"{key}DisplayName")
    if user_id is None and not name:
        return None
    reputation = record.get("Reputation") if key == "Owner" else None
    return {"id": user_id, "name": str(name or f"user {user_id}"), "reputation": reputation}
