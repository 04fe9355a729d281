"""Turn the history rows of a post into members of its JSON object. Pure functions.

An entry is one action of a user: the rows of a post with one `RevisionGUID`. After a migration, ids
are not chronological, so rows are sorted by date, then by `Id`. An entry takes each attribute from
the row with the lowest `Id` that has the attribute. It takes the text of the post from the row with
the highest `Id`, because after a merge of posts, several rows of one type may have a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import orjson

from so2docs.extensions.event_names import CLOSE_REASONS, HISTORY_TYPES
from so2docs.parse.keys import BY_OPTED_OUT
from so2docs.parse.posts import tags
from so2docs.schema import (
    BODIES,
    CONTENT,
    OTHER,
    TABLES,
    TAGS,
    TITLES,
    Row,
    Table,
)

FindUser = Callable[[Any], bytes | None]
"""Function that returns the JSON of the user with an id; None for an unknown user."""

_CLOSED, _REOPENED, _SUGGESTED = 10, 11, 24
_ROLLBACKS = frozenset({7, 8, 9})
_WITH_URL = frozenset({25, 35, 36, 37, 38})
_EDITS = CONTENT - {1, 2, 3}
_ROLLBACK = re.compile(r"Rollback to \[([0-9A-Fa-f-]+)\]")
_PROPOSED = re.compile(
    r"Proposed by (?:(-?\d{1,18})|[^\s|]+\|[0-9A-Fa-f-]+) "
    r"approved by ((?:-?\d{1,18}(?:, -?\d{1,18})*)?) edit id of \d+"
)
"""Anonymous proposers appear as an address and a GUID; edits without a review have no approver."""

_URL = re.compile(r"(?:(?:from|to) )?(https?://\S+)")

_OF_ROW = frozenset(
    {"Id", "PostId", "PostHistoryTypeId", "CreationDate", "Comment", "Text", BY_OPTED_OUT}
)
"""Attributes of a row that are not copied to an entry, or are converted first."""
_TABLE = TABLES["history-text"]
_ORDER = (*_TABLE.documented, "Voters")
_MADE = frozenset({*_ORDER, OTHER}) - _TABLE.attributes.keys()
"""Keys that are added to an entry; attributes of the dump with these names go to `Other`."""
_NOT_COPIED = _OF_ROW | _MADE


_Revision = tuple[Row, frozenset[int]]
"""An entry of the history, and the types of its rows."""


def members(table: Table, jsons: Iterable[bytes], find_user: FindUser | None) -> list[bytes]:
    """Return the JSON members of a post, such as `"History":[…]`, made from its history rows."""
    rows = sorted(map(orjson.loads, jsons), key=_time)
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.get("RevisionGUID", row["Id"]), []).append(row)
    revisions = sorted(map(_revision, groups.values()), key=lambda revision: _time(revision[0]))
    fields: dict[str, Any] = {table.key: [entry for entry, _ in revisions]}
    if (closed := _closing(rows)) is not None:
        fields["Closed"] = closed
    if table.name != "closings":
        fields["Revisions"] = sum(not CONTENT.isdisjoint(types) for _, types in revisions)
        fields["Editors"] = _editors(revisions)
    bodies = [row["Text"] for row in rows if row["PostHistoryTypeId"] in BODIES and "Text" in row]
    if table.name == "history-text" and bodies:
        fields["BodyMarkdown"] = bodies[-1]
    if find_user is not None:
        for holder in (*fields[table.key], *fields.get("Editors", ())):
            user = find_user(holder["UserId"]) if "UserId" in holder else None
            if user is not None:
                holder["User"] = orjson.Fragment(user)
    return [orjson.dumps({key: value})[1:-1] for key, value in fields.items()]


def _time(row: Row) -> tuple[str, int]:
    return row.get("CreationDate", ""), row["Id"]


def _revision(rows: list[Row]) -> _Revision:
    """Make an entry from the rows of one revision, which are in chronological order."""
    by_id = sorted(rows, key=lambda row: int(row["Id"]))
    types = frozenset(row["PostHistoryTypeId"] for row in rows)
    entry: Row = {}
    for row in by_id:
        for name, value in _parse_event(row).items():
            entry.setdefault(name, value)
    for row in by_id:
        entry |= _text_of_post(row)
    entry["Id"] = by_id[0]["Id"]
    entry["Events"] = [HISTORY_TYPES.get(kind, str(kind)) for kind in sorted(types)]
    dated = [row for row in rows if "CreationDate" in row]
    if dated:
        entry["CreationDate"] = dated[0]["CreationDate"]
    if not all(map(_MADE.isdisjoint, rows)):
        entry[OTHER] = {
            name: value for row in reversed(by_id) for name, value in row.items() if name in _MADE
        }
    return {name: entry.pop(name) for name in _ORDER if name in entry} | entry, types


def _parse_event(row: Row) -> Row:
    """Return the fields that a row adds to its entry, apart from date, type and post text."""
    entry = {name: value for name, value in row.items() if name not in _NOT_COPIED}
    kind: int = row["PostHistoryTypeId"]
    if "Comment" in row:
        entry |= _comment(kind, row["Comment"])
    if "Text" in row and kind not in CONTENT:
        entry |= _voters(row["Text"])
    return entry


def _comment(kind: int, comment: str) -> Row:
    """Parse the comment of a history row of type `kind` into fields of an entry."""
    if kind == _CLOSED and comment.isascii() and comment.isdecimal() and len(comment) < 10:
        reason = int(comment)
        return {"CloseReason": CLOSE_REASONS.get(reason, comment), "CloseReasonId": reason}
    if kind in _ROLLBACKS and (match := _ROLLBACK.match(comment)):
        continued = {"Comment": comment} if match.end() < len(comment) else {}
        return {"RollbackTo": match[1], **continued}
    if kind == _SUGGESTED and (match := _PROPOSED.fullmatch(comment)):
        proposed = {"ProposedBy": int(match[1])} if match[1] else {}
        approved = [int(number) for number in match[2].split(", ") if number]
        return {**proposed, "ApprovedBy": approved}
    if kind in _WITH_URL and (match := _URL.fullmatch(comment)):
        return {"Url": match[1]}
    return {"Comment": comment}


def _voters(text: str) -> Row:
    """Parse JSON with voters or original questions; return any other text as `Text`."""
    checks = {"Voters": _are_users, "OriginalQuestionIds": _are_ids}
    with suppress(orjson.JSONDecodeError):
        values = orjson.loads(text)
        if isinstance(values, dict) and all(
            name in checks and checks[name](value) for name, value in values.items()
        ):
            return values
    return {"Text": text}


def _are_users(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(user, dict)
        and type(user.get("Id", 0)) is int
        and isinstance(user.get("DisplayName", ""), str)
        for user in value
    )


def _are_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(id_) is int for id_ in value)


def _text_of_post(row: Row) -> Row:
    kind, text = row["PostHistoryTypeId"], row.get("Text")
    if text is None or kind not in CONTENT:
        return {}
    if kind in TITLES:
        return {"Title": text}
    return {"Tags": tags(text)} if kind in TAGS else {"Body": text}


def _closing(rows: Iterable[Row]) -> Row | None:
    """Return reason, date and original questions of the last closing; None for an open post."""
    states = [row for row in rows if row["PostHistoryTypeId"] in (_CLOSED, _REOPENED)]
    if not states or states[-1]["PostHistoryTypeId"] == _REOPENED:
        return None
    entry = _parse_event(states[-1])
    closed = {
        "Reason": entry.get("CloseReason"),
        "Date": states[-1].get("CreationDate"),
        "OriginalQuestionIds": entry.get("OriginalQuestionIds"),
    }
    return {name: value for name, value in closed.items() if value is not None}


def _editors(revisions: Iterable[_Revision]) -> list[Row]:
    """List the users who edited a post or rolled an edit back, ordered by their first edits."""
    editors: dict[Any, Row] = {}
    for entry, types in revisions:
        if _EDITS.isdisjoint(types):
            continue
        user: Row = {name: entry[name] for name in ("UserId", "UserDisplayName") if name in entry}
        if user:
            editors.setdefault(user.get("UserId", user.get("UserDisplayName")), user)
    return list(editors.values())
