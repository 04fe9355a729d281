"""Turn documents and the history of their posts into values for templates. Pure functions.

Documents may come from another program, so values of unexpected types are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from so2docs.domain import license_at, license_url
from so2docs.extensions.serve.rendering import Text

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
        "tags": tags(document),
        "views": document.get("ViewCount"),
        "has_images": any("<img" in _text(post, "Body") for post in _posts(document)),
    }


def tags(document: Values) -> list[str]:
    """Return the tags of a question, without values that are not strings."""
    return [tag for tag in document.get("Tags") or () if isinstance(tag, str)]


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
                "amount": bounty.get("Amount"),
                "date": _text(bounty, "CreationDate"),
                "owner": _user(bounty, "User"),
            }
            for bounty in post.get("Bounties") or ()
        ],
        "bounty_votes": (post.get("Votes") or {}).get("BountyStart", 0),
        "accepted": False,
        "revisions": len(_list(post, "History")),
    }


def _user(record: Values, key: str) -> Values | None:
    """Return name, id and reputation of a user in a record; None if the record names no user.

    Args:
        record: A post, comment or bounty.
        key: The role of the user, such as `Owner`.
    """
    user = record.get(key) or {}
    user_id = record.get("UserId" if key == "User" else f"{key}UserId")
    name = user.get("DisplayName") or record.get(f"{key}DisplayName")
    if user_id is None and not name:
        return None
    is_known = isinstance(user_id, int)
    return _person(user_id if is_known else None, name or f"user {user_id}") | {
        "reputation": user.get("Reputation")
    }


def _person(user_id: int | None, name: Any) -> Values:
    return {"id": user_id, "name": str(name), "reputation": None}


_TEXTS = ("Title", "Tags", "Body")
_MOST_NAMED = 50
_MOST_TEXT = 500
_IN_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def user_ids(entries: Iterable[Values]) -> set[int]:
    """Return the ids of the users named in history entries."""
    ids: list[Any] = []
    for entry in entries:
        ids.append(entry.get("UserId"))
        ids += (voter.get("Id") for voter in _voters(entry))
    return {user_id for user_id in ids if type(user_id) is int}


def original_ids(entries: Iterable[Values]) -> list[int]:
    """Return the ids of the original questions that history entries name for duplicates."""
    numbers = [number for entry in entries for number in _list(entry, "OriginalQuestionIds")]
    return [number for number in dict.fromkeys(numbers) if type(number) is int]


def closing(question: Values, originals: Iterable[int]) -> Values | None:
    """Describe the closing of a question as an entry of the history; None if it is not closed.

    Args:
        question: The document of the question.
        originals: Ids of questions of which it is a duplicate, according to its links, which may be
            newer than the closing, or the only source.
    """
    closed = question.get("Closed")
    closed = closed if isinstance(closed, dict) else {}
    date = closed.get("Date") or question.get("ClosedDate")
    ids = list(dict.fromkeys([*original_ids([closed]), *originals]))
    if not (closed or date or ids):
        return None
    events = ["Closed"] if closed or date else []
    fields = {"Events": events, "CreationDate": date, "CloseReason": closed.get("Reason")}
    return fields | {"OriginalQuestionIds": ids}


@dataclass(frozen=True, slots=True)
class Known:
    """Converts history entries to template values, with the users and questions they refer to.

    Attributes:
        base: Prefix of the paths of the site.
        host: The site's host name; None if unknown.
        names: User names by id.
        titles: Question titles by id.
        address: Function that makes a URL absolute or local; it returns None for invalid URLs.
    """

    base: str
    host: str | None
    names: Mapping[int, str]
    titles: Mapping[int, Markup | None]
    address: Callable[[str], str | None]

    def entry(self, entry: Values) -> Values:
        """Return the template values for a history entry."""
        url = entry.get("Url")
        reason = entry.get("CloseReason")
        return {
            "what": [
                _IN_WORDS.sub(" ", str(event)).capitalize() for event in _list(entry, "Events")
            ],
            "date": _text(entry, "CreationDate"),
            "by": self._person(entry.get("UserId"), _text(entry, "UserDisplayName")),
            "voters": [
                self._person(voter.get("Id"), _text(voter, "DisplayName"))
                for voter in _voters(entry)
            ],
            "reason": str(reason) if reason is not None else "",
            "originals": [self._original(number) for number in original_ids([entry])],
            "url": {"text": url, "address": self.address(url)} if isinstance(url, str) else None,
            "comment": _text(entry, "Comment"),
            "text": _text(entry, "Text")[:_MOST_TEXT],
        }

    def _original(self, question_id: int) -> Values:
        """Make the link to the original of a duplicate: its page here, else its URL on the site."""
        if question_id in self.titles:
            address: str | None = f"{self.base}/questions/{question_id}"
        else:
            address = f"https://{self.host}/q/{question_id}" if self.host else None
        title: str = self.titles.get(question_id) or f"Question {question_id}"
        return {"id": question_id, "title": title, "address": address}

    def _person(self, user_id: Any, name: str = "") -> Values | None:
        if type(user_id) is not int:
            return _person(None, name) if name else None
        known_name = self.names.get(user_id)
        is_here = user_id in self.names
        return _person(user_id if is_here else None, known_name or name or f"user {user_id}")


def entry_texts(entry: Values) -> list[tuple[str, Text]]:
    """List the texts of a history entry for rendering, by name, each with its previous version."""
    texts = list[tuple[str, Text]]()
    for name in _TEXTS:
        if entry.get(name) is not None:
            old, new = (_plain(entry.get(key)) for key in (f"Old{name}", name))
            texts.append((name.lower(), ("diff", f"{old}\0{new}")))
    return texts


def _plain(text: Any) -> str:
    """Return a text of a history entry on lines of its own; tags come as a list."""
    return "\n".join(map(str, text)) if isinstance(text, list) else str(text or "")


def _voters(entry: Values) -> list[Values]:
    voters = _list(entry, "Voters")[:_MOST_NAMED]
    return [voter for voter in voters if isinstance(voter, dict)]


def _list(entry: Values, name: str) -> list[Any]:
    value = entry.get(name)
    return value if isinstance(value, list) else []


def _text(record: Values, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
