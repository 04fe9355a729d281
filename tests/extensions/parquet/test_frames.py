"""Data frames have every row and value of the documents, typed, from outputs and dumps."""

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from support.dumps import answer, question, row, write_dump
from support.table_sites import SITE

import so2docs
from so2docs.extensions.parquet.frames import Frame
from so2docs.schema import POST_PARTS, VOTE_TYPES

NAMES = ("questions", "answers", "comments", "links", "votes", "history", "users")
TABLES = ("all", "history-text", "badges")
VOTES = tuple(VOTE_TYPES.values())
NESTED = {"Answers", *(part.key for part in POST_PARTS if part.shape != "value")}
INSIDE = {"User", "Voters", "Badges"}


def flat(documents: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the expected rows of each frame, extracted from the documents."""
    posts = [post for one in documents for post in (one, *one["Answers"])]
    comments = [row for post in posts for row in post.get("Comments", ())]
    links = [row for post in posts for row in post.get("Links", ())]
    votes = [
        {"PostId": post["Id"]} | dict.fromkeys(VOTES, 0) | post["Votes"]
        for post in posts
        if "Votes" in post
    ]
    history = [{"PostId": post["Id"]} | row for post in posts for row in post.get("History", ())]
    users: dict[int, dict[str, Any]] = {}
    for post in posts:
        for user in users_in(post):
            users.setdefault(user["Id"], user)
    return {
        "questions": documents,
        "answers": [row for one in documents for row in one["Answers"]],
        "comments": comments,
        "links": links,
        "votes": votes,
        "history": history,
        "users": list(users.values()),
    }


def users_in(value: Any) -> Iterator[dict[str, Any]]:
    """Find users at any depth of a post, except in its answers."""
    if isinstance(value, list):
        for element in value:
            yield from users_in(element)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in ("Owner", "LastEditor", "User"):
                yield from [inner] if inner else []
            elif key != "Answers":
                yield from users_in(inner)


def as_read(row: dict[str, Any]) -> dict[str, Any]:
    """Convert a row of a frame to the form of documents: dates as texts, `Other` merged."""
    other = json.loads(row.pop("Other", None) or "{}")
    values = {name: value for name, value in row.items() if value is not None}
    for name, value in values.items():
        if isinstance(value, datetime):
            assert value.tzinfo is not None
            values[name] = value.astimezone(UTC).replace(tzinfo=None)
    return values | other


def without_nested(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in NESTED | INSIDE}
    for name, value in kept.items():
        if name.endswith("Date"):
            with suppress(ValueError):
                kept[name] = datetime.fromisoformat(value)
    return kept


EVENTS = (
    row(Id=1, PostHistoryTypeId=1, PostId=1, RevisionGUID="a", UserId=5, Text="t"),
    row(Id=2, PostHistoryTypeId=2, PostId=1, RevisionGUID="a", UserId=5, Text="b"),
    row(Id=3, PostHistoryTypeId=2, PostId=2, RevisionGUID="b", UserId=8, Text="c"),
    row(Id=4, PostHistoryTypeId=5, PostId=2, RevisionGUID="c", UserId=9, Text="d", New=1),
)
BADGE = row(Id=1, UserId=5, Name="Teacher", Class=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample of a site, with a history and badges."""
    folder = tmp_path_factory.mktemp("site")
    for file in SITE.glob("*.xml"):
        shutil.copy(file, folder)
    write_dump(folder / "PostHistory.xml", *EVENTS)
    write_dump(folder / "Badges.xml", BADGE)
    return folder


@pytest.fixture(scope="module")
def output(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames") / "tea.jsonl.gz"
    so2docs.convert(folder, path, nest=TABLES, attribution=True, site="tea.stackexchange.com")
    return path


def assert_every_row(output: Path, actual: so2docs.Collection) -> None:
    """Every frame has the rows and values of the documents."""
    for name, expected in flat(list(so2docs.read(output, dict))).items():
        rows = getattr(actual, name).to_arrow().to_pylist()
        assert list(map(as_read, rows)) == list(map(without_nested, expected))


def test_every_row_and_value(folder: Path, output: Path) -> None:
    with so2docs.open(output) as docs:
        assert_every_row(output, docs)
    options: dict[str, Any] = {"nest": TABLES, "attribution": True, "jobs": 1}
    for name, expected in flat(list(so2docs.read(output, dict))).items():
        with so2docs.documents(folder, **options, site="tea.stackexchange.com") as documents:
            actual = getattr(documents, name).to_arrow().to_pylist()
        assert expected
        assert list(map(as_read, actual)) == list(map(without_nested, expected))


def test_types(output: Path) -> None:
    with so2docs.open(output) as docs:
        schema = docs.questions.schema
        assert schema.field("Score").type == pa.int64()
        assert schema.field("CreationDate").type == pa.timestamp("ms", tz="UTC")
        assert schema.field("Tags").type == pa.list_(pa.field("element", pa.string()))
        for name in NAMES:
            frame: Frame = getattr(docs, name)
            assert frame.to_arrow().schema == frame.schema


def test_pandas_keeps_integers(output: Path) -> None:
    pytest.importorskip("pandas")
    with so2docs.open(output) as docs:
        frame = docs.questions.to_pandas()
        assert len(frame) == len(docs)
    assert str(frame["AcceptedAnswerId"].dtype) == "Int64"
    assert frame["AcceptedAnswerId"].isna().any()
    assert str(frame["CreationDate"].dtype) == "datetime64[ms, UTC]"


def test_polars_or_advice_to_install_it(output: Path) -> None:
    with so2docs.open(output) as docs:
        if find_spec("polars") is None:
            with pytest.raises(so2docs.OptionError, match="pip install polars"):
                docs.answers.to_polars()
        else:
            frame: Any = docs.answers.to_polars()
            assert frame["Id"].to_list() == docs.answers.to_arrow()["Id"].to_pylist()


def test_nothing_is_read_before_it_is_asked_for(output: Path, tmp_path: Path) -> None:
    """If the file changes after a frame is made, this shows when rows are read."""
    copy = tmp_path / output.name
    for name in (output.name, f".{output.name}.index"):
        (tmp_path / name).write_bytes((output.parent / name).read_bytes())
    with so2docs.open(copy) as docs:
        batches = docs.where(tags="tea").answers.to_batches()
        with copy.open("r+b") as file:
            file.seek(100)
            file.write(bytes(100))
        with pytest.raises(so2docs.OutputError):
            list(batches)


@pytest.fixture
def some(tmp_path: Path) -> Path:
    dump = write_dump(
        tmp_path / "Posts.xml",
        question(1, CreationDate="2019-12-31T23:59:59.999", Tags="|tea|milk|"),
        question(2, CreationDate="2020-01-01T00:00:00.000", Tags="|tea|"),
        question(3, Tags="|milk|"),
        question(4, CreationDate="2021-01-01T00:00:00.000"),
        answer(5, 2, CreationDate="2022-01-01T00:00:00.000"),
        answer(6, 1, Score="many"),
    )
    so2docs.convert(dump, tmp_path / "some.jsonl.gz")
    return tmp_path / "some.jsonl.gz"


def test_misfits(some: Path) -> None:
    with so2docs.open(some) as docs:
        rows = docs.answers.to_arrow().to_pylist()
    assert [(row["Id"], row["Score"], row["Other"]) for row in rows] == [
        (6, None, '{"Score":"many"}'),
        (5, None, None),
    ]


def test_comments_without_ids_of_posts(tmp_path: Path) -> None:
    """Only votes and history need the Id of the post, which the documents may lack."""
    nest = ["comments", "votes"]
    so2docs.convert(SITE, tmp_path / "c.jsonl", nest=nest, fields=["Comments", "Votes"])
    with so2docs.open(tmp_path / "c.jsonl") as docs:
        assert docs.comments.to_arrow().num_rows
        with pytest.raises(so2docs.OutputError, match="has no Id"):
            docs.votes.to_arrow()


def test_published_dumps(real_dump: Path, tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(real_dump, output, jobs=1)
    with so2docs.open(output) as docs:
        assert_every_row(output, docs)


@pytest.fixture(scope="module")
def site(
    unpacked_dumps: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, dict[str, list[dict[str, str]]]]:
    """A published site with every table nested, and the rows of its files."""
    folder = unpacked_dumps / "eosio.meta.stackexchange.com"
    output = tmp_path_factory.mktemp("site") / "eosio.jsonl.gz"
    so2docs.convert(folder, output, nest=TABLES)
    files = ("Posts", "Comments", "Votes", "Users")
    return output, {
        name: [dict(row.attrib) for row in ElementTree.parse(folder / f"{name}.xml").getroot()]
        for name in files
    }


def test_published_site(site: tuple[Path, Any]) -> None:
    with so2docs.open(site[0]) as docs:
        assert_every_row(site[0], docs)


def test_frames_of_a_site_agree_with_its_files(site: tuple[Path, Any]) -> None:
    """Votes, users, and the titles of answers are counted from the XML alone."""
    output, rows = site
    titles = {row["Id"]: row["Title"] for row in rows["Posts"] if row["PostTypeId"] == "1"}
    answers = {
        row["Id"]: titles[row["ParentId"]] for row in rows["Posts"] if row["PostTypeId"] == "2"
    }
    posts = titles.keys() | answers.keys()
    votes = Counter((row["PostId"], row["VoteTypeId"]) for row in rows["Votes"])
    named = {
        row[name]
        for row in rows["Posts"]
        if row["Id"] in posts
        for name in ("OwnerUserId", "LastEditorUserId")
        if name in row
    }
    named |= {row["UserId"] for row in rows["Comments"] if row["PostId"] in posts}
    by_id = {row["Id"]: row for row in rows["Users"]}
    with so2docs.open(output) as docs:
        found_votes = docs.votes.to_arrow().to_pylist()
        users = {str(row["Id"]): row["DisplayName"] for row in docs.users.to_arrow().to_pylist()}
        found_answers = docs.answers.to_arrow().to_pylist()
    assert {str(row["PostId"]): (row["UpMod"], row["DownMod"]) for row in found_votes} == {
        post: (votes[post, "2"], votes[post, "3"]) for post in posts
    }
    assert named & by_id.keys() <= users.keys() <= by_id.keys()
    assert users == {user: by_id[user]["DisplayName"] for user in users}
    assert {str(row["Id"]): titles[str(row["ParentId"])] for row in found_answers} == answers


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ('{"Id":1,"Answers":[5]}', "answers"),
        ('{"Id":1,"Comments":5}', "comments"),
        ('{"Id":1,"CreationDate":{"$date":"2020-01-01T00:00:00.000Z"}}', "questions"),
        ('{"Id":1,"CreationDate":5}', "questions"),
    ],
)
def test_documents_of_another_form_are_errors(line: str, frame: str, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(line + "\n")
    message = "between question 1 and question 1, a document has no Id, or has a value"
    with so2docs.open(tmp_path / "q.jsonl") as docs:
        with pytest.raises(so2docs.OutputError, match=rf"q\.jsonl: {message}"):
            getattr(docs, frame).to_arrow()
        if frame == "questions":
            with pytest.raises(so2docs.OutputError, match=message):
                list(docs.where(since="2015"))
