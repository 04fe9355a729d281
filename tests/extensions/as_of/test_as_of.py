"""The state of a date, restored from a later dump."""

import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from as_of import normalize as normalize_body
from support.dumps import question, row
from support.filtering import filtered
from support.interruptions import kill_at
from support.places import DUMPS, NO_DUMPS, SAMPLES
from support.restored import event, restore, split_posts, write_site
from support.site_over_time import FIRST, LAST, Site

import so2docs
from so2docs.options.choices import Core

Row = dict[str, Any]


def normalize(value: Any) -> Any:
    return normalize_body(value) if isinstance(value, str) and "<" in value else value


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Path]:
    site = Site(seed=7)
    return site, site.write(tmp_path_factory.mktemp("site") / "dump")


def test_every_evening_of_a_site_is_restored(site: tuple[Site, Path], core: Core) -> None:
    over_time, dump = site
    for day in range(FIRST, LAST + 1, 9):
        posts = restore(dump, as_of=f"2020-01-{day:02}", core=core)
        expected = over_time.expect(day)
        for post in expected.values():
            post["Body"] = f"<p>{post['Body']}</p>\n"
        assert posts == expected, day


@pytest.mark.parametrize(
    "options",
    [
        {"min_score": 1},
        {"min_answers": 2},
        {"accepted": True},
        {"tags": ["ale"]},
        {"until": "2020-01-10"},
        {"max_body": 24},
        {"fields": "Id,AnswerCount"},
        {"keep_users": [3]},
    ],
    ids=str,
)
def test_filters_apply_to_the_state(site: tuple[Site, Path], options: Row) -> None:
    over_time, dump = site
    posts = over_time.expect(17)
    for post in posts.values():
        post["Body"] = f"<p>{post['Body']}</p>\n"
    questions = [
        post | {"Answers": [one for one in posts.values() if one.get("ParentId") == id_]}
        for id_, post in posts.items()
        if post["PostTypeId"] == 1
    ]
    with so2docs.documents(dump, as_of="2020-01-17", jobs=1, **options) as documents:
        found = [*map(dict[str, Any], documents)]
    assert found == filtered(questions, **options) != questions


def test_dropped_users(site: tuple[Site, Path]) -> None:
    over_time, dump = site
    posts = restore(dump, as_of="2020-01-17", drop_users=[3], nest="history")
    expected = over_time.expect(17)
    for id_, post in posts.items():
        assert post.get("LastEditorUserId") != 3
        assert all(e.get("OwnerUserId", e.get("UserId")) != 3 for e in (post, *post["History"]))
        assert post.get("Title") == expected[id_].get("Title")
    assert posts


def test_the_states_of_two_dates_can_be_compared(site: tuple[Site, Path], tmp_path: Path) -> None:
    outputs = [tmp_path / f"{day}.jsonl" for day in (10, 20)]
    for output in outputs:
        so2docs.convert(site[1], output, as_of=f"2020-01-{output.stem}", jobs=1)
    assert so2docs.diff(*outputs).count().questions.added > 0


FORMER = SAMPLES / "former"
EARLY, LATE, DAY = "2020-01-01T10:00:00.000", "2020-03-01T10:00:00.000", "2020-02-01"


def write_edited(dump: Path, text: str, *posts: bytes) -> Path:
    """Write a dump whose question 9 had a text on the date, and later another one."""
    dated = {"CreationDate": EARLY, "LastActivityDate": EARLY}
    edited = question(9, Title="t9", Body="<p>now</p>", **{**dated, "LastEditDate": LATE})
    history = [
        event(1, 9, 2, EARLY, Text=text),
        event(2, 9, 5, LATE, Text="now"),
        event(3, 7, 1, EARLY, Text="then"),
        event(4, 7, 4, LATE, Text="t7"),
    ]
    vote = row(Id=1, PostId=9, VoteTypeId=2, CreationDate=EARLY)
    return write_site(dump, [edited, *posts], history, Votes=[vote])


@pytest.mark.parametrize("filters", [{"until": "2020-01-15"}, {"sample": "60%"}, {"min_score": 1}])
def test_titles_do_not_depend_on_filters(tmp_path: Path, filters: Row, core: Core) -> None:
    text = " ".join(f"https://ale.stackexchange.com/q/{id_}" for id_ in (7, 8, 1))
    dated = {"CreationDate": f"{DAY}T01:00:00.000", "LastActivityDate": EARLY}
    dump = write_edited(
        tmp_path / "ale.stackexchange.com",
        text,
        question(7, Title="t7", Body="<p>7</p>", **dated),
        question(8, Title="t<8", Body="<p>8</p>", **dated),
        question(1, Title="t1", Body="<p>1</p>", **{**dated, "CreationDate": LATE}),
    )
    everything = restore(dump, as_of=DAY, site="ale.stackexchange.com", core=core)
    body = everything[9]["Body"]
    assert [">then</a>" in body, ">t&lt;8</a>" in body, ">t1</a>" in body] == [True, True, False]
    some = restore(dump, as_of=DAY, site="ale.stackexchange.com", core=core, **filters)
    assert {id_: post["Body"] for id_, post in some.items()} == {9: body}


