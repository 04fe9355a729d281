"""Which rows existed on a date: one rule for documents and for flat tables."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.dumps import answer, question, row
from support.restored import event, restore, write_site
from support.site_over_time import Site

import so2docs
from so2docs.options.choices import Core
from so2docs.schema import POSTS

Row = dict[str, Any]

DAY = "2016-02-29"
BEFORE = "2016-01-01T00:00:00.000"


def read_flat(dump: Path, folder: Path, table: str, **options: Any) -> list[Row]:
    """Return the rows of a flat table."""
    so2docs.tables(dump, folder, only=table, jobs=1, force=True, **options)
    [file] = folder.glob("*.parquet")
    rows: list[Row] = pq.read_table(file).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("moment", "ids"),
    [
        ("2015-01-01T12:00:00.269", [1]),
        ("2015-01-01T12:00:00.27", [1, 2]),
        ("2015-01-01T12:00:00.271", [1, 2]),
        ("2015-01-01T12:00:00.3", [1, 2, 3]),
        ("2015-01-01T12:00:01", [1, 2, 3, 4]),
        ("2015-01-01T12:00", [1]),
        ("2015-01-01", [1, 2, 3, 4, 5]),
        ("2015", [1, 2, 3, 4, 5, 6]),
        ("9999", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_a_moment_is_part_of_the_past(
    moment: str, ids: list[int], core: Core, tmp_path: Path
) -> None:
    times = ("12:00:00.000", "12:00:00.270", "12:00:00.300", "12:00:01.000", "23:59:59.999")
    dates = [*(f"2015-01-01T{time}" for time in times), "2015-12-31T23:59:59.999"]
    posts = [question(id_, Body="b", CreationDate=date) for id_, date in enumerate(dates, 1)]
    comments = [
        row(Id=id_, PostId=1, CreationDate=date, Text="t") for id_, date in enumerate(dates, 1)
    ]
    dump = write_site(tmp_path / "dump", posts, Comments=comments)
    assert [*restore(dump, as_of=moment, core=core)] == ids
    options = {"as_of": moment, "core": core}
    assert restore(dump, nest="comments", **options)[1]["CommentCount"] == len(ids)
    for table in ("posts", "comments"):
        rows = read_flat(dump, tmp_path / table, table, **options)
        assert [row["Id"] for row in rows] == ids


def test_dates_that_do_not_exist(core: Core, tmp_path: Path) -> None:
    """Such rows are in documents and in flat tables, or in neither."""
    dates = [BEFORE, "2016-02-30T00:00:00.000", "2016-02-28T25:00:00.000", "never", "", None]
    dated = [{} if date is None else {"CreationDate": date} for date in dates]
    posts = [question(id_, Body="b", **date) for id_, date in enumerate(dated, 1)]
    comments = [row(Id=id_, PostId=1, Text="t", **date) for id_, date in enumerate(dated, 1)]
    dump = write_site(tmp_path / "dump", posts, Comments=comments)
    options = {"as_of": DAY, "core": core}
    documents = restore(dump, nest="comments", **options)
    assert [*documents] == [1, 3, 5]
    assert [comment["Id"] for comment in documents[1]["Comments"]] == [1, 3, 5]
    for table in ("posts", "comments"):
        rows = read_flat(dump, tmp_path / table, table, **options)
        assert [row["Id"] for row in rows] == [1, 3, 5]
        assert "2016-02-28T25:00:00.000" in rows[1]["Other"]


def as_column(name: str, value: Any) -> Any:
    """Return the value of an attribute as in a flat table."""
    return datetime.fromisoformat(f"{value}Z") if name.endswith("Date") else value


@pytest.mark.parametrize("options", [{}, {"drop_users": "3"}, {"tags": "ale"}])
def test_documents_and_flat_tables_are_equal(options: Row, tmp_path: Path) -> None:
    dump = Site(seed=3).write(tmp_path / "dump")
    for as_of in ("2020-01-03", "2020-01-14T12:00:00", "2020-01-28"):
        posts = restore(dump, as_of=as_of, **options)
        rows = read_flat(dump, tmp_path / "flat", "posts", as_of=as_of, **options)
        assert rows
        assert {
            post["Id"]: {name: value for name, value in post.items() if value is not None}
            for post in rows
        } == {
            id_: {
                **{name: as_column(name, post[name]) for name in post if name in POSTS.attributes},
                "Other": f'{{"BodyFrom":"{post["BodyFrom"]}"}}',
            }
            for id_, post in posts.items()
        }


def test_the_same_tables_for_any_number_of_jobs(tmp_path: Path) -> None:
    posts = [question(id_, Body="b" * 60_000, CreationDate=BEFORE) for id_ in range(1, 60)]
    dump = write_site(tmp_path / "dump", posts)
    for jobs in (1, 2):
        report = so2docs.tables(dump, tmp_path / str(jobs), as_of=DAY, jobs=jobs)
        assert (report["posts"].rows, report["posts"].written) == (59, 59)
    files = [(tmp_path / jobs / "Posts.parquet").read_bytes() for jobs in "12"]
    assert files[0] == files[1]
    rows = pq.read_table(tmp_path / "1" / "Posts.parquet").to_pylist()
    assert [row["Id"] for row in rows] == [*range(1, 60)]


LATER = "2020-01-01T00:00:00.000"


def test_a_deletion_without_its_undeletion_hides_no_post(core: Core, tmp_path: Path) -> None:
    posts = [question(id_, Body="b", CreationDate=BEFORE) for id_ in range(1, 5)]
    deletions = {
        1: [(12, "2016-01-10")],
        2: [(12, "2016-01-10"), (13, "2020-01-01")],
        3: [(12, "2016-01-10"), (13, "2016-01-20"), (12, "2020-01-01"), (13, "2021-01-01")],
        4: [(12, "2016-01-10"), (13, "2016-01-20"), (12, "2016-02-01"), (13, "2020-01-01")],
    }
    events = [
        event(number, post_id, kind, f"{day}T00:00:00.000")
        for post_id, of_post in deletions.items()
        for number, (kind, day) in enumerate(of_post, 10 * post_id)
    ]
    dump = write_site(tmp_path / "dump", posts, events)
    assert [*restore(dump, as_of=DAY, core=core)] == [1, 3]
    assert [*restore(dump, as_of="2022", core=core)] == [1, 2, 3, 4]


def test_an_answer_is_left_out_with_its_question(core: Core, tmp_path: Path) -> None:
    """An answer is a stray for its unknown text only where its question is a document."""
    edited = {"CreationDate": BEFORE, "LastEditDate": LATER, "Body": "b"}
    dates = {1: BEFORE, 3: LATER, 5: BEFORE, 7: BEFORE}
    posts = [question(id_, Body="b", CreationDate=date) for id_, date in dates.items()]
    posts += [answer(id_ + 1, id_, **edited) for id_ in (*dates, 99)]
    events = [event(1, 5, 12, BEFORE), event(2, 5, 13, LATER)]
    dump = write_site(tmp_path / "dump", posts, events)
    report = so2docs.convert(dump, tmp_path / "o.jsonl", as_of=DAY, core=core, drop_posts=[7])
    assert (report.questions, report.answers, report.filtered) == (1, 0, 6)
    assert report.strays == {"revision_missing": 1, "question_not_in_dump": 1}


def test_the_end_of_a_tag_is_no_edit(core: Core, tmp_path: Path) -> None:
    """The system account removes tags such as `featured`, and the sites show no edit."""
    dated = {"CreationDate": BEFORE, "LastEditDate": LATER, "Title": "t", "Body": "b", "Tags": "a"}
    posts = [question(id_, **dated) for id_ in (1, 2, 3)]
    edits = {1: (-1, "<a>"), 2: (7, "<a>"), 3: (-1, "<a><featured><c>")}
    events = []
    for id_, (editor, tags) in edits.items():
        first = 10 * id_
        events += [
            event(first, id_, 3, BEFORE, Text="<a><featured>", UserId=5),
            event(first + 1, id_, 2, BEFORE, Text="b", UserId=5),
            event(first + 2, id_, 1, BEFORE, Text="t", UserId=5),
            event(first + 3, id_, 6, "2016-02-01T00:00:00.000", Text=tags, UserId=editor),
            event(first + 4, id_, 5, LATER, Text="later", UserId=5),
        ]
    restored = restore(write_site(tmp_path / "dump", posts, events), as_of=DAY, core=core)
    assert restored[1]["Tags"] == restored[2]["Tags"] == ["a"]
    assert [post.get("LastEditorUserId") for post in restored.values()] == [None, 7, -1]
    assert ["LastEditDate" in post for post in restored.values()] == [False, True, True]


def test_advice_names_only_options_of_the_command(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dump = write_site(tmp_path / "dump", [question(1, CreationDate=BEFORE)])
    so2docs.tables(dump, tmp_path / "flat", as_of=BEFORE[:10], only="posts")
    assert caplog.messages[-1].endswith("; put the dump into a folder named after the site")


FIRST = "2020-01-{:02}T00:00:00.000"


@pytest.mark.parametrize(
    ("accepted", "day", "restored"),
    [
        ({}, 2, None),
        ({}, 4, 2),  # Answer 4 was accepted later.
        ({"AcceptedAnswerId": 2}, 8, 2),  # That of the dump, if it was accepted by then.
        ({"AcceptedAnswerId": 4}, 8, 4),
        ({"AcceptedAnswerId": 3}, 8, 4),  # Otherwise that of the latest answer.
        ({}, 8, 4),
    ],
)
def test_the_acceptance_of_a_date(
    accepted: dict[str, Any], day: int, restored: int | None, tmp_path: Path
) -> None:
    date = {"CreationDate": FIRST.format(1)}
    posts = [question(1, Title="t", Body="<p>b</p>", Tags="|a|", Score=0, **accepted, **date)]
    posts += [answer(number, 1, Body="<p>b</p>", Score=0, **date) for number in (2, 3, 4)]
    history = [event(n, n, 2, FIRST.format(1), Text="b") for n in (1, 2, 3, 4)]
    votes = [
        row(Id=n, PostId=post, VoteTypeId=1, CreationDate=FIRST.format(n))
        for n, post in ((3, 2), (5, 4))
    ]
    dump = write_site(tmp_path, posts, history, Votes=votes)
    question_then = restore(dump, as_of=f"2020-01-{day:02}")[1]
    assert question_then.get("AcceptedAnswerId") == restored
