"""A document -> what the page of a question shows of it."""

from __future__ import annotations

from typing import Any

from so2docs.domain import license_at, license_url, rank_by_votes
from so2docs.serve.bodies import Renderer
from so2docs.serve.store import Store

Values = dict[str, Any]


def thread(document: Values, renderer: Renderer, store: Store) -> Values:
    """The values of the template.

    Args:
        document: Of the question.
        renderer: Of bodies and comments.
        store: Of the site.
    """
    host = store.site.host
    answers = document.get("Answers", [])
    accepted = document.get("AcceptedAnswerId")
    posts = [_post(document, renderer, host)]
    posts += [
        _post(answer, renderer, host) | {"accepted": answer.get("Id") == accepted}
        for answer in sorted(answers, key=lambda answer: _rank(answer, accepted))
    ]
    question_id = document["Id"]
    return {
        "title": str(document.get("Title") or f"Question {question_id}"),
        "question": posts[0],
        "answers": posts[1:],
        "tags": [tag for tag in document.get("Tags", ()) if isinstance(tag, str)],
        "views": document.get("ViewCount"),
        "closed": str(document.get("ClosedDate") or "")[:10],
        "links": _links(document, store),
        "has_images": any("<img" in str(post.get("Body")) for post in (document, *answers)),
    }


def _rank(answer: Values, accepted: Any) -> tuple[bool, int, int]:
    score = answer.get("Score")
    rank = rank_by_votes(answer["Id"], score if isinstance(score, int) else 0, accepted)
    return *rank, answer["Id"]


def _post(post: Values, renderer: Renderer, host: str | None) -> Values:
    post_id = post["Id"]
    kind = "a" if "ParentId" in post else "q"
    return {
        "id": post_id,
        "score": post.get("Score"),
        "body": renderer.body(_text(post, "Body")),
        "created": _text(post, "CreationDate"),
        "edited": _text(post, "LastEditDate"),
        "owner": _person(post, "Owner"),
        "editor": _person(post, "LastEditor"),
        "license": _license(post),
        "source": f"https://{host}/{kind}/{post_id}" if host else None,
        "comments": [_comment(comment, renderer) for comment in post.get("Comments", ())],
        "votes": post.get("Votes") or {},
        "accepted": False,
    }


def _comment(comment: Values, renderer: Renderer) -> Values:
    return {
        "id": comment.get("Id"),
        "score": comment.get("Score") or 0,
        "text": renderer.comment(_text(comment, "Text")),
        "created": _text(comment, "CreationDate"),
        "owner": _person(comment, "User"),
    }


def _person(record: Values, key: str) -> Values | None:
    """Name, id and standing of a user; None if the record names nobody."""
    user = record.get(key) or {}
    prefix = "User" if key == "User" else f"{key}"
    user_id = record.get("UserId" if key == "User" else f"{key}UserId")
    name = user.get("DisplayName") or record.get(f"{prefix}DisplayName")
    if user_id is None and not name:
        return None
    return {
        "id": user_id if isinstance(user_id, int) else None,
        "name": str(name or f"user {user_id}"),
        "reputation": user.get("Reputation"),
    }


def _license(post: Values) -> Values | None:
    name = _text(post, "ContentLicense") or license_at(post.get("CreationDate"))
    return None if name is None else {"name": name, "address": license_url(name)}


def _links(document: Values, store: Store) -> list[Values]:
    """Questions that this one is linked with, if they are here."""
    ids = {
        link["RelatedPostId"]: link.get("LinkType", "linked")
        for link in document.get("Links", ())
        if isinstance(link.get("RelatedPostId"), int)
    }
    titles = store.titles(list(ids))
    return [
        {"id": post_id, "kind": kind, "title": titles[post_id] or f"Question {post_id}"}
        for post_id, kind in ids.items()
        if post_id in titles
    ]


def _text(record: Values, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
