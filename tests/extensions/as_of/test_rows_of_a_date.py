"""Which rows existed on a date: one rule for documents and for flat tables."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.dumps import question, row
from support.places import SAMPLES
from support.restored import restore, write_site
from support.site_over_time import Site

import so2docs
from so2docs.options.choices import Core
from so2docs.schema import POSTS

Row = dict[str, Any]

FORMER = SAMPLES / "former"

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


@pytest.mark.parametrize("options", [{}, {"drop_users": "3"}, {"tags": "a*"}])
def test_documents_and_flat_tables_are_equal(options: Row, tmp_path: Path) -> None:
    site = Site(seed=3).write(tmp_path / "dump")
    cases = [
        *((site, date) for date in ("2020-01-14T12:00:00", "2020-01-03", "2020-01-28")),
        *((FORMER, date) for date in ("2020-04-01", "2016-02-29", "2020-06-01")),
    ]
    for dump, as_of in cases[::3] if options else cases:
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


@pytest.mark.long
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


def test_advice_names_only_options_of_the_command(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dump = write_site(tmp_path / "dump", [question(1, CreationDate=BEFORE)])
    so2docs.tables(dump, tmp_path / "flat", as_of=BEFORE[:10], only="posts")
    assert caplog.messages[-1].endswith("; put the dump into a folder named after the site")
