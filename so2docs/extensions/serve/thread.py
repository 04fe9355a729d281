"""Turn documents into values for templates. Pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from so2docs.domain import license_at, license_url
from so2docs.extensions.serve.bodies import Text

Values = dict[str, Any]


def document_texts(document: Values) -> Iterator[Text]:
    """Yield the title, bodies and comments of a document for rendering, each with its kind."""
    yield "title", question_title(document)
    for post in _posts(document):
        yield "body", _text(post, "Body")
        for comment in post.get("Comments", ()):
            yield "comment", _text(comment, "Text")


def question_title(question: Values) -> str:
    """Return the title of a question, or `Question ID` if it has none."""
    return str(question.get("Title") or f"Question {question['Id']}")


def thread(document: Values, rendered: Mapping[Text, Markup], host: str | None) -> Values:
    """Build the template context for a question with its answers.

    Args:
        document: The question with its answers in the order of the page.
        rendered: The HTML of each text of the document.
        host: The site's host name.
    """
    accepted = document.get("AcceptedAnswerId")
    question, *answers = [_post(post, rendered, host) for post in _posts(document)]
    return {
        "title": question_title(document),
        "heading": rendered["title", question_title(document)],
        "question": question,
        "answers": [answer | {"accepted": answer["id"] == accepted} for answer in answers],
        "tags": document["Tags"],
        "views": document.get("ViewCount"),
        "has_images": any("<img" in _text(post, "Body") for post in _posts(document)),
        "closed": _text(document, "ClosedDate"),
    }


def _posts(document: Values) -> list[Values]:
    return [document, *document.get("Answers", ())]


def _post(post: Values, rendered: Mapping[Text, Markup], host: str | None) -> Values:
    kind = "a" if "ParentId" in post else "q"
    name = _text(post, "ContentLicense") or license_at(post.get("CreationDate"))
    return {
        "id": post["Id"],
        "score": post.get("Score"),
        "body": rendered["body", _text(post, "Body")],
        "created": _text(post, "CreationDate"),
        "edited": _text(post, "LastEditDate"),
        "is_wiki": bool(post.get("CommunityOwnedDate")),
        "owner": _user(post, "Owner"),
        "editor": _user(post, "LastEditor"),
        "license": None if name is None else {"name": name, "address": license_url(name)},
        "source": f"https://{host}/{kind}/{post['Id']}" if host else None,
        "comments": [
            {
                "id": comment.get("Id"),
                "score": comment.get("Score") or 0,
                "text": rendered["comment", _text(comment, "Text")],
                "created": _text(comment, "CreationDate"),
                "owner": _user(comment, "User"),
            }
            for comment in post.get("Comments", ())
        ],
        "bounties": [
            {
                "amount": bounty.get("BountyAmount"),
                "date": _text(bounty, "CreationDate"),
                "owner": _user(bounty, "User"),
            }
            for bounty in post.get("Bounties") or ()
        ],
        "accepted": False,
    }


def _user(record: Values, key: str) -> Values | None:
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


def _text(record: Values, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
