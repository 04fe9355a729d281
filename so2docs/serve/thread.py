"""A document -> what the page of a question shows of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from so2docs.domain import license_at, license_url
from so2docs.serve.rendering import Text

Values = dict[str, Any]


def texts(document: Values) -> list[Text]:
    """The texts of a document that are to be rendered, each once."""
    return list(dict.fromkeys(_texts(document)))


def _texts(document: Values) -> Iterator[Text]:
    yield "title", question_title(document)
    for post in _posts(document):
        yield "body", _text(post, "Body")
        for comment in post.get("Comments", ()):
            yield "comment", _text(comment, "Text")


def question_title(question: Values) -> str:
    """The title of a question; its id where it has none."""
    return str(question.get("Title") or f"Question {question['Id']}")


def thread(document: Values, rendered: Mapping[Text, Markup], host: str | None) -> Values:
    """The values of the template.

    Args:
        document: Of the question, its answers in the order in which they are shown.
        rendered: Its texts as HTML.
        host: The site's address.
    """
    accepted = document.get("AcceptedAnswerId")
    question, *answers = [_post(post, rendered, host) for post in _posts(document)]
    return {
        "title": question_title(document),
        "heading": rendered["title", question_title(document)],
        "question": question,
        "answers": [answer | {"accepted": answer["id"] == accepted} for answer in answers],
        "tags": [tag for tag in document.get("Tags", ()) if isinstance(tag, str)],
        "views": document.get("ViewCount"),
        "has_images": any("<img" in _text(post, "Body") for post in _posts(document)),
    }


def _posts(document: Values) -> list[Values]:
    return [document, *document.get("Answers", ())]


def _post(post: Values, rendered: Mapping[Text, Markup], host: str | None) -> Values:
    post_id = post["Id"]
    kind = "a" if "ParentId" in post else "q"
    return {
        "id": post_id,
        "score": post.get("Score"),
        "body": rendered["body", _text(post, "Body")],
        "created": _text(post, "CreationDate"),
        "edited": _text(post, "LastEditDate"),
        "is_wiki": bool(post.get("CommunityOwnedDate")),
        "owner": _person(post, "Owner"),
        "editor": _person(post, "LastEditor"),
        "license": _license(post),
        "source": f"https://{host}/{kind}/{post_id}" if host else None,
        "comments": [_comment(comment, rendered) for comment in post.get("Comments", ())],
        "bounties": [_bounty(bounty) for bounty in post.get("Bounties") or ()],
        "bounty_votes": (post.get("Votes") or {}).get("BountyStart", 0),
        "accepted": False,
    }


def _comment(comment: Values, rendered: Mapping[Text, Markup]) -> Values:
    return {
        "id": comment.get("Id"),
        "score": comment.get("Score") or 0,
        "text": rendered["comment", _text(comment, "Text")],
        "created": _text(comment, "CreationDate"),
        "owner": _person(comment, "User"),
    }


def _bounty(bounty: Values) -> Values:
    return {
        "amount": bounty.get("Amount"),
        "date": _text(bounty, "CreationDate"),
        "owner": _person(bounty, "User"),
    }


def _person(record: Values, key: str) -> Values | None:
    """Name, id and reputation of a user; None if the record names nobody."""
    user = record.get(key) or {}
    user_id = record.get("UserId" if key == "User" else f"{key}UserId")
    name = user.get("DisplayName") or record.get(f"{key}DisplayName")
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


def _text(record: Values, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
