"""Nest `PostHistory.xml` independently, with the standard library and in memory.

Each key is computed from all rows of a post by its rule in docs/history.md. No code is shared with
the package.
"""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from support import oracle, oracle_tables

Row = dict[str, Any]

STATES = {10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 33, 34, 35, 36, 37, 38}
CONTENT = [
    f"{verb}{name}"
    for verb in ("Initial", "Edit", "Rollback")
    for name in ("Title", "Body", "Tags")
]
NAMES = dict(enumerate(CONTENT, 1)) | {
    10: "PostClosed",
    11: "PostReopened",
    12: "PostDeleted",
    13: "PostUndeleted",
    14: "PostLocked",
    15: "PostUnlocked",
    16: "CommunityOwned",
    17: "PostMigrated",
    18: "QuestionMerged",
    19: "QuestionProtected",
    20: "QuestionUnprotected",
    21: "PostDisassociated",
    22: "QuestionUnmerged",
    24: "SuggestedEditApplied",
    25: "PostTweeted",
    31: "CommentsMovedToChat",
    33: "PostNoticeAdded",
    34: "PostNoticeRemoved",
    35: "PostMigratedAway",
    36: "PostMigratedHere",
    37: "PostMergeSource",
    38: "PostMergeDestination",
    50: "BumpedByCommunity",
    52: "BecameHotNetworkQuestion",
    53: "RemovedFromHotNetworkQuestions",
    66: "CreatedByAskWizard",
}
REASONS = {
    "1": "Exact duplicate",
    "2": "Off-topic",
    "3": "Subjective and argumentative",
    "4": "Not a real question",
    "7": "Too localized",
    "10": "General reference",
    "20": "Noise or pointless",
    "101": "Duplicate",
    "102": "Off-topic",
    "103": "Needs details or clarity",
    "104": "Needs more focus",
    "105": "Opinion-based",
}
TEXTS = {1: "Title", 2: "Body", 3: "Tags"}


@dataclass(slots=True)
class Histories:
    """The expected result for a dump with its history."""

    documents: list[Row]
    rows: Counter[str] = field(default_factory=Counter)


def nest(folder: Path, level: str, *, users: bool = False) -> Histories:
    """Nest the history of the posts of a folder at one of the three levels."""
    documents = oracle.nest(folder / "Posts.xml").documents
    posts = {
        post["Id"]: post for question in documents for post in (question, *question["Answers"])
    }
    users_by_id = _users(folder) if users else {}
    by_post: dict[int, list[Row]] = defaultdict(list)
    histories = Histories(documents)
    for element in ElementTree.parse(folder / "PostHistory.xml").getroot():
        row: Row = dict(element.attrib)
        for name in ("Id", "PostId", "UserId", "PostHistoryTypeId"):
            if name in row:
                row[name] = int(row[name])
        histories.rows["all"] += 1
        if level == "closings" and row["PostHistoryTypeId"] not in STATES:
            histories.rows["filtered"] += 1
        elif row["PostId"] in posts:
            histories.rows["nested"] += 1
            by_post[row["PostId"]].append(row)
        else:
            histories.rows["event_without_post"] += 1
    for post_id, post in posts.items():
        rows = sorted(by_post[post_id], key=lambda row: (row["CreationDate"], row["Id"]))
        answers = post.pop("Answers", None)
        post.update(_members(rows, level))
        oracle_tables.name_users(post, users_by_id)
        if answers is not None:
            post["Answers"] = answers
    return histories


