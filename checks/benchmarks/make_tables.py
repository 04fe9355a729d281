"""Write tables of any size next to a `Posts.xml`; the same arguments give the same bytes.

The posts are those in the folder, written by `make_dump.py`, or, with `--posts`, short posts of
300 bytes, so that many rows and posts fit on a disk. The rows of each table are in ascending order
of Id. Most rows belong to recent posts, as on a real site; one in a thousand belongs to a missing
post.
"""

from __future__ import annotations

import argparse
import random
import re
import uuid
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

WORDS = 1 << 21
BATCH = 20_000
POST = re.compile(rb'<row Id="(\d+)" PostTypeId="[12]"')
VOTE_TYPES = (2,) * 83 + (3,) * 6 + (1,) * 4 + (5,) * 3 + (16, 16, 15, 10)
LICENCE = b'ContentLicense="CC BY-SA 4.0" />\r\n'


class Content:
    """Source of random values for the rows."""

    def __init__(self, seed: int, users: int, posts: array[int]) -> None:
        self.rng = random.Random(seed)
        self.users = users
        self.posts = posts
        letters = [bytes(self.rng.choices(b"etaoinshrdlucmfw", k=2 + n % 8)) for n in range(9000)]
        weights = [1 / (rank + 8) for rank in range(len(letters))]
        self.text = b" ".join(self.rng.choices(letters, weights, k=WORDS))

    def words(self, size: int) -> bytes:
        """Return `size` bytes from a random position of the text."""
        at = int(self.rng.random() * (len(self.text) - size))
        return self.text[at : at + size]

    def length(self) -> int:
        """Return a random comment length in bytes: 180 on average, and at most 600."""
        return min(600, 15 + int(self.rng.expovariate(1 / 165)))

    def user(self) -> int:
        """Return a random user id; a few users write most posts."""
        return 1 + int(self.users * self.rng.random() ** 3)

    def post(self, share: float, recent: float) -> int:
        """Return the id of a post for a row; one in a thousand is the id of a missing post.

        Args:
            share: Position of the row in its table, from 0 to 1; the post is not newer.
            recent: Probability that a recent post is preferred.
        """
        draw = self.rng.random
        if draw() < 0.001:
            return 2_000_000_000
        newest = max(1, int(share * len(self.posts)))
        back = draw() ** 6 if draw() < recent else draw()
        return self.posts[newest - 1 - int(back * newest)]

    def date(self, share: float) -> bytes:
        """Return the date at position `share` (from 0 to 1) of a period of sixteen years."""
        day = int(share * 16 * 336)
        second = int(self.rng.random() * 86_400)
        return b"%d-%02d-%02dT%02d:%02d:%02d.%03d" % (
            2008 + day // 336,
            1 + day % 336 // 28,
            1 + day % 28,
            second // 3600,
            second // 60 % 60,
            second % 60,
            int(self.rng.random() * 1000),
        )


