"""Entries of the history of posts -> what pages show of them. Pure.

Documents may be of another make: what is not of its type is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from so2docs.serve.rendering import Text

Values = dict[str, Any]
_TEXTS = ("Title", "Body")
_MOST_NAMED = 50
_MOST_TEXT = 500
_UNDOES = {
    "PostReopened": "PostClosed",
    "PostUnlocked": "PostLocked",
    "QuestionUnprotected": "QuestionProtected",
    "QuestionUnmerged": "QuestionMerged",
}
_STATES = {
    "PostClosed": "Closed",
    "PostLocked": "Locked",
    "QuestionProtected": "Protected",
    "QuestionMerged": "Merged",
    "PostMigrated": "Migrated",
    "PostMigratedAway": "Migrated to",
    "PostMigratedHere": "Migrated from",
    "PostMergeSource": "Merged into",
    "PostMergeDestination": "Merged with",
}
"""Events after which a post is in a state that readers are told, and what that is called."""
_OF_TEXT = re.compile(r"(Initial|Edit|Rollback)(Title|Body|Tags)")
_VERBS = {"Initial": "written", "Edit": "edited", "Rollback": "rolled back"}
_IN_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Known:
    """Names, titles and numbers that entries refer to.

    Attributes:
        base: What the paths of the site start with.
        host: The site's address; None if nobody knows it.
        names: Names of users by their ids.
        titles: Titles of questions by their ids.
        numbers: Numbers of revisions by their GUIDs.
        address: The address of a link, or None for one that leads nowhere.
    """

    base: str
    host: str | None
    names: Mapping[int, str]
    titles: Mapping[int, Markup | None]
    numbers: Mapping[str, int]
    address: Callable[[str], str | None]


def user_ids(entries: Iterable[Values]) -> set[int]:
    """Ids of the users that entries name."""
    ids: list[Any] = []
    for entry in entries:
        ids += (entry.get("UserId"), entry.get("ProposedBy"), *_list(entry, "ApprovedBy"))
        ids += (voter.get("Id") for voter in _voters(entry))
    return {user_id for user_id in ids if type(user_id) is int}


def original_ids(entries: Iterable[Values]) -> list[int]:
    """Ids of the questions that entries call the originals of duplicates."""
    numbers = [number for entry in entries for number in _list(entry, "OriginalQuestionIds")]
    return [number for number in dict.fromkeys(numbers) if type(number) is int]


def states(entries: Iterable[Values]) -> dict[str, Values]:
    """The entries that tell the state of a post now, by the event, of entries in time order."""
    current: dict[str, Values] = {}
    for entry in entries:
        for event in _list(entry, "Events"):
            current.pop(_UNDOES.get(event, ""), None)
            if event in _STATES:
                current[event] = entry
    return current


def closing(question: Values) -> Values | None:
    """Closing of a question by its own attributes, without its history."""
    closed = question.get("Closed")
    closed = closed if isinstance(closed, dict) else {}
    date = closed.get("Date") or question.get("ClosedDate")
    if not closed and not date:
        return None
    fields = {"CreationDate": date, "CloseReason": closed.get("Reason")}
    return fields | {"OriginalQuestionIds": closed.get("OriginalQuestionIds")}


def state(event: str, entry: Values, known: Known) -> Values:
    """The values to show for an entry that sets a state."""
    is_known = event != "PostClosed" or entry.get("CreationDate")  # Or only links tell it.
    return shown(entry, known) | {"what": [_STATES[event]] if is_known else []}


def shown(entry: Values, known: Known) -> Values:
    """The values to show for an entry."""
    url, rolled_to = entry.get("Url"), entry.get("RollbackTo")
    proposed = entry.get("ProposedBy")
    reason = entry.get("CloseReason")
    return {
        "what": _what(_list(entry, "Events")),
        "date": _text(entry, "CreationDate"),
        "by": _person(entry.get("UserId"), _text(entry, "UserDisplayName"), known),
        "voters": [
            _person(voter.get("Id"), _text(voter, "DisplayName"), known) for voter in _voters(entry)
        ],
        "reason": str(reason) if reason is not None else "",
        "originals": [_original(number, known) for number in original_ids([entry])],
        "url": {"text": url, "address": known.address(url)} if isinstance(url, str) else None,
        "rolled_to": known.numbers.get(rolled_to) if isinstance(rolled_to, str) else None,
        "proposed": None if proposed is None else _person(proposed, "", known),
        "approved": [_person(user_id, "", known) for user_id in _list(entry, "ApprovedBy")],
        "comment": _text(entry, "Comment"),
        "text": _text(entry, "Text")[:_MOST_TEXT],
    }


def texts(entry: Values) -> list[Text]:
    """The texts of an entry of which the changes are to be rendered."""
    return [text for name in _TEXTS if (text := _change(entry, name)) is not None]


def changes(entry: Values, rendered: Mapping[Text, Markup]) -> Values:
    """The changes of an entry in the texts of its post, or the first version of a text."""
    new, old = ([str(tag) for tag in _list(entry, name)] for name in ("Tags", "OldTags"))
    return {
        "number": entry["Number"],
        "changed": [
            (name.lower(), rendered[text])
            for name in _TEXTS
            if (text := _change(entry, name)) is not None
        ],
        "first": [
            (name.lower(), entry[name])
            for name in _TEXTS
            if isinstance(entry.get(name), str) and _change(entry, name) is None
        ],
        "tags": new,
        "tags_before": old,
    }


def _change(entry: Values, name: str) -> Text | None:
    """The text of an entry and the one before; None if there are not both."""
    new, old = entry.get(name), entry.get(f"Old{name}")
    return ("diff", f"{old}\0{new}") if isinstance(new, str) and isinstance(old, str) else None


def _what(events: list[Any]) -> list[str]:
    """Describe events in words."""
    phrases: list[str] = []
    parts: dict[str, list[str]] = {}
    for event in map(str, events):
        if match := _OF_TEXT.fullmatch(event):
            parts.setdefault(match[1], []).append(match[2].lower())
        else:
            phrases.append(_IN_WORDS.sub(" ", event).capitalize())
    edits = [f"{', '.join(names).capitalize()} {_VERBS[verb]}" for verb, names in parts.items()]
    return edits + phrases


def _original(question_id: int, known: Known) -> Values:
    """The question that another one is a duplicate of: here, or where it comes from."""
    if question_id in known.titles:
        address: str | None = f"{known.base}/questions/{question_id}"
    else:
        address = f"https://{known.host}/q/{question_id}" if known.host else None
    title: str = known.titles.get(question_id) or f"Question {question_id}"
    return {"id": question_id, "title": title, "address": address}


def _person(user_id: Any, name: str, known: Known) -> Values | None:
    if type(user_id) is not int:
        return {"id": None, "name": name, "reputation": None} if name else None
    is_here = user_id in known.names
    name = known.names.get(user_id) or name or f"user {user_id}"
    return {"id": user_id if is_here else None, "name": name, "reputation": None}


def _voters(entry: Values) -> list[Values]:
    voters = _list(entry, "Voters")[:_MOST_NAMED]
    return [voter for voter in voters if isinstance(voter, dict)]


def _list(entry: Values, name: str) -> list[Any]:
    value = entry.get(name)
    return value if isinstance(value, list) else []


def _text(entry: Values, name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""