def _members(rows: list[Row], level: str) -> Row:
    guids = list(dict.fromkeys(row["RevisionGUID"] for row in rows))
    groups = [[row for row in rows if row["RevisionGUID"] == guid] for guid in guids]
    entries = [(_entry(group, level), group) for group in groups]
    entries.sort(key=lambda pair: (pair[0]["CreationDate"], pair[0]["Id"]))
    fields: Row = {"History": [entry for entry, _ in entries]}
    turns = [row for row in rows if row["PostHistoryTypeId"] in (10, 11)]
    if turns and turns[-1]["PostHistoryTypeId"] == 10:
        last = _entry(turns[-1:], level)
        closed = {"Reason": last.get("CloseReason"), "Date": last["CreationDate"]}
        closed["OriginalQuestionIds"] = last.get("OriginalQuestionIds")
        fields["Closed"] = {name: value for name, value in closed.items() if value is not None}
    if level == "closings":
        return fields
    fields["Revisions"] = sum(any(row["PostHistoryTypeId"] < 10 for row in rs) for _, rs in entries)
    editors = [
        {name: entry[name] for name in ("UserId", "UserDisplayName") if name in entry}
        for entry, group in entries
        if any(4 <= row["PostHistoryTypeId"] <= 9 for row in group)
    ]
    fields["Editors"] = []
    for editor in editors:
        is_known = [
            other
            for other in fields["Editors"]
            if ("UserId" in editor and other.get("UserId") == editor["UserId"])
            or ("UserId" not in editor and other == editor)
        ]
        if editor and not is_known:
            fields["Editors"].append(editor)
    bodies = [row["Text"] for row in rows if _text_of(row) == "Body" and "Text" in row]
    if level == "history-text" and bodies:
        fields["BodyMarkdown"] = bodies[-1]
    return fields


def _entry(group: list[Row], level: str) -> Row:
    by_id = sorted(group, key=lambda row: row["Id"])
    fields = [_told(row, level) for row in by_id]

    def first(name: str) -> Any:
        return next((one[name] for one in fields if name in one), None)

    def last(name: str) -> Any:
        return next((one[name] for one in reversed(fields) if name in one), None)

    kinds = sorted({row["PostHistoryTypeId"] for row in group})
    entry = {
        "Id": by_id[0]["Id"],
        "RevisionGUID": first("RevisionGUID"),
        "CreationDate": min(row["CreationDate"] for row in group),
        "UserId": first("UserId"),
        "UserDisplayName": first("UserDisplayName"),
        "Events": [NAMES.get(kind, str(kind)) for kind in kinds],
        **{name: first(name) for name in ("Comment", "Text")},
        **{name: last(name) for name in ("Title", "Body", "Tags")},
        **{
            name: first(name)
            for name in ("CloseReason", "CloseReasonId", "OriginalQuestionIds", "ProposedBy")
        },
        **{name: first(name) for name in ("ApprovedBy", "RollbackTo", "Url", "ContentLicense")},
        "Voters": first("Voters"),
    }
    return {name: value for name, value in entry.items() if value is not None}


def _text_of(row: Row) -> str | None:
    kind = row["PostHistoryTypeId"]
    return TEXTS[(kind - 1) % 3 + 1] if kind < 10 else None


def _told(row: Row, level: str) -> Row:
    fields = {
        name: value
        for name, value in row.items()
        if name not in ("Id", "PostId", "PostHistoryTypeId", "CreationDate", "Comment", "Text")
    }
    kind, comment, text = row["PostHistoryTypeId"], row.get("Comment"), row.get("Text")
    words = (comment or "").split(" ")
    if comment is None:
        pass
    elif kind == 10 and comment.isdigit():
        fields |= {"CloseReason": REASONS.get(comment, comment), "CloseReasonId": int(comment)}
    elif kind in (7, 8, 9) and comment.startswith("Rollback to ["):
        fields["RollbackTo"], after = comment.removeprefix("Rollback to [").split("]", 1)
        fields |= {"Comment": comment} if after else {}
    elif kind == 24:
        approved = [int(word.strip(",")) for word in words[5 : words.index("edit")] if word]
        fields |= {} if "|" in words[2] else {"ProposedBy": int(words[2])}
        fields |= {"ApprovedBy": approved}
    elif kind in (25, 35, 36, 37, 38) and words[-1].startswith("http"):
        fields["Url"] = words[-1]
    else:
        fields["Comment"] = comment
    if text is not None and (name := _text_of(row)):
        if level == "history-text":
            fields[name] = text[1:-1].split("><") if name == "Tags" else text
    elif text is not None:
        values = json.loads(text) if text.startswith("{") else {"Voters": [{"Id": None}]}
        is_told = all(type(voter["Id"]) is int for voter in values["Voters"])
        fields |= values if is_told else {"Text": text}
    return fields


def _users(folder: Path) -> dict[int, Row]:
    users: dict[int, Row] = {}
    for row in oracle_tables.rows_of(folder / "Users.xml", "users"):
        user = {name: row[name] for name in row if name in oracle_tables.USER_ATTRIBUTES}
        users.setdefault(row["Id"], user)
    return users
