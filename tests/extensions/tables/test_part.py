"""`tables` of a part of a site: the rows of selected questions are consistent."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
import reprlib
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.dumps import answer, question, row, write_dump
from support.filtering import pattern_of, place_of
from support.flat_oracle import LINKS, Row, Site, broken_links, read_back, rows_in, tables_in
from support.places import CHECKOUT, LONG, SAMPLES

import so2docs
from so2docs.extensions.tables import tables as flat_tables
from so2docs.options.choices import Core
from so2docs.schema import DUMP

SAMPLE = CHECKOUT / "so2docs" / "sample" / "sample.stackexchange.com.7z"
CASES: list[dict[str, Any]] = [
    {"tags": ["sto*", "hops"]},
    {"tags": "?*-*,b*", "all_tags": True, "since": "2017", "until": "2019-06-01"},
    {"keep_users": [8, 43, 10**12]},
    {"keep_posts": [*range(1, 500), 10**12], "keep_users": [8, 43]},
    {"sample": "40%", "min_score": 0, "answered": True},
    {"max_body": 700, "min_answer_score": 2, "max_answers": 2},
    {"accepted": True, "keep_users": [8, 43]},
    {"keep_posts": [10**12]},
]


@pytest.fixture(
    scope="module",
    params=[
        "sample",
        pytest.param("beer.stackexchange.com", marks=pytest.mark.long),
    ],
)
def site(request: pytest.FixtureRequest) -> Path:
    if request.param == "sample":
        return SAMPLES / "site"
    return request.getfixturevalue("unpacked_dumps") / request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def whole(site: Path) -> Site:
    return rows_in(site)


def part_of(site: Site, **options: Any) -> Site:
    """Compute the part from all rows in memory."""
    posts = site["Posts"]
    thread = {1: "Id", 2: "ParentId"}

    def thread_of(post: Row) -> Any:
        return post[thread[post["PostTypeId"]]] if post["PostTypeId"] in thread else None

    existing = {post["Id"] for post in posts if post["PostTypeId"] == 1}
    questions = {post["Id"] for post in posts if post["PostTypeId"] == 1 and _passes(post, options)}
    for name, column in (("keep_users", "OwnerUserId"), ("keep_posts", "Id")):
        if name in options:
            questions &= {thread_of(post) for post in posts if post[column] in options[name]}
    threads = [post for post in posts if thread_of(post) in questions & existing]
    answers = {post["Id"]: post for post in threads if post["PostTypeId"] == 2}
    left_out = {number for number, one in answers.items() if not _is_kept_answer(one, options)}
    threads = [post for post in threads if post["Id"] not in left_out]
    names = {tag for post in threads for tag in post["Tags"] or ()}
    tags = [tag for tag in site.get("Tags", []) if tag["TagName"] in names]
    wikis = {tag[name] for tag in tags for name in ("ExcerptPostId", "WikiPostId")}
    ids = {post["Id"] for post in threads}
    ids |= {post["Id"] for post in posts if post["PostTypeId"] in (4, 5) and post["Id"] in wikis}
    kept = [post for post in posts if post["Id"] in ids]
    kept = [
        post | {"AcceptedAnswerId": None} if post["AcceptedAnswerId"] in left_out else post
        for post in kept
    ]
    part = {"Posts": kept, "Tags": tags}
    for stem in ("Comments", "Votes", "PostHistory", "PostLinks"):
        links = [name for name, target in LINKS[stem].items() if target == "Posts"]
        part[stem] = [one for one in site.get(stem, []) if all(one[name] in ids for name in links)]
    users = {
        one[name]
        for stem, rows in part.items()
        for name, target in LINKS[stem].items()
        for one in rows
        if target == "Users"
    }
    part["Users"] = [user for user in site.get("Users", []) if user["Id"] in users]
    part["Badges"] = [badge for badge in site.get("Badges", []) if badge["UserId"] in users]
    return {stem: part[stem] for stem in site}


def _is_kept_answer(post: Row, options: dict[str, Any]) -> bool:
    return post["Score"] >= options.get("min_answer_score", -(10**9)) and _is_short(post, options)


def _is_short(post: Row, options: dict[str, Any]) -> bool:
    return len((post["Body"] or "").encode()) <= options.get("max_body", 10**9)


def _passes(post: Row, options: dict[str, Any]) -> bool:
    wanted = options.get("tags", ())
    wanted = wanted.split(",") if isinstance(wanted, str) else wanted
    patterns = map(pattern_of, wanted)
    matches = (any(re.fullmatch(one, tag) for tag in post["Tags"] or ()) for one in patterns)
    date = post["CreationDate"] or ""
    return (
        (not wanted or (all if options.get("all_tags") else any)(matches))
        and _is_short(post, options)
        and post["Score"] >= options.get("min_score", -(10**9))
        and options.get("min_answers", 0) <= post["AnswerCount"] <= options.get("max_answers", 999)
        and (post["AnswerCount"] > 0 or not options.get("answered"))
        and (post["AcceptedAnswerId"] is not None or not options.get("accepted"))
        and place_of(post["Id"]) < float(options.get("sample", "100%").rstrip("%")) / 100
        and ("since" not in options or date >= options["since"])
        and ("until" not in options or "" < date < options["until"])
    )


@pytest.mark.parametrize("options", CASES, ids=reprlib.repr)
def test_the_part_fits_together(
    options: dict[str, Any],
    core: Core,
    site: Path,
    whole: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if core == "python" and site.name.startswith("beer") and not LONG:
        pytest.skip("with SO2DOCS_LONG=1")
    monkeypatch.setattr(flat_tables, "LARGE_CHUNK_BYTES", 200_000)
    report = so2docs.tables(site, tmp_path / "part", core=core, **options)
    part = {table.stem: read_back(tmp_path / "part", table, "parquet") for table in tables_in(site)}
    expected = part_of(whole, **options)
    for stem, rows in expected.items():
        assert part[stem] == rows
    assert all(report[table.name].unaccounted == 0 for table in tables_in(site))
    broken_by_the_dump = broken_links(whole)
    for key, ids in broken_links(part).items():
        assert {*ids} <= {*broken_by_the_dump[key]}
    if options != CASES[-1] and site.name.startswith("beer"):
        assert all(
            0 < len(part[stem]) < len(rows) for stem, rows in whole.items() if stem != "PostLinks"
        )


PAGE = (CHECKOUT / "docs" / "flat-tables.md").read_text(encoding="utf-8")
SET = re.compile(r"^\| ([\d,]+) \| ([\d,]+) \| `(\w{64})` \| `(\w{64})` \|$", re.MULTILINE)


def test_a_set_contains_every_smaller_one(tmp_path: Path) -> None:
    smaller: dict[str, set[str]] = {}
    for size in (2, 5, 9):
        so2docs.tables(SAMPLE, tmp_path / str(size), sample_size=size, format="jsonl", jobs=1)
        lines = {
            path.name: {*gzip.decompress(path.read_bytes()).decode().splitlines()}
            for path in (tmp_path / str(size)).glob("[A-Z]*.gz")
        }
        assert all(rows <= lines[name] for name, rows in smaller.items())
        assert smaller.get("Posts.jsonl.gz") != lines["Posts.jsonl.gz"] != set()
        smaller = lines


@pytest.mark.long
def test_sets_of_the_docs(dumps: Path, tmp_path: Path) -> None:
    dump = dumps / "archives" / "beer.stackexchange.com.7z"
    sets = SET.findall(PAGE)
    assert [size for size, *_ in sets] == ["10", "100", "1,000"]
    for size, count, of_documents, of_posts in sets:
        options: dict[str, Any] = {"sample_size": int(size.replace(",", "")), "jobs": 1}
        so2docs.convert(dump, tmp_path / f"{size}.jsonl", **options)
        folder = tmp_path / size
        report = so2docs.tables(dump, folder, only="posts", format="jsonl", **options)
        posts = gzip.decompress((folder / "Posts.jsonl.gz").read_bytes())
        assert hashlib.sha256((tmp_path / f"{size}.jsonl").read_bytes()).hexdigest() == of_documents
        assert hashlib.sha256(posts).hexdigest() == of_posts
        assert f"{report['posts'].written:,}" == count


def test_a_single_table_equals_the_same_table_of_all(tmp_path: Path) -> None:
    site, options = SAMPLES / "site", {"keep_posts": [1]}
    so2docs.tables(site, tmp_path / "all", **options)
    for name in ("users", "votes"):
        so2docs.tables(site, tmp_path / name, only=name, **options)
        table = DUMP[name]
        rows = read_back(tmp_path / name, table, "parquet")
        assert rows == read_back(tmp_path / "all", table, "parquet")
        assert [path.name for path in (tmp_path / name).iterdir() if path.name[0] != "."] == [
            f"{table.stem}.parquet"
        ]


def test_answers_without_their_question_are_left_out(tmp_path: Path) -> None:
    rows = [question(1), answer(2, 9), answer(3, 1), row(Id=4, PostTypeId=5, ParentId=1), row(Id=5)]
    write_dump(tmp_path / "Posts.xml", *rows)
    report = so2docs.tables(tmp_path, tmp_path / "out", keep_posts=[2, 3])
    written = read_back(tmp_path / "out", DUMP["posts"], "parquet")
    assert [post["Id"] for post in written] == [1, 3]
    assert (report["posts"].written, report["posts"].filtered) == (2, 3)


def test_unused_tags(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", question(1, Tags="|tea|"), question(2, Tags="|Tea|"))
    done = run("tables", dump, tmp_path / "out", "--tag", "teas*", "-q", code=0)
    assert "no question passed all filters" in done.stderr
    so2docs.tables(dump, tmp_path / "tea", tags="TEA")
    assert len(read_back(tmp_path / "tea", DUMP["posts"], "parquet")) == 2


def write_random_site(folder: Path, seed: int) -> Path:
    """Write all eight tables, with rows by 12 users about 60 posts."""
    roll = random.Random(seed)

    def user() -> int:
        return roll.randint(1, 12)

    def post() -> int:
        return roll.randint(1, 60)

    def event(number: int) -> bytes:
        kind, by, text = roll.choice([2, 5, 10, 24]), user(), "words"
        comment = f"Proposed by {user()} approved by {user()} edit id of 7" if kind == 24 else "c"
        if kind == 10:
            voters = [{"Id": user(), "DisplayName": "V"}, {"Id": user(), "DisplayName": "W"}]
            text = json.dumps({"OriginalQuestionIds": [post(), post()], "Voters": voters})
        ids = {"Id": number, "PostHistoryTypeId": kind, "PostId": post(), "UserId": by}
        return row(**ids, UserDisplayName=f"u{by}", Comment=comment, Text=text)

    def post_row(number: int) -> bytes:
        facts = {"OwnerUserId": user(), "LastEditorUserId": user(), "LastEditorDisplayName": "e"}
        facts |= {"Score": roll.randint(-2, 9), "Body": f"body {number}"}
        if number > 54:
            return row(Id=number, PostTypeId=4 + number % 2, **facts)
        if number % 3:
            return answer(number, 3 * roll.randint(1, 18), **facts)
        tags = "".join(f"|{tag}" for tag in roll.sample(["a", "b", "c"], 2)) + "|"
        return question(number, AcceptedAnswerId=post(), AnswerCount=2, Tags=tags, **facts)

    posts = [post_row(number) for number in range(1, 61)]
    roll.shuffle(posts)
    numbers = range(1, 121)
    tables: dict[str, list[bytes]] = {
        "Posts": posts,
        "Comments": [row(Id=n, PostId=post(), Text=f"c{n}", UserId=user()) for n in numbers],
        "Votes": [row(Id=n, PostId=post(), VoteTypeId=8, UserId=user()) for n in numbers],
        "PostLinks": [row(Id=n, PostId=post(), RelatedPostId=post()) for n in numbers],
        "PostHistory": [event(n) for n in numbers],
        "Users": [row(Id=n, DisplayName=f"u{n}") for n in range(1, 13)],
        "Badges": [row(Id=n, UserId=user(), Name="b") for n in numbers],
        "Tags": [
            row(Id=n, TagName=tag, ExcerptPostId=54 + 2 * n, WikiPostId=53 + 2 * n)
            for n, tag in enumerate("abc", 1)
        ],
    }
    for name, rows in tables.items():
        write_dump(folder / f"{name}.xml", *rows)
    return folder


def without(site: Site, users: set[int], listed: set[int]) -> Site:
    """Leave out users and posts, with all that belongs to them, from all rows in memory."""
    posts = site["Posts"]
    gone = {one["Id"] for one in posts if one["OwnerUserId"] in users} | listed
    gone |= {one["Id"] for one in posts if one["ParentId"] in gone}
    cleared = ("AcceptedAnswerId", "ExcerptPostId", "WikiPostId")
    authors = {"Posts": "OwnerUserId", "Users": "Id", "Votes": ""}
    kept: Site = {}
    for stem, rows in site.items():
        kept[stem] = []
        keys = {"Posts": ["Id"], "PostLinks": ["PostId", "RelatedPostId"]}.get(stem, ["PostId"])
        for one in rows:
            if one.get(authors.get(stem, "UserId")) in users or any(
                one.get(key) in gone for key in keys
            ):
                continue
            changed = {name: None for name in cleared if one.get(name) in gone}
            if one.get("LastEditorUserId") in users:
                changed |= {"LastEditorUserId": None, "LastEditorDisplayName": None}
            if stem == "Votes" and one["UserId"] in users:
                changed |= {"UserId": None}
            if stem == "PostHistory":
                changed |= _forget(one, users, listed)
            kept[stem].append(one | changed)
    return kept


def _forget(event: Row, users: set[int], posts: set[int]) -> Row:
    named = {int(number) for number in re.findall(r"\d+", event["Comment"].partition(" edit")[0])}
    if event["PostHistoryTypeId"] == 24 and named & users:
        return {"Comment": None}
    if event["PostHistoryTypeId"] != 10:
        return {}
    before = json.loads(event["Text"])
    after = {
        "OriginalQuestionIds": [n for n in before["OriginalQuestionIds"] if n not in posts],
        "Voters": [voter for voter in before["Voters"] if voter["Id"] not in users],
    }
    return {} if after == before else {"Text": json.dumps(after, separators=(",", ":"))}


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_dropped_users_and_posts_are_in_no_table(
    form: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flat_tables, "LARGE_CHUNK_BYTES", 10_000)
    cases: list[tuple[set[int], set[int], dict[str, Any]]] = [
        ({3, 8}, {6, 16, 58, 999}, {}),
        ({3, 8}, set(), {"tags": "a", "min_answer_score": 2}),
        (set(), {6, 16, 57}, {"keep_users": [1, 2, 3]}),
    ]
    for number, (users, posts, options) in enumerate(cases):
        site = write_random_site(tmp_path / f"site{number}", number)
        lists = {"drop_users": users, "drop_posts": posts}
        for name, ids in lists.items():
            if ids:
                (tmp_path / name).write_text("\n".join(map(str, ids)))
                options[name] = tmp_path / name
        out = tmp_path / f"out{number}"
        report = so2docs.tables(site, out, format=form, **options)
        expected = whole = without(rows_in(site), users, posts)
        if given := {name: value for name, value in options.items() if name not in lists}:
            expected = part_of(whole, **given)
        for table in DUMP.values():
            assert read_back(out, table, form) == expected[table.stem], (number, table.name)
            counts = report[table.name]
            assert counts.written + counts.filtered == counts.rows
        assert not so2docs.tables(site, out, format=form, **options).is_new


MADE_UP = 1_000_000_001


def write_site_with_made_up_posts(folder: Path) -> Path:
    """Write a random site with a made-up question, its answers, and rows that refer to them."""
    write_random_site(folder, 1)
    added = {
        "Posts": [
            question(MADE_UP, Score=1, AnswerCount=3),
            answer(MADE_UP + 1, MADE_UP, Score=1),
            row(Id=MADE_UP + 2, PostTypeId=2, Body="no question", Score=1),
            answer(5000, MADE_UP, Score=1),
            question(5001, AcceptedAnswerId=MADE_UP + 2, Score=1, AnswerCount=0),
            question(1_000_000_000, Score=1, AnswerCount=0),
        ],
        "Comments": [row(Id=5000, PostId=MADE_UP), row(Id=5001, PostId=5001)],
        "PostLinks": [row(Id=5000, PostId=5001, RelatedPostId=MADE_UP, LinkTypeId=1)],
        "Votes": [row(Id=5000, PostId=5000, VoteTypeId=2)],
    }
    for stem, rows in added.items():
        file = folder / f"{stem}.xml"
        text = file.read_bytes()
        end = text.rindex(b"</")
        file.write_bytes(text[:end] + b"\n".join(rows) + b"\n" + text[end:])
    return folder


@pytest.mark.parametrize("given", [{}, {"min_answer_score": 0}, {"sample": "50%"}])
def test_made_up_posts_are_in_no_table(given: dict[str, Any], tmp_path: Path) -> None:
    site = write_site_with_made_up_posts(tmp_path / "site")
    expected = without(rows_in(site), set(), {MADE_UP, MADE_UP + 1, MADE_UP + 2})
    assert 5000 not in {post["Id"] for post in expected["Posts"]}
    out = tmp_path / "out"
    report = so2docs.tables(site, out, drop_fabricated=True, **given)
    for table in DUMP.values():
        part = part_of(expected, **given) if given else expected
        assert read_back(out, table, "parquet") == part[table.stem], table.name
        counts = report[table.name]
        assert counts.written + counts.filtered == counts.rows


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="the bytes read are in /proc")
def test_the_ids_of_a_part_are_not_read_for_each_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks map the same sets, so the bytes read depend on the dump, not on chunks times ids."""
    monkeypatch.setattr(flat_tables, "LARGE_CHUNK_BYTES", 1 << 18)
    posts = [question(number, AnswerCount=1) for number in range(1, 120_000)]
    dump = write_dump(tmp_path / "Posts.xml", *posts)

    def count_read(name: str) -> int:
        before = int(Path("/proc/self/io").read_text().split()[1])
        so2docs.tables(dump, tmp_path / name, answered=True, format="csv", jobs=1)
        return int(Path("/proc/self/io").read_text().split()[1]) - before

    count_read("imports")
    assert count_read("t") < 7 * dump.stat().st_size
