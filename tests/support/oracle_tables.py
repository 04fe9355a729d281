"""Nest the other tables independently, with the standard library and in memory.

Like ``oracle``, it shares no code with the package.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from support import oracle
from support.oracle import AnswersBy, Nested, Row

FILES = {
    "comments": "Comments.xml",
    "links": "PostLinks.xml",
    "votes": "Votes.xml",
    "users": "Users.xml",
}
NUMBERS = {
    "comments": {"Id", "PostId", "Score", "UserId"},
    "links": {"Id", "PostId", "RelatedPostId", "LinkTypeId"},
    "votes": {"Id", "PostId", "VoteTypeId", "UserId", "BountyAmount"},
    "users": {"Id", "Reputation"},
    "badges": {"Id", "UserId", "Class"},
}
REQUIRED = {
    "comments": {"Id": "id", "PostId": "post_id"},
    "links": {"Id": "id", "PostId": "post_id"},
    "votes": {"PostId": "post_id", "VoteTypeId": "vote_type_id"},
    "users": {"Id": "id"},
    "badges": {"UserId": "user_id", "Class": "class"},
}
KEYS = {"comments": "Comments", "links": "Links"}
USER_KEYS = {"OwnerUserId": "Owner", "LastEditorUserId": "LastEditor"}
BADGES = {"Gold": 1, "Silver": 2, "Bronze": 3}
USER_ATTRIBUTES = ("Id", "Reputation", "CreationDate", "DisplayName")
LINKS = {1: "linked", 3: "duplicate"}
# The types of published dumps, and an unknown type.
VOTES = {
    1: "AcceptedByOriginator",
    2: "UpMod",
    3: "DownMod",
    4: "Offensive",
    5: "Favorite",
    6: "Close",
    7: "Reopen",
    8: "BountyStart",
    9: "BountyClose",
    10: "Deletion",
    11: "Undeletion",
    12: "Spam",
    15: "ModeratorReview",
    16: "ApproveEditSuggestion",
}


@dataclass(slots=True)
class Tables(Nested):
    """The expected result for a dump with its tables."""

    rows: Counter[str] = field(default_factory=Counter)
    nested: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)


def nest(folder: Path, names: Collection[str], answers_by: AnswersBy = "id") -> Tables:
    """Nest the posts of a folder, and the named tables: those of `FILES`, or badges with users."""
    posts = oracle.nest(folder / "Posts.xml", answers_by)
    nested = Tables(posts.documents, [])
    keyless = [stray for stray in posts.strays if not _has_place(stray)]
    placed: list[tuple[Any, Row]] = [
        ((_question_id(stray["row"]), 0, place), stray)
        for place, stray in enumerate(posts.strays)
        if _has_place(stray)
    ]
    question_ids = _question_ids(posts)
    by_ids = {(_question_id(post), post["Id"]): post for post in _posts(nested.documents)}
    users: dict[int, Row] = {}
    files = FILES | {"badges": "Badges.xml"}
    for name in [name for name in files if name in names]:
        reasons = nested.reasons[name] = Counter()
        usable: list[Row] = []
        repeated: list[Row] = []
        for row in rows_of(folder / files[name], name):
            nested.rows[name] += 1
            if reason := _reason(name, row):
                keyless.append({"reason": reason, "row": row})
                reasons[reason] += 1
            else:
                usable.append(row)
        if name == "users":
            for row in usable:
                user = {key: value for key, value in row.items() if key in USER_ATTRIBUTES}
                if row["Id"] in users:
                    repeated.append({"reason": "user_repeated_id", "row": user})
                    reasons["user_repeated_id"] += 1
                else:
                    users[row["Id"]] = user
            nested.nested[name] = len(users)
            keyless += sorted(repeated, key=lambda line: line["row"]["Id"])
            continue
        if name == "badges":
            counts = Counter((row["UserId"], row["Class"]) for row in usable)
            for (user_id, kind), count in sorted(counts.items()):
                if user_id not in users:
                    stray = {"UserId": user_id, "Class": kind}
                    keyless.append({"reason": "badge_without_user", "count": count, "row": stray})
                    reasons["badge_without_user"] += count
            for user_id, user in users.items():
                user["Badges"] = {badge: counts[user_id, kind] for badge, kind in BADGES.items()}
            nested.nested[name] = len(usable) - reasons["badge_without_user"]
            continue
        by_post: dict[int, list[Row]] = defaultdict(list)
        for row in usable:
            by_post[row["PostId"]].append(row)
        for post_id, of_post in by_post.items():
            at = question_ids.get(post_id, post_id)
            if (at, post_id) in by_ids:
                continue
            for place, stray, count in _strays(name, of_post):
                placed.append(((at, list(FILES).index(name) + 1, post_id, *place), stray))
                reasons[stray["reason"]] += count
        for (question_id, post_id), post in by_ids.items():
            rows = by_post.get(post_id, []) if question_ids[post_id] == question_id else []
            nested.nested[name] += len(rows)
            post[KEYS.get(name, "Votes")] = _value(name, rows)
            if name == "votes" and (bounties := list(_bounties(rows))):
                post["Bounties"] = bounties
    for post in by_ids.values():
        if "users" in names:
            name_users(post, users)
        if "Answers" in post:
            post["Answers"] = post.pop("Answers")
    nested.strays = keyless + [stray for _, stray in sorted(placed, key=lambda pair: pair[0])]
    return nested


def _value(name: str, rows: list[Row]) -> Any:
    if name == "votes":
        counts = Counter(row["VoteTypeId"] for row in rows)
        return {VOTES.get(kind, str(kind)): counts[kind] for kind in sorted(counts)}
    if name == "links":
        for row in rows:
            if "LinkTypeId" in row:
                row["LinkType"] = LINKS.get(row["LinkTypeId"], str(row["LinkTypeId"]))
    return sorted(rows, key=lambda row: row["Id"])


def _bounties(rows: list[Row]) -> Iterator[Row]:
    """Yield bounties offered on a question or awarded to an answer, except unawarded ones."""
    for row in sorted(rows, key=lambda row: row.get("Id", 0)):
        if row["VoteTypeId"] in (8, 9) and isinstance(row.get("BountyAmount"), int):
            bounty = {name: row[name] for name in ("CreationDate", "UserId") if name in row}
            yield {"Amount": row["BountyAmount"], **bounty}


def name_users(post: Row, users: dict[int, Row]) -> None:
    for part in ("Comments", "Bounties", "History", "Editors"):
        for row in post.get(part, ()):
            if row.get("UserId") in users:
                row["User"] = users[row["UserId"]]
    for attribute, key in USER_KEYS.items():
        if post.get(attribute) in users:
            post[key] = users[post[attribute]]


def _strays(name: str, rows: list[Row]) -> Iterator[tuple[tuple[int, ...], Row, int]]:
    """Yield strays, each with its sort key, line and number of rows."""
    reason = f"{name[:-1]}_without_post"
    if name == "votes":
        for kind, count in Counter(row["VoteTypeId"] for row in rows).items():
            row = {"PostId": rows[0]["PostId"], "VoteTypeId": kind}
            yield (kind,), {"reason": reason, "count": count, "row": row}, count
        return
    for row in sorted(rows, key=lambda row: row["Id"]):
        yield (row["Id"],), {"reason": reason, "row": row}, 1


def _has_place(stray: Row) -> bool:
    return stray["reason"] in ("repeated_id", "question_not_in_dump")


def _question_id(row: Row) -> int:
    question_id = row["Id"] if row["PostTypeId"] == oracle.QUESTION else row["ParentId"]
    assert isinstance(question_id, int)
    return question_id


def _question_ids(posts: oracle.Oracle) -> dict[int, int]:
    """Return the lowest question id of each post, in a document or not."""
    rows = [stray["row"] for stray in posts.strays if _has_place(stray)]
    question_ids: dict[int, int] = {}
    for row in (*_posts(posts.documents), *rows):
        question_id = _question_id(row)
        question_ids[row["Id"]] = min(question_id, question_ids.get(row["Id"], question_id))
    return question_ids


def _posts(documents: list[Row]) -> Iterator[Row]:
    for question in documents:
        yield question
        yield from question["Answers"]


def _reason(name: str, row: Row) -> str | None:
    for attribute, words in REQUIRED[name].items():
        if not isinstance(row.get(attribute), int):
            return f"{name[:-1]}_{'invalid' if attribute in row else 'missing'}_{words}"
    if name == "votes" and not -(2**31) <= row["VoteTypeId"] < 2**31:
        return "vote_invalid_vote_type_id"
    if name == "badges" and row["Class"] not in BADGES.values():
        return "badge_invalid_class"
    return None


def rows_of(path: Path, name: str) -> Iterator[Row]:
    for element in ElementTree.parse(path).getroot():
        yield {
            key: _number(text) if key in NUMBERS[name] else text
            for key, text in element.attrib.items()
        }


def _number(text: str) -> int | str:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() else text
