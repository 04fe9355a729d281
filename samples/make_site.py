"""Write the files of `so2docs sample` from posts.xml: python samples/make_site.py.

The other seven tables of a site are made up around the posts, so that all counts in them agree.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import py7zr

HERE = Path(__file__).parent
TARGET = HERE.parent / "so2docs" / "sample"
SITE = "beer.stackexchange.com"
NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Gül", "Hana", "Ida", "Jón", "Kim")
COMMENTS = (
    "Which flour is it?",
    "This helped, thank you!",
    "I see the same at home.",
    "Could you add a picture?",
    "That depends on the temperature.",
    "Works here as well.",
)

LICENSE = """\
This sample is made up: no post is from a site, and no user exists. Archives of sites since mid-2024
have a file of this name, which says what licence their content is under.
"""

Row = dict[str, object]


def site(posts: list[dict[str, str]]) -> dict[str, list[Row]]:
    """The rows of the other tables, by table."""
    tags = Counter(tag for post in posts for tag in post.get("Tags", "").strip("|").split("|"))
    del tags[""]
    wikis: dict[str, Row] = {"bread": {"ExcerptPostId": 11, "WikiPostId": 12}}
    comments: list[Row] = []
    votes: list[Row] = []
    history: list[Row] = []
    accepted = {post["AcceptedAnswerId"] for post in posts if "AcceptedAnswerId" in post}
    for post in posts:
        day, owner = post["CreationDate"], post.get("OwnerUserId")
        for number in range(int(post["CommentCount"])):
            text, user = COMMENTS[len(comments) % len(COMMENTS)], 11 + (len(comments) + number) % 11
            comments.append({"PostId": post["Id"], "Score": number, "Text": text})
            comments[-1] |= {"CreationDate": day[:11] + "21:00:00.000", "UserId": user}
        score = int(post["Score"])
        kinds = [1] * (post["Id"] in accepted) + [2 if score > 0 else 3] * abs(score)
        date = day[:10] + "T00:00:00.000"
        votes += ({"PostId": post["Id"], "VoteTypeId": n, "CreationDate": date} for n in kinds)
        first = {1: "Title", 2: "Body", 3: "Tags"}
        events = [(kind, day, owner, post[name]) for kind, name in first.items() if name in post]
        if "LastEditDate" in post:
            events = [(*e[:3], f"{e[3]}\n\nThanks!" if e[0] == 2 else e[3]) for e in events]
            events.append((5, post["LastEditDate"], post["LastEditorUserId"], post["Body"]))
        if "ClosedDate" in post:
            events.append((10, post["ClosedDate"], "16", None))
        for kind, date, user, text in events:
            guid = f"00000000-0000-4000-8000-{int(post['Id']):06}{kind if kind > 3 else 0:06}"
            event: Row = {"PostHistoryTypeId": kind, "PostId": post["Id"], "RevisionGUID": guid}
            event |= {"CreationDate": date, "UserId": user, "Comment": 102 if kind == 10 else None}
            history.append(event | {"Text": text, "ContentLicense": "CC BY-SA 4.0"})
    users: list[Row] = [{"Id": -1, "Reputation": 1, "DisplayName": "Community"}]
    users += (
        {"Id": n, "Reputation": 101 + n * 7, "DisplayName": name}
        for n, name in enumerate(NAMES, 11)
    )
    joined = {
        "CreationDate": "2023-06-01T08:00:00.000",
        "LastAccessDate": "2024-02-06T00:00:00.000",
    }
    badge = {"Name": "Teacher", "Date": "2024-02-01T00:00:00.000", "Class": 3, "TagBased": False}
    link = {"CreationDate": "2024-01-14T12:00:00.000", "PostId": 9, "RelatedPostId": 3}
    return {
        "Badges": [{"UserId": user} | badge for user in (12, 16, 18)],
        "Comments": [comment | {"ContentLicense": "CC BY-SA 4.0"} for comment in comments],
        "PostHistory": history,
        "PostLinks": [link | {"LinkTypeId": 1}],
        "Tags": [{"TagName": t, "Count": n} | wikis.get(t, {}) for t, n in sorted(tags.items())],
        "Users": [user | joined | {"Views": 2, "UpVotes": 5, "DownVotes": 0} for user in users],
        "Votes": votes,
    }


def table(name: str, rows: Iterable[Row]) -> bytes:
    """A table in the form of dumps; rows without an Id are numbered."""
    lines = ['\ufeff<?xml version="1.0" encoding="utf-8"?>', f"<{name.lower()}>"]
    for number, row in enumerate(rows, 1):
        cells = {"Id": number} | {key: value for key, value in row.items() if value is not None}
        text = " ".join(
            f"{key}={quoteattr(str(value), {chr(10): '&#xA;'})}" for key, value in cells.items()
        )
        lines.append(f"  <row {text} />")
    return "\r\n".join([*lines, f"</{name.lower()}>"]).encode()


def main() -> None:
    """Write both files."""
    TARGET.mkdir(exist_ok=True)
    shutil.copyfile(HERE / "posts.xml", TARGET / "Posts.xml")
    posts = [dict(row.attrib) for row in ElementTree.parse(HERE / "posts.xml").getroot()]
    filters = [{"id": py7zr.FILTER_LZMA2}]
    with py7zr.SevenZipFile(TARGET / f"{SITE}.7z", "w", filters=filters) as archive:
        archive.write(HERE / "posts.xml", "Posts.xml")
        for name, rows in site(posts).items():
            archive.writestr(table(name, rows), f"{name}.xml")
        archive.writestr(LICENSE, "license.txt")


if __name__ == "__main__":
    main()