def post(content: Content, number: int, share: float) -> bytes:
    """Make a question, or an answer to an earlier question; a third of the posts are questions."""
    question = number % 3 == 1
    kind = b'PostTypeId="1"' if question else b'PostTypeId="2" ParentId="%d"'
    if not question:
        back = int(content.rng.random() ** 6 * number)
        kind %= max(1, (number - back) // 3 * 3 + 1 - 3)
    body = content.words(120)
    return b'  <row Id="%d" %b CreationDate="%b" Score="3" Body="%b" OwnerUserId="%d" %b' % (
        number,
        kind,
        content.date(share),
        body,
        content.user(),
        LICENCE,
    )


def comment(content: Content, number: int, share: float) -> bytes:
    """Make a row of Comments.xml."""
    return b'  <row Id="%d" PostId="%d" Score="0" Text="%b" CreationDate="%b" UserId="%d" %b' % (
        number,
        content.post(share, 0.8),
        content.words(content.length()),
        content.date(share),
        content.user(),
        LICENCE,
    )


def link(content: Content, number: int, share: float) -> bytes:
    """Make a row of PostLinks.xml."""
    row = b'  <row Id="%d" CreationDate="%b" PostId="%d" RelatedPostId="%d" LinkTypeId="%d" />\r\n'
    related = content.post(share, 0)
    kind = 3 if number % 6 == 0 else 1
    return row % (number, content.date(share), content.post(share, 0.5), related, kind)


def vote(content: Content, number: int, share: float) -> bytes:
    """Make a row of Votes.xml."""
    kind = VOTE_TYPES[int(content.rng.random() * len(VOTE_TYPES))]
    day = content.date(share)[:10]
    row = b'  <row Id="%d" PostId="%d" VoteTypeId="%d" CreationDate="%bT00:00:00.000" />\r\n'
    return row % (number, content.post(share, 0.4), kind, day)


def user(content: Content, number: int, share: float) -> bytes:
    """Make a row of Users.xml."""
    about = b' AboutMe="%b"' % content.words(content.length()) if number % 4 == 0 else b""
    return (
        b'  <row Id="%d" Reputation="%d" CreationDate="%b" DisplayName="%b" LastAccessDate="%b"%b '
        b'Views="%d" UpVotes="0" DownVotes="0" AccountId="%d" />\r\n'
    ) % (
        number,
        int(content.rng.paretovariate(0.6)),
        content.date(share),
        content.words(12).strip(),
        content.date(1.0),
        about,
        number % 50,
        number * 3 + 1,
    )


SHORT, LONG = 40, 4
"""`SHORT` is the size of a title or of tags in bytes. `LONG` is the length of a body, as a multiple
of that of a comment."""
REVISIONS = (
    *[(2, 1, 3)] * 18,
    *[(2,)] * 38,
    *[(5,)] * 18,
    *[(5, 4)] * 3,
    *[(6,)] * 4,
    *[(5, 24)] * 6,
    *[(25,)] * 9,
    *[(10,)] * 2,
    (8,),
    (50,),
)
"""Event types of revisions; each tuple occurs as often as its percentage on the beer site."""


class Events:
    """Callable that makes rows of PostHistory.xml, one event at a time, grouped by revision."""

    def __init__(self) -> None:
        self.pending: list[int] = []
        self.start = b""

    def __call__(self, content: Content, number: int, share: float) -> bytes:
        """Make the next row of the current revision, or the first row of a new one."""
        if not self.pending:
            self.pending = list(content.rng.choice(REVISIONS))
            self.start = b'PostId="%d" RevisionGUID="%b" CreationDate="%b" ' % (
                content.post(share, 0.8),
                str(uuid.UUID(int=content.rng.getrandbits(128), version=4)).encode(),
                content.date(share),
            )
        kind = self.pending.pop(0)
        row = b'  <row Id="%d" PostHistoryTypeId="%d" %b' % (number, kind, self.start)
        return row + self._rest(content, kind)

    def _rest(self, content: Content, kind: int) -> bytes:
        user = content.user()
        if kind == 10:
            text = b'{"Voters":[{"Id":%d,"DisplayName":"%b"}]}' % (user, content.words(12))
            text = text.replace(b'"', b"&quot;")
            return b'UserId="%d" Comment="102" Text="%b" />\r\n' % (user, text)
        if kind == 24:
            words = b'Comment="Proposed by %d approved by %d edit id of %d" '
            return words % (user, content.user(), user) + LICENCE
        if kind == 25:
            return b'Comment="http://twitter.com/site/status/%d" />\r\n' % (user * 10**9)
        if kind == 50:
            return b'UserId="-1" />\r\n'
        is_body = kind in (2, 5, 8)
        text = content.words(LONG * content.length() if is_body else SHORT)
        comment = b'Comment="%b" ' % content.words(SHORT) if kind > 3 else b""
        return b'UserId="%d" %bText="%b" %b' % (user, comment, text, LICENCE)


Maker = Callable[[Content, int, float], bytes]
MAKERS: dict[str, tuple[str, Maker]] = {
    "comments": ("Comments.xml", comment),
    "links": ("PostLinks.xml", link),
    "votes": ("Votes.xml", vote),
    "users": ("Users.xml", user),
    "history": ("PostHistory.xml", Events()),
}


def batches(content: Content, make: Maker, rows: int) -> Iterator[bytes]:
    """Yield the rows of a table in batches, each joined to bytes."""
    for start in range(0, rows, BATCH):
        numbers = range(start, min(start + BATCH, rows))
        yield b"".join([make(content, number + 1, number / rows) for number in numbers])


def write(path: Path, content: Content, make: Maker, rows: int) -> None:
    """Write a table as XML; the file name determines the root element."""
    root = path.stem.lower().encode()
    with path.open("wb") as out:
        out.write(b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>\r\n<%b>\r\n' % root)
        out.writelines(batches(content, make, rows))
        out.write(b"</%b>" % root)


def post_ids(path: Path) -> array[int]:
    """Read the ids of the questions and answers of a dump, in the order of the dump."""
    with path.open("rb") as rows:
        return array("q", (int(found[1]) for row in rows if (found := POST.search(row))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the tables next to a Posts.xml.")
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--posts", type=int, help="write a Posts.xml of this many short posts first"
    )
    for name in MAKERS:
        parser.add_argument(f"--{name}", type=int, default=0, help="number of rows")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    posts = wanted.folder / "Posts.xml"
    if wanted.posts:
        write(posts, Content(wanted.seed, wanted.users or 1, array("q")), post, wanted.posts)
    content = Content(wanted.seed + 1, wanted.users or 1, post_ids(posts))
    for name, (file, make) in MAKERS.items():
        if rows := getattr(wanted, name):
            write(wanted.folder / file, content, make, rows)
