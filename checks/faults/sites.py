"""Dumps for the rounds: sites with tables, uncompressed or compressed in several ways."""

import gzip
import random
import zipfile
from base64 import b64encode
from functools import cache
from pathlib import Path

from support.dumps import answer, question, row, write_dump

TABLES = {
    "comments": "Comments.xml",
    "links": "PostLinks.xml",
    "votes": "Votes.xml",
    "users": "Users.xml",
}
FILES = ("Posts.xml", *TABLES.values())
SIZES = {"small": (400, 200), "middle": (800, 700), "large": (2500, 1200)}
"""Number of posts, and maximum size of a body in bytes, by size of the site. A bucket of the large
site does not fit into a pipe."""


@cache
def site(folder: Path, size: str, seed: int = 1) -> Path:
    """Make the folder of a site, with posts in several buckets, other tables, and strays."""
    path = folder / f"{size}-{seed}"
    path.mkdir()
    count, body_bytes = SIZES[size]
    rng = random.Random(seed)
    ids = rng.sample(range(1, 80_000), count)
    question_ids, users = ids[: count // 3], rng.sample(range(1, 10**6), count // 4)
    questions = set(question_ids)
    posts = [row(Id=7, PostTypeId=2), row(PostTypeId=1), row(Id=8, PostTypeId=5)]
    for post_id in ids:
        body = b64encode(rng.randbytes(rng.randrange(body_bytes))).decode()
        rest = {"Score": rng.randint(-3, 9), "OwnerUserId": rng.choice(users), "Body": body}
        parent = rng.choice(question_ids) if rng.random() < 0.97 else 10**7
        is_question = post_id in questions
        posts.append(question(post_id, **rest) if is_question else answer(post_id, parent, **rest))
    rng.shuffle(posts)
    some = [rng.choice(ids) if rng.random() < 0.97 else 10**7 + 1 for _ in range(count)]
    tables = (
        posts,
        [row(Id=n, PostId=i, Text=f"c{n}", UserId=rng.choice(users)) for n, i in enumerate(some)],
        [
            row(Id=n, PostId=i, RelatedPostId=rng.choice(ids), LinkTypeId=rng.choice((1, 3)))
            for n, i in enumerate(some)
        ],
        [row(Id=n, PostId=i, VoteTypeId=rng.choice((2, 3, 5))) for n, i in enumerate(some)],
        [row(Id=i, DisplayName=f"user {i}", Reputation=i % 99) for i in users],
    )
    for name, rows in zip(FILES, tables, strict=True):
        write_dump(path / name, *rows)
    return path


@cache
def packed(folder: Path, size: str, how: str) -> Path:
    """Return the path of a site: a folder, or a file with the tables next to it or in it."""
    unpacked = site(folder, size)
    if how == "folder":
        return unpacked
    if how == "zip":
        archive = folder / f"{size}.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as members:
            for name in FILES:
                members.write(unpacked / name, name)
        return archive
    if how == "gz":
        path = folder / f"{size}.gz"
        path.mkdir()
        for name in FILES:
            (path / f"{name}.gz").write_bytes(gzip.compress((unpacked / name).read_bytes(), 1))
        return path / "Posts.xml.gz"
    return unpacked / "Posts.xml"


def arguments(
    folder: Path, size: str, how: str, nest: tuple[str, ...], *, several: bool = False
) -> list[str]:
    """Return the command-line arguments that name a site, or two, and its tables."""
    if how != "stdin":
        paths = (
            [site(folder, size), site(folder, size, 2)] if several else [packed(folder, size, how)]
        )
        return [*map(str, paths), *(word for name in nest for word in ("--nest", name))]
    names = TABLES if nest == ("all",) else nest
    tables = site(folder, size)
    return ["-", *(f"--table={name}={tables / TABLES[name]}" for name in names)]
