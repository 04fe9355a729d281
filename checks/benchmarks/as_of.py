"""Compare the state of a date, restored from a later dump, with the dump published then.

    python checks/benchmarks/as_of.py LATER_DUMP PUBLISHED_DUMP DATE
    python checks/benchmarks/as_of.py FOLDER

LATER_DUMP is an archive or a folder with all tables; PUBLISHED_DUMP is a `Posts.xml` or its folder.
For each attribute, the script prints how many posts have the same value in both. With `--show N`,
it also prints the first N bodies that differ.

A single FOLDER with the files of a dump is compared with itself: each post gets a made-up later
edit of all texts, so that texts are restored from the newest revision, and scores from the votes.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import so2docs

Post = dict[str, Any]

_END, _LATER = "2030-12-31", "2031-01-01"

_REL = re.compile(r' rel="[^"]*"')
_EMPTY = re.compile(r' (?:alt|title)=""')
_ADDRESS = re.compile(r'(href|src)="([^"]*)"')
_CHARACTER = re.compile(r"&(?!lt;|amp;)#?\w+;")
_BLOCK = re.compile(r"\s*(</?(?:p|ul|ol|li|blockquote|pre|h\d|hr|br|div)\b[^>]*>)\s*")
_SAME = ("Title", "Tags", "Score", "AcceptedAnswerId", "AnswerCount", "CommentCount")
_DATES = ("CreationDate", "LastEditDate", "LastActivityDate", "ClosedDate", "CommunityOwnedDate")
_OTHER = ("FavoriteCount", "OwnerUserId", "OwnerDisplayName", "LastEditorUserId")


def read_posts(dump: str, **options: Any) -> dict[int, Post]:
    """Read all questions and answers of a dump, by id."""
    with so2docs.documents(dump, **options) as questions:
        return {
            post["Id"]: post
            for question in map(dict[str, Any], questions)
            for post in split_posts(question)
        }


def split_posts(question: Post) -> Iterator[Post]:
    """Yield a question and its answers as separate posts."""
    yield from question.pop("Answers")
    yield question


def normalize(body: str) -> str:
    """Remove what no reader sees: white space, escapes, `rel`, and `http` for `https`."""
    body = _EMPTY.sub("", _REL.sub("", body)).replace(" />", ">")
    body = _CHARACTER.sub(lambda match: unescape(match[0]), body)
    body = _ADDRESS.sub(lambda match: f'{match[1]}="{unquote(match[2])}"', body)
    body = _BLOCK.sub(r"\1", body.replace("http://", "https://"))
    return " ".join(body.replace("&amp;", "&").split())


def share(same: int, total: int) -> str:
    """Format a number of equal values."""
    return f"{same:>6,} of {total:>6,}  {100 * same / (total or 1):6.2f} %"


def compare(restored: dict[int, Post], published: dict[int, Post]) -> Iterator[str]:
    """Yield a line for each attribute."""
    ids = restored.keys() & published.keys()
    yield f"{'posts found':<34} {share(len(ids), len(published))}"
    yield f"{'posts not published':<34} {len(restored.keys() - ids):>6,}"
    for label, origin in (("bodies of the dump", "dump"), ("bodies from the history", "history")):
        chosen = [id_ for id_ in ids if restored[id_]["BodyFrom"] == origin]
        pairs = [(restored[id_]["Body"], published[id_]["Body"]) for id_ in chosen]
        same = sum(old == new for old, new in pairs)
        yield f"{label + ', byte for byte':<34} {share(same, len(pairs))}"
        same = sum(normalize(old) == normalize(new) for old, new in pairs)
        yield f"{label:<34} {share(same, len(pairs))}"
    for name in (*_SAME, *_DATES, *_OTHER):
        is_of_question = any(name in published[id_] for id_ in ids if "Title" in published[id_])
        is_of_answer = any(name in published[id_] for id_ in ids if "Title" not in published[id_])
        has = {True: is_of_question, False: is_of_answer}
        chosen = [id_ for id_ in ids if has["Title" in published[id_]]]
        if name == "Score":
            near = sum(abs(restored[id_][name] - published[id_][name]) <= 1 for id_ in chosen)
            yield f"{'Score, off by one at most':<34} {share(near, len(chosen))}"
        # A missing count is 0.
        pairs = [
            (restored[id_].get(name) or None, published[id_].get(name) or None) for id_ in chosen
        ]
        same = sum(old == new for old, new in pairs)
        yield f"{name:<34} {share(same, len(chosen))}"


def show_differences(
    restored: dict[int, Post], published: dict[int, Post], limit: int
) -> Iterator[str]:
    """Yield the differences of the first bodies from the history that differ."""
    for id_ in sorted(restored.keys() & published.keys()):
        old, new = (normalize(posts[id_]["Body"]) for posts in (restored, published))
        if old != new and restored[id_]["BodyFrom"] == "history" and limit > 0:
            limit -= 1
            yield f"post {id_}"
            yield from list(
                difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm="", n=0)
            )[2:]


def edit_later(folder: Path, posts: dict[int, Post], copy: Path) -> None:
    """Copy a dump, with a later edit of the texts of each post."""
    for path in folder.iterdir():
        content = path.read_bytes()
        if path.name.startswith("PostHistory.xml"):
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            edits = "".join(
                f'<row Id="{10**9 + 10 * id_ + kind}" PostHistoryTypeId="{kind}" PostId="{id_}" '
                f'RevisionGUID="{id_}" CreationDate="{_LATER}T00:00:00.000" Text="later" />\n'
                for id_, post in posts.items()
                for kind in ((4, 5, 6) if "Title" in post else (5,))
            )
            end = content.rindex(b"</posthistory>")
            content = content[:end] + edits.encode() + content[end:]
        (copy / (path.stem if path.stem == "PostHistory.xml" else path.name)).write_bytes(content)


def main() -> None:
    """Restore a date, and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("later", metavar="LATER_DUMP")
    parser.add_argument("published", metavar="PUBLISHED_DUMP", nargs="?")
    parser.add_argument("date", metavar="DATE", nargs="?", default=_END)
    parser.add_argument("--show", type=int, default=0, metavar="N")
    arguments = parser.parse_args()
    published = read_posts(arguments.published or arguments.later)
    with TemporaryDirectory() as folder:
        dump = arguments.later
        if arguments.published is None:
            copy = Path(folder, Path(dump).name)
            copy.mkdir()
            edit_later(Path(dump), published, copy)
            dump = str(copy)
        restored = read_posts(dump, as_of=arguments.date)
    for line in compare(restored, published):
        print(line)
    for line in show_differences(restored, published, arguments.show):
        print(line)


if __name__ == "__main__":
    main()