@pytest.mark.parametrize(
    ("host", "other", "expected"),
    [
        ("math.stackexchange.com", "<p>a</p>", "<p>$a_b$ <em>c</em></p>\n"),
        ("math.stackexchange.com", "{}$x${}", "<p>{}$a_b${} <em>c</em></p>\n"),
        ("ale.stackexchange.com", "{}$x${}", "<p>{}$a_b${} <em>c</em></p>\n"),
        ("ale.stackexchange.com", "{}\\$x\\${}", "<p>$a_b$ <em>c</em></p>\n"),
        ("ale.stackexchange.com", "<p>a</p>", "<p>$a_b$ <em>c</em></p>\n"),
    ],
)
def test_formulas_are_marked_as_in_other_bodies(
    tmp_path: Path, host: str, other: str, expected: str, core: Core
) -> None:
    span = ('<span class="math-container">', "</span>")
    body = other.format(*span)
    marked = question(2, Body=body, CreationDate=EARLY, LastActivityDate=LATE)
    dump = write_edited(tmp_path / "dump", "$a_b$ *c*", marked)
    posts = restore(dump, as_of=DAY, site=host, core=core)
    assert posts[9]["Body"] == expected.format(*span)
    markdown = restore(dump, as_of=DAY, site=host, body="markdown", core=core)
    assert markdown[9]["Body"] == "$a_b$ *c*"


PRICES = "It is worth $2 today, *not* $5 or $6/$7, with $x$ and $a_b + c$"
MATH = '<span class="math-container">${}$</span>'


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        (LATE, f"{PRICES.replace('*not*', '<em>not</em>')}"),
        (EARLY, PRICES.replace("*not*", "<em>not</em>").replace("$x$", MATH.format("x"))
         .replace("$a_b + c$", MATH.format("a_b + c"))),
    ],
)  # fmt: skip
def test_prices_are_no_formulas(tmp_path: Path, date: str, expected: str, core: Core) -> None:
    """Texts have no formula before the first marked one, and none without TeX between dollars."""
    marked = question(2, Body=MATH.format("3^3"), CreationDate=date)
    dump = write_edited(tmp_path / "dump", PRICES, marked)
    posts = restore(dump, as_of=DAY, site="ale.stackexchange.com", core=core)
    assert posts[9]["Body"] == f"<p>{expected}</p>\n"


def rewrite(row: str, change: str) -> str:
    """Write a row in another legal form of XML."""
    if change == "references":
        return re.sub(
            r"&quot;|&gt;", lambda match: {"&quot;": "&#34;", "&gt;": "&#x3E;"}[match[0]], row
        )
    if change == "dates":
        return row.replace('Date="20', 'Date="&#50;0')
    if change == "letters":
        return row.replace("math-", "&#109;ath-").replace("stack", "st&#97;ck")
    if change == "quotes":
        return row.replace("'", "&apos;").replace('"', "'")
    return row.replace('" ', '"\n\t').replace('="', ' = "')


@pytest.mark.parametrize("change", ["references", "dates", "letters", "quotes", "white space"])
def test_any_legal_form_of_rows_gives_the_same(tmp_path: Path, change: str, core: Core) -> None:
    marked = question(2, Title="t2", Body=MATH.format("3^3"), CreationDate=EARLY)
    late = question(3, Title="t3", Body="late", CreationDate=LATE)
    text = r"$\{0,1\}$ https://ale.stackexchange.com/q/2"
    plain = write_edited(tmp_path / "ale.stackexchange.com", text, marked, late)
    other = tmp_path / "other"
    for path in plain.iterdir():
        lines = path.read_text("utf-8").splitlines()
        rows = [rewrite(line, change) if "<row" in line else line for line in lines]
        other.mkdir(exist_ok=True)
        (other / path.name).write_text("\n".join(rows), "utf-8")
    options: Row = {"as_of": DAY, "site": "ale.stackexchange.com", "core": core}
    expected = restore(plain, **options)
    assert "math-container" in expected[9]["Body"]
    assert ">t2</a>" in expected[9]["Body"]
    assert restore(other, **options) == expected


