"""`tables --body`: the bodies of posts in the forms that a conversion writes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from support.dumps import answer, question, row, write_dump
from support.flat_oracle import read_back

import so2docs
from so2docs.extensions.tables.stream import write_stream
from so2docs.options.choices import BodyAs, Core
from so2docs.schema import DUMP, POSTS

Row = dict[str, Any]
DAY = "2016-02-29"
BODIES = (
    "<p>A <em>kettle</em></p>",
    '<p><a href="/q/1">see</a>:</p>\n\n<pre><code>if a &lt; b:\n  x\n</code></pre>',
    "<ul>\n<li>one</li>\n<li>two &amp; $a_1$</li>\n</ul>",
    "<table><tr><td>a</td></tr></table>",
    "",
)


@pytest.fixture(params=["tea", "math"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A site, and one with formulas, whose only wiki has no body and whose posts have a history."""
    folder = tmp_path / f"{request.param}.stackexchange.com"
    dated = {"CreationDate": "2016-01-01T00:00:00.000", "Score": 0}
    posts = [question(1, Title="t", Tags="<a>", Body=BODIES[0], AcceptedAnswerId=2, **dated)]
    posts += [answer(n, 1, Body=body, **dated) for n, body in enumerate(BODIES[1:], 2)]
    write_dump(folder / "Posts.xml", *posts, row(Id=9, PostTypeId=5, **dated))
    write_dump(folder / "Comments.xml", row(Id=1, PostId=1, Text="a &lt;b&gt;", **dated))
    text = {"PostHistoryTypeId": 2, "CreationDate": "2016-01-01T00:00:00.000"}
    texts = ("A *kettle*", "* one\n* two & `a`", "1. one", "| a |", "-")
    events = (row(Id=n, PostId=n, Text=texts[n - 1], **text) for n in range(1, 6))
    write_dump(folder / "PostHistory.xml", *events)
    write_dump(folder / "Votes.xml")
    return folder


def converted(dump: Path, **options: Any) -> dict[int, str]:
    """Return the bodies of the questions and answers of a conversion, by id."""
    bodies = {}
    with so2docs.documents(dump, jobs=1, **options) as documents:
        for document in map(dict[str, Any], documents):
            posts = (document, *document["Answers"])
            bodies |= {post["Id"]: post["Body"] for post in posts}
    return bodies


def bodies_in(rows: list[Row]) -> dict[int, str]:
    """Return the bodies of the questions and answers in the rows of a table, by id."""
    return {row["Id"]: row["Body"] for row in rows if row["PostTypeId"] in (1, 2)}


@pytest.mark.parametrize("body", get_args(BodyAs))
@pytest.mark.parametrize("options", [{}, {"as_of": DAY}, {"tags": "a"}], ids=str)
def test_bodies_are_those_of_a_conversion(
    body: BodyAs, options: Row, site: Path, core: Core, tmp_path: Path
) -> None:
    so2docs.tables(site, tmp_path / "out", body=body, core=core, jobs=1, **options)
    rows = read_back(tmp_path / "out", POSTS, "parquet")
    assert bodies_in(rows) == converted(site, body=body, core=core, **options)
    assert [row["Body"] for row in rows if row["Id"] == 9] == (
        [] if "as_of" in options or "tags" in options else [None]
    )
    [comment] = read_back(tmp_path / "out", DUMP["comments"], "parquet")
    assert comment["Text"] == "a &lt;b&gt;"


def test_a_stream(site: Path) -> None:
    stream = so2docs.rows(site, "posts", body="text")
    rows = pa.table(stream).to_pylist()
    assert bodies_in(rows) == converted(site, body="text")
    file = io.BytesIO()
    write_stream(str(site), file, only="posts", format="arrow", body="text")
    assert pa.ipc.open_stream(file.getvalue()).read_all().to_pylist() == rows


@pytest.mark.parametrize("as_of", [None, DAY])
def test_a_limit_means_the_html(as_of: str | None, site: Path, tmp_path: Path) -> None:
    limits = {}
    for body in get_args(BodyAs):
        options: Row = {"max_body": 30, "as_of": as_of, "body": body, "jobs": 1}
        so2docs.tables(site, tmp_path / body, only="posts", **options)
        rows = read_back(tmp_path / body, POSTS, "parquet")
        limits[body] = [(row["Id"], row["AcceptedAnswerId"]) for row in rows]
    assert limits["html"][0] == (1, None)
    assert limits["html"] == limits["text"] == limits["markdown"]
