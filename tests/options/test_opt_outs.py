"""Opt-outs: no file of any command contains an id, name or text of a listed user or post."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.dumps import answer, question, row, write_dump
from support.packed import seven_zip

import so2docs
from so2docs import zstd

USER, POST, NAME, TEXT = 808080801, 707070701, "Nemo", "SECRET"
OTHERS = "WORDS OF OTHERS"
NEST = ("comments", "links", "votes", "history-text", "users", "badges")
BOTH = {"drop_users": "users.txt", "drop_posts": "posts.txt"}


def event(number: int, kind: int, post_id: Any, **attributes: Any) -> bytes:
    date = f"2014-01-{number % 28 + 1:02}T00:00:00.000"
    ids = {"Id": number, "PostHistoryTypeId": kind, "PostId": post_id}
    return row(**ids, RevisionGUID=f"g{number}", CreationDate=date, **attributes)


def suggestion(number: int, comment: str) -> bytes:
    return event(number, 24, 1, Comment=comment)


def malformed(row_of_table: bytes) -> bytes:
    """Make a row malformed by a raw ampersand in its last value."""
    return row_of_table.replace(b'" />', b' & more" />')


def voters(**members: Any) -> str:
    listed = {"Id": USER, "DisplayName": NAME}
    return json.dumps({"Voters": [listed, {"Id": 9, "DisplayName": "Ida"}], **members})


TABLES: dict[str, list[bytes]] = {
    "Posts": [
        question(1, Title=OTHERS, Body=OTHERS, OwnerUserId=9, LastEditorUserId=USER),
        question(2, Body=TEXT, OwnerUserId=USER),
        question(3, Body=OTHERS, OwnerUserId=9, AcceptedAnswerId=POST),
        answer(4, 1, Body=TEXT, OwnerUserId=USER),
        answer(5, 1, Body=OTHERS, OwnerUserId=9),
        answer(6, "x", Body=TEXT, OwnerUserId=USER),  # type: ignore[arg-type]
        answer(7, POST, Body=TEXT, OwnerUserId=9),
        row(Id=8, PostTypeId=5, Body=TEXT, OwnerUserId=USER),
        malformed(question(10, OwnerUserId=USER, Body=TEXT)),
        malformed(row(PostTypeId=2, OwnerDisplayName=NAME, ParentId=POST, Body=TEXT)),
        malformed(question(11, LastEditorUserId=USER, LastEditorDisplayName=NAME, Body=TEXT)),
        malformed(question(12, OwnerUserId=9, Body=OTHERS)),
        row(Id=13, PostTypeId="?", OwnerUserId=9, Body=OTHERS, LastEditorUserId=USER),
    ],
    "Comments": [
        row(Id=1, PostId=POST, Text=TEXT, UserId=9),
        row(Id="x", PostId=POST, Text=TEXT, UserId=9),
        row(Id="x", PostId=1, Text=TEXT, UserId=USER),
        row(Id=2, PostId=8, Text=TEXT, UserId=9),
        row(Id=3, PostId=1, Text=OTHERS, UserId=9),
        row(Id=4, PostId=99, Text=OTHERS, UserId=9),
        malformed(row(Id=5, PostId=POST, Text=TEXT)),
        malformed(row(Id=6, PostId=1, UserId=USER, Text=TEXT)),
    ],
    "Votes": [
        *[row(Id=n, PostId=POST, VoteTypeId=2) for n in range(3)],
        row(Id=4, PostId=POST, VoteTypeId="x", UserId=9),
        row(Id=5, PostId=1, VoteTypeId=8, UserId=USER, BountyAmount=50),
        row(Id=6, PostId="x", VoteTypeId=8, UserId=USER, BountyAmount=50),
        row(Id=7, PostId=1, VoteTypeId=2),
        malformed(row(Id=8, VoteTypeId=8, UserId=USER, BountyAmount=50)),
    ],
    "PostLinks": [
        row(Id=1, PostId=1, RelatedPostId=POST, LinkTypeId=1),
        row(Id=2, PostId=POST, RelatedPostId=1, LinkTypeId=1),
        row(Id=3, PostId=1, RelatedPostId=3, LinkTypeId=1),
    ],
    "PostHistory": [
        event(1, 2, POST, UserId=9, Text=TEXT),
        event(2, 2, 66, UserId=USER, UserDisplayName=NAME, Text=TEXT),
        event(3, 5, 66, UserId=9, Text=TEXT),
        event(4, 5, 8, UserId=9, Text=TEXT),
        event(5, 5, 1, UserId=USER, UserDisplayName=NAME, Comment=TEXT, Text=OTHERS),
        event(6, 5, "x", UserId=USER, Text=TEXT),
        event(7, 10, 1, UserId=9, Comment="101", Text=voters(OriginalQuestionIds=[POST, 3])),
        event(8, 10, 1, UserId=9, Text=voters(Reason=1)),
        event(9, 10, 1, UserId=9, Text=voters()[:-2] + f" {TEXT}"),
        event(10, 10, 77, UserId=9, Text=voters()),
        event(11, 10, 1, UserId=9, Text=json.dumps([{"By": {"UserId": str(USER), "Name": NAME}}])),
        suggestion(12, f"Proposed by {USER} approved by 9 edit id of 7"),
        suggestion(13, f"Proposed by 9 approved by 8, {USER} edit id of 7"),
        suggestion(14, f"Proposed by {USER} approved by  edit id of 7"),
        suggestion(15, f"Proposed by 203.0.113.7|a0-1 approved by {USER} edit id of 7"),
        suggestion(16, f"Proposed by {USER} edit id of 7"),
        event(17, 5, 88, UserId=9, Text=OTHERS),
        malformed(event(18, 2, POST, Text=TEXT)),
        malformed(event(19, 2, 1, UserId=USER, Text=TEXT)),
        malformed(event(20, 10, 1, UserId=9, Text=voters())),
        malformed(event(21, 24, 1, Comment=f"Proposed by 9 approved by {USER} edit id of 7")),
    ],
    "Users": [
        row(Id=9, DisplayName="Ida", AboutMe="A PROFILE"),
        row(Id=USER, DisplayName=NAME, Location=NAME, AboutMe=TEXT),
        row(Id=USER, DisplayName=NAME, Reputation=2),
        row(Id=10, DisplayName="Eve"),
        malformed(row(Id=USER, DisplayName=NAME)),
    ],
    "Badges": [
        row(Id=1, UserId=USER, Name=NAME, Class=1),
        row(Id=2, UserId=USER, Name=NAME),
        row(Id=3, UserId=USER, Name=NAME, Class=7),
        row(Id=4, UserId=9, Name="Kept", Class=3),
    ],
}


def write_site(folder: Path, **tables: list[bytes]) -> Path:
    for name, rows in {**TABLES, **tables}.items():
        write_dump(folder / f"{name}.xml", *rows)
    return folder


def write_lists(folder: Path) -> dict[str, Path]:
    (folder / "users.txt").write_text(f"{USER}\n")
    (folder / "posts.txt").write_text(f"{POST}\n")
    return {name: folder / file for name, file in BOTH.items()}


ID_SETS = {f"{name}.map" for name in BOTH}
"""Files with a bit for each id up to the greatest one in a list, and no text."""


def contents(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield every file below a folder as text: decompressed, or as values of its columns."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name in ID_SETS:
            continue
        data = path.read_bytes()
        if data.startswith(b"PAR1"):
            data += repr(pq.read_table(path).to_pylist()).encode()
        elif data.startswith(b"SQLite format 3\0"):
            with closing(sqlite3.connect(path)) as database:
                data += "\n".join(database.iterdump()).encode()
        elif data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        elif data.startswith(b"\x28\xb5\x2f\xfd"):
            data = zstd.decompress(data)
        yield str(path.relative_to(folder)), data.decode(errors="replace")


SECRETS = re.compile(rf"(?<![\d.])(?:{USER}|{POST})(?!\d)|{NAME}|{TEXT}|203\.0\.113\.7")
"""Matches an id, unless it is part of a number, such as the seconds of a report."""


def leaks(folder: Path) -> list[tuple[str, str]]:
    """Find the files that contain data of the listed user or post, each with the data."""
    return [(name, found) for name, text in contents(folder) for found in SECRETS.findall(text)]


OUTPUTS: list[dict[str, Any]] = [
    {"output": "q.jsonl"},
    {"output": "q.jsonl.gz", "split": "100kB"},
    {"output": "q.jsonl.zst"},
    {"output": "q.json"},
    {"output": "q.parquet"},
    {"output": "q.ravendbdump"},
    {"output": "q.jsonl", "format": "mongodb"},
    {"output": "q.jsonl", "format": "elasticsearch"},
    *(
        {"output": "q.jsonl", "recipe": name, "attribution": True}
        for name in ("edits:EDITS", "qa", "preferences", "thread", "blocks:BLOCKS", "hub")
    ),
]


@pytest.mark.parametrize(
    "options", OUTPUTS, ids=lambda options: "-".join(map(str, options.values()))
)
def test_files_contain_nothing_of_listed_users_and_posts(
    options: dict[str, Any], tmp_path: Path
) -> None:
    site, made = write_site(tmp_path / "beer.stackexchange.com"), tmp_path / "made"
    made.mkdir()
    chosen = {**options, "output": made / options["output"]}
    chosen |= {"nest": NEST, "jobs": 1, "errors": "skip", "report": made / "report.json"}
    chosen["card"] = options["output"] in ("q.jsonl", "q.parquet") and "format" not in options
    so2docs.convert(site, **chosen, force=True)
    assert {secret for _, secret in leaks(made)} >= {str(USER), str(POST), NAME, TEXT}
    report = so2docs.convert(site, **chosen, **write_lists(tmp_path), force=True)
    assert leaks(made) == []
    everything = dict(contents(made))
    assert OTHERS in "".join(everything.values())
    report.check()
    assert report.strays == {"malformed_row": 1, "invalid_post_type_id": 1}
    assert (report.questions, report.answers, report.dropped) == (2, 1, 10)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        *(((name,), {"core": "python", "jobs": 1}) for name in BOTH),
        pytest.param(tuple(BOTH), {"jobs": 2, "chunk_bytes": 1000}, marks=pytest.mark.long),
    ],
)
def test_folders_and_archives_make_the_same_without_them(
    names: tuple[str, ...], options: Any, tmp_path: Path
) -> None:
    """In archives, comments come before their posts, when questions are not yet known."""
    site = write_site(tmp_path / "site")
    seven_zip(tmp_path / "site.7z", sorted(site.iterdir()))
    lists = write_lists(tmp_path)
    chosen: dict[str, Any] = {"nest": NEST, "errors": "skip"} | {n: lists[n] for n in names}
    outputs = []
    for source, more in ((site, {}), (site, options), (tmp_path / "site.7z", options)):
        made = tmp_path / str(len(outputs))
        made.mkdir()
        report = so2docs.convert(source, made / "q.jsonl", **chosen, **more)
        strays = sorted(Path(report.strays_path or "").read_text().splitlines())
        counts = {name: (t.nested, t.filtered, t.strays) for name, t in report.tables.items()}
        outputs.append(((made / "q.jsonl").read_bytes(), strays, counts, report.filtered))
    assert outputs[0] == outputs[1] == outputs[2]
    secrets = {"drop_users": str(USER), "drop_posts": str(POST)}
    for name in names:
        assert secrets[name] not in str(outputs[0][:2])


def test_databases_of_a_dump(tmp_path: Path) -> None:
    posts = [*TABLES["Posts"], row(Id=14, PostTypeId=4, Body=TEXT, OwnerUserId=USER)]
    posts = [post for post in posts if b" & more" not in post]
    tags = [row(Id=1, TagName="a", Count=1, ExcerptPostId=14)]
    site, made = write_site(tmp_path / "site", Posts=posts, Tags=tags), tmp_path / "made"
    made.mkdir()
    lists: Any = write_lists(tmp_path)
    so2docs.to_sqlite(site, made / "dump.db", errors="skip", **lists, jobs=1)
    for path in made.glob(".*.record"):  # It has the hash of the lists.
        path.unlink()
    assert leaks(made) == []


@pytest.mark.parametrize("form", ["parquet", "sqlite"])
def test_flat_tables(form: Any, tmp_path: Path) -> None:
    tags = [
        row(Id=1, TagName="a", ExcerptPostId=POST, WikiPostId=f" {POST}"),
        malformed(row(Id=2, WikiPostId=POST, TagName=TEXT)),
    ]
    site = write_site(tmp_path / "site", Tags=tags)
    whole, made = tmp_path / "whole", tmp_path / "made"
    options: dict[str, Any] = {"format": form, "errors": "skip"}
    so2docs.tables(site, whole, **options)
    assert {secret for _, secret in leaks(whole)} >= {str(USER), str(POST), NAME, TEXT}
    report = so2docs.tables(site, made, **options, **write_lists(tmp_path))
    assert leaks(made) == []
    assert OTHERS in "".join(dict(contents(made)).values())
    assert all(table.unaccounted == 0 for table in report.values())
    assert report["posts"].strays == {"malformed_post": 1}
    assert (report["posts"].filtered, report["users"].written) == (8, 2)
    with pytest.raises(so2docs.OutputError, match="drop_users"):
        so2docs.tables(site, made, **options)
    so2docs.tables(site, made, **options, **write_lists(tmp_path), as_of="2015", update=True)
    assert leaks(made) == []


@pytest.mark.parametrize("table", [name for name in TABLES if name not in ("PostLinks", "Badges")])
def test_the_excerpt_of_a_malformed_row(table: str, tmp_path: Path) -> None:
    broken = [rows for rows in TABLES[table] if b" & more" in rows]
    for number, row_of_table in enumerate(broken):
        is_of_others = OTHERS.encode() in row_of_table
        made = tmp_path / str(number)
        made.mkdir()
        others = {name: [] for name in TABLES} | {"Posts": [question(1, Body="b")]}
        site = write_site(tmp_path / f"site{number}", **{**others, table: [row_of_table]})
        with pytest.raises(so2docs.MalformedDumpError) as error:
            so2docs.convert(site, made / "q.jsonl", nest=NEST, **write_lists(tmp_path))
        assert leaks(made) == []
        excerpts = [name for name, text in contents(made) if OTHERS in text]
        assert len(excerpts) == is_of_others
        assert bool(error.value.excerpt_path) == is_of_others


def test_a_long_character_reference_in_a_malformed_row(tmp_path: Path) -> None:
    # Python refuses to convert more than 4300 digits to a number.
    reference = b"&#%b;" % (b"1" * 5000)
    broken = malformed(question(1, Body="REFERENCE")).replace(b"REFERENCE", reference)
    dump = write_dump(tmp_path / "Posts.xml", broken, question(2))
    report = so2docs.convert(dump, tmp_path / "q.jsonl", drop_users=[USER], errors="skip")
    assert (report.questions, report.strays) == (1, {"malformed_row": 1})
