"""A made-up site that lives day by day, with the state of every evening and the dump at the end."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

from support.dumps import row, write_dump

Row = dict[str, Any]

FIRST, LAST = 1, 28
_NUMBERS = {"Title": 1, "Body": 2, "Tags": 3}
_TAGS = ("ale", "bock", "stout", "lager")
_NOT_DUMPED = ("texts", "deleted")


class Site:
    """A site on which something happens every day of a month.

    Attributes:
        evenings: Posts by id at the end of each day, as in a dump of that evening.
        tables: Rows by table at the end, as in the dump.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._posts: dict[int, Row] = {}
        self._now = ""
        self._number = 0
        self.evenings: dict[int, dict[int, Row]] = {}
        names = ("PostHistory", "Votes", "Comments")
        self.tables: dict[str, list[Row]] = {name: [] for name in names}
        for day in range(FIRST, LAST + 1):
            self._live(day)
            self.evenings[day] = self._dump()
        self.tables["Posts"] = list(self._dump().values())

    def _live(self, day: int) -> None:
        acts = (self._ask, self._answer, self._answer, self._edit, self._edit, self._roll_back)
        acts += (self._close, self._accept, self._vote, self._vote, self._comment, self._delete)
        acts += (self._make_wiki, self._migrate)
        for hour in range(1, 24):
            self._day = f"2020-01-{day:02}"
            self._now = f"{self._day}T{hour:02}:00:00.000"
            act = self._ask if hour == 1 else self._random.choice(acts)
            act()

    def _new(self, **attributes: Any) -> Row:
        self._number += 1
        return {"Id": self._number, **attributes}

    def _choose(self, *kinds: int) -> Row | None:
        posts = [
            post
            for post in self._posts.values()
            if post["PostTypeId"] in (kinds or (1, 2)) and not post["deleted"]
        ]
        return self._random.choice(posts) if posts else None

    def _user(self) -> int:
        return self._random.randrange(1, 9)

    def _text(self) -> str:
        return f"Text {self._random.randrange(10**6)} of it"

    def _tags(self) -> list[str]:
        return self._random.sample(_TAGS, 2)

    def _record(self, post: Row, kind: int, guid: str, **attributes: Any) -> None:
        ids = {"PostHistoryTypeId": kind, "PostId": post["Id"], "RevisionGUID": guid}
        row = self._new(**ids, CreationDate=self._now, **attributes)
        self.tables["PostHistory"].append(row)

    def _write(self, post: Row, texts: Row, first: int, user: int) -> None:
        """Change texts of a post, with a row of the history for each."""
        guid = f"g{self._number}"
        for name, text in texts.items():
            post[name] = text
            typed = "".join(f"<{tag}>" for tag in text) if name == "Tags" else text
            self._record(post, _NUMBERS[name] + first, guid, UserId=user, Text=typed)
            post["texts"].setdefault(name, []).append(text)

    def _touch(self, post: Row) -> None:
        post["LastActivityDate"] = self._now
        if "ParentId" in post:
            self._posts[post["ParentId"]]["LastActivityDate"] = self._now

    def _create(self, texts: Row, **attributes: Any) -> Row:
        user = self._user()
        post = self._new(**attributes, CreationDate=self._now, OwnerUserId=user, Score=0)
        post |= {"CommentCount": 0, "ContentLicense": "CC BY-SA 4.0", "texts": {}, "deleted": False}
        self._posts[post["Id"]] = post
        self._write(post, texts, 0, user)
        self._touch(post)
        return post

    def _ask(self) -> None:
        texts = {"Title": self._text(), "Body": self._text(), "Tags": self._tags()}
        self._create(texts, PostTypeId=1, AnswerCount=0, ViewCount=7)

    def _answer(self) -> None:
        if question := self._choose(1):
            self._create({"Body": self._text()}, PostTypeId=2, ParentId=question["Id"])
            question["AnswerCount"] += 1

    def _edit(self, first: int = 3) -> None:
        if post := self._choose():
            names = [name for name in post["texts"] if self._random.random() < 0.6] or ["Body"]
            texts = {name: self._tags() if name == "Tags" else self._text() for name in names}
            self._change(post, texts, first)

    def _roll_back(self) -> None:
        if post := self._choose():
            texts = {name: self._random.choice(past) for name, past in post["texts"].items()}
            self._change(post, texts, 6)

    def _change(self, post: Row, texts: Row, first: int) -> None:
        post["LastEditorUserId"] = self._user()
        post["LastEditDate"] = self._now
        self._write(post, texts, first, post["LastEditorUserId"])
        self._touch(post)

    def _close(self) -> None:
        if question := self._choose(1):
            kind = 11 if "ClosedDate" in question else 10
            self._record(question, kind, f"g{self._number}", Comment="101")
            if kind == 10:
                question["ClosedDate"] = self._now
            else:
                del question["ClosedDate"]

    def _make_wiki(self) -> None:
        post = self._choose()
        if post and "CommunityOwnedDate" not in post:
            post["CommunityOwnedDate"] = self._now
            self._record(post, 16, f"g{self._number}")

    def _accept(self) -> None:
        if answer := self._choose(2):
            question = self._posts[answer["ParentId"]]
            if question["deleted"]:
                return
            former = question.get("AcceptedAnswerId")
            self.tables["Votes"] = [
                vote
                for vote in self.tables["Votes"]
                if vote["VoteTypeId"] != 1 or vote["PostId"] != former
            ]
            question["AcceptedAnswerId"] = answer["Id"]
            self._cast(answer, 1)

    def _cast(self, post: Row, kind: int) -> None:
        vote = self._new(PostId=post["Id"], VoteTypeId=kind)
        self.tables["Votes"].append({**vote, "CreationDate": f"{self._day}T00:00:00.000"})

    def _vote(self) -> None:
        if post := self._choose():
            kind = self._random.choice((2, 2, 2, 3, 5))
            self._cast(post, kind)
            post["Score"] += {2: 1, 3: -1}.get(kind, 0)
            if kind == 5:
                post["FavoriteCount"] = post.get("FavoriteCount", 0) + 1

    def _comment(self) -> None:
        if post := self._choose():
            comment = self._new(PostId=post["Id"], Score=3, Text="Well", CreationDate=self._now)
            self.tables["Comments"].append(comment)
            post["CommentCount"] += 1

    def _delete(self) -> None:
        """Delete an answer, or undelete it if it is deleted."""
        answers = [post for post in self._posts.values() if post["PostTypeId"] == 2]
        if answers:
            answer = self._random.choice(answers)
            answer["deleted"] = not answer["deleted"]
            self._record(answer, 12 if answer["deleted"] else 13, f"g{self._number}")
            self._posts[answer["ParentId"]]["AnswerCount"] += -1 if answer["deleted"] else 1

    def _migrate(self) -> None:
        """Move a question here that was asked elsewhere on the day before the site began."""
        now, self._now = self._now, "2019-12-31T10:00:00.000"
        self._ask()
        self._now = now
        self._record(self._posts[max(self._posts)], 36, f"g{self._number}")

    def _dump(self) -> dict[int, Row]:
        return {
            id_: {name: copy.copy(post[name]) for name in post if name not in _NOT_DUMPED}
            for id_, post in self._posts.items()
            if not post["deleted"]
        }

    def expect(self, day: int) -> dict[int, Row]:
        """Return what the dump at the end allows to know about the posts of an evening."""
        last = self.evenings[LAST]
        end = f"2020-01-{day:02}T99"
        votes = [vote for vote in self.tables["Votes"] if vote["CreationDate"] < end]
        accepted = {vote["PostId"] for vote in votes if vote["VoteTypeId"] == 1}
        posts = {id_: dict(p) for id_, p in self.evenings[day].items() if id_ in last}
        for id_, post in posts.items():
            post.pop("ViewCount", None)
            post["BodyFrom"] = "history" if self._is_edited(id_, day) else "dump"
            if post["PostTypeId"] == 1:
                answers = [p for p in posts.values() if p.get("ParentId") == id_]
                post["AnswerCount"] = len(answers)
                if post["LastActivityDate"] != last[id_]["LastActivityDate"]:
                    dates = [p.get("LastEditDate", p["CreationDate"]) for p in (post, *answers)]
                    post["LastActivityDate"] = max(dates)
            if post.get("AcceptedAnswerId") not in accepted & posts.keys():
                post.pop("AcceptedAnswerId", None)
        return posts

    def _is_edited(self, post_id: int, day: int) -> bool:
        return any(
            row["PostId"] == post_id
            and row["PostHistoryTypeId"] in (5, 8)
            and row["CreationDate"] > f"2020-01-{day:02}T99"
            for row in self.tables["PostHistory"]
        )

    def write(self, folder: Path) -> Path:
        """Write the dump at the end."""
        for table, rows in self.tables.items():
            write_dump(folder / f"{table}.xml", *(row(**as_text(values)) for values in rows))
        return folder


def as_text(values: Row) -> Row:
    """Return the values of a row as in a dump."""
    return {
        name: "".join(f"<{tag}>" for tag in value)
        if name == "Tags"
        else f"<p>{value}</p>\n"
        if name == "Body"
        else value
        for name, value in values.items()
    }