def test_an_unknown_site_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    restore(FORMER, as_of=DAY)
    message = "addresses of questions stay addresses"
    assert message in caplog.text
    caplog.clear()
    restore(FORMER, as_of=DAY, body="markdown")
    restore(FORMER, as_of=DAY, site="ale.stackexchange.com")
    assert message not in caplog.text


def test_a_date_after_the_last_row(
    tmp_path: Path, core: Core, caplog: pytest.LogCaptureFixture
) -> None:
    end = "the latest row of the dump is of 2021-01-01"
    for as_of, is_told in (
        ("2020-12-31", False),
        ("2021-01-01", False),
        ("2021-01-01T00:00:00.000", False),
        ("2031", True),
    ):
        caplog.clear()
        path = tmp_path / as_of.replace(":", "-") / "o.jsonl"
        path.parent.mkdir()
        report = so2docs.convert(FORMER, path, as_of=as_of, card=True, core=core)
        card = (path.parent / "README.md").read_text(encoding="utf-8")
        assert report.last_row == "2021-01-01T00:00:00.000"
        assert (end in str(report)) == ("The latest row" in card) == (end in caplog.text) == is_told
    caplog.clear()
    so2docs.tables(FORMER, tmp_path / "flat", as_of="2031", core=core)
    assert f"as_of='2031-12-31': {end}" in caplog.text


@pytest.mark.long
@pytest.mark.skipif(not DUMPS.exists(), reason=NO_DUMPS)
def test_beer_as_it_was_published() -> None:
    later = str(DUMPS / "archives" / "beer.stackexchange.com.7z")
    then = restore(Path(later), as_of="2016-12-10")
    with so2docs.documents(DUMPS / "beer-2016-12") as documents:
        published = split_posts(documents)
    assert then.keys() <= published.keys()

    def share(name: str, origin: str = "") -> float:
        ids = [id_ for id_ in then if origin in then[id_]["BodyFrom"]]
        values = [[normalize(p[i].get(name)) for p in (then, published)] for i in ids]
        return sum(new == old for new, old in values) / len(ids)

    assert share("Title") == share("ClosedDate") == share("Body", "dump") == 1
    assert share("Body", "history") > 0.95
    assert share("Score") > 0.95
    assert share("AcceptedAnswerId") > 0.99


def test_flat_tables_of_a_date(site: tuple[Site, Path], tmp_path: Path) -> None:
    over_time, dump = site
    so2docs.tables(dump, tmp_path / "flat", as_of="2020-01-14", only="comments", jobs=1)
    expected = over_time.expect(14)
    comments = pq.read_table(tmp_path / "flat" / "Comments.parquet").to_pylist()
    written = [row for row in over_time.tables["Comments"] if row["CreationDate"] < "2020-01-15"]
    assert [row["Id"] for row in comments] == [row["Id"] for row in written]
    assert {row["Score"] for row in comments} == {None}
    part = so2docs.tables(dump, tmp_path / "part", as_of="2020-01-14", tags="ale", jobs=1)
    tagged = {id_ for id_, post in expected.items() if "ale" in post.get("Tags", ())}
    of_part = [id_ for id_, post in expected.items() if post.get("ParentId", id_) in tagged]
    assert part["posts"].written == len(of_part)
    votes = [
        vote
        for vote in over_time.tables["Votes"]
        if vote["CreationDate"] < "2020-01-15" and vote["PostId"] in of_part
    ]
    assert part["votes"].written == len(votes)


def test_typed_columns(tmp_path: Path) -> None:
    so2docs.convert(FORMER, tmp_path / "o.parquet", as_of=DAY)
    assert so2docs.convert(FORMER, tmp_path / "o.parquet", as_of=DAY).restored == 3  # Recorded.
    rows = pq.read_table(tmp_path / "o.parquet").to_pylist()
    origins = {row["Id"]: (row["BodyFrom"], row["Other"]) for row in rows}
    assert [origins[id_] for id_ in (1, 6, 7)] == [
        ("history", None),
        ("history", None),
        ("dump", None),
    ]


CONVERT = """
import sys, so2docs
so2docs.convert(*sys.argv[1:], as_of="2020-01-14", jobs=1, chunk_bytes=5_000)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_while_the_history_is_read(site: tuple[Site, Path], tmp_path: Path) -> None:
    _, dump = site
    output, whole = tmp_path / "o.jsonl.gz", tmp_path / "whole.jsonl.gz"
    kill_at("table6-*3-1.blocks", output, CONVERT, dump, output)
    with pytest.raises(so2docs.SpillError, match=r"with other as_of"):
        so2docs.convert(dump, output, as_of="2020-01-15")
    assert so2docs.convert(dump, output, as_of="2020-01-14", jobs=1).resumed
    so2docs.convert(dump, whole, as_of="2020-01-14", jobs=1)
    assert output.read_bytes() == whole.read_bytes()
