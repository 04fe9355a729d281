"""Data frames have every row and value of the documents, typed, from outputs and dumps."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.dumps import answer, question, write_dump
from support.table_sites import SITE

import so2docs
from so2docs.reader.frames import Frame
from so2docs.schema import POST_PARTS

NAMES = ("questions", "answers", "comments", "links", "tags")
NESTED = {"Answers", *(part.key for part in POST_PARTS)}


def flat(documents: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """The expected rows of each frame, extracted from the documents."""
    posts = [post for one in documents for post in (one, *one["Answers"])]
    comments = [row for post in posts for row in post.get("Comments", ())]
    links = [row for post in posts for row in post.get("Links", ())]
    return {
        "questions": documents,
        "answers": [row for one in documents for row in one["Answers"]],
        "comments": comments,
        "links": links,
        "tags": [
            {"QuestionId": one["Id"], "Tag": tag}
            for one in documents
            for tag in one.get("Tags", ())
        ],
    }


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
    kept = {name: value for name, value in row.items() if name not in NESTED | {"User"}}
    for name, value in kept.items():
        if name.endswith("Date"):
            with suppress(ValueError):
                kept[name] = datetime.fromisoformat(value)
    return kept


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("frames") / "tea.jsonl.gz"
    so2docs.convert(SITE, path, nest="all", attribution=True, site="tea.stackexchange.com")
    return path


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("source", ["output", "dump"])
def test_every_row_and_value(name: str, source: str, output: Path) -> None:
    expected = flat(list(so2docs.read(output, dict)))[name]
    if source == "output":
        with so2docs.open(output) as docs:
            actual = getattr(docs, name).to_arrow()
    else:
        options: dict[str, Any] = {"nest": "all", "attribution": True}
        with so2docs.documents(SITE, **options, site="tea.stackexchange.com") as documents:
            actual = getattr(documents, name).to_arrow()
    assert expected
    assert list(map(as_read, actual.to_pylist())) == list(map(without_nested, expected))


def test_types(output: Path) -> None:
    with so2docs.open(output) as docs:
        schema = docs.questions.schema
        assert schema.field("Score").type == pa.int64()
        assert schema.field("CreationDate").type == pa.timestamp("ms", tz="UTC")
        assert schema.field("Tags").type == pa.list_(pa.field("element", pa.string()))
        assert docs.tags.schema.names == ["QuestionId", "Tag"]
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


def test_polars_or_what_to_install(output: Path) -> None:
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


@pytest.mark.parametrize(
    ("conditions", "ids"),
    [
        ({"since": "2020"}, [2, 4]),
        ({"until": "2020"}, [1]),
        ({"since": "2020", "until": "2021"}, [2]),
        ({"tags": "tea"}, [1, 2]),
        ({"tags": "Tea,milk"}, [1, 2, 3]),
        ({"tags": ["tea", "milk"], "all_tags": True}, [1]),
        ({"tags": "tea", "since": "2020"}, [2]),
        ({}, [1, 2, 3, 4]),
        ({"tags": "coffee"}, []),
    ],
)
def test_selections(conditions: dict[str, Any], ids: list[int], some: Path, tmp_path: Path) -> None:
    with so2docs.open(some) as docs:
        chosen = docs.where(**conditions)
        assert [one["Id"] for one in chosen] == ids
        assert [one["Id"] for one in chosen] == ids
        assert chosen.questions.to_arrow()["Id"].to_pylist() == ids
        assert set(chosen.answers.to_arrow()["ParentId"].to_pylist()) <= set(ids)
    # The selection has the same questions as a conversion with these filters.
    so2docs.convert(tmp_path / "Posts.xml", tmp_path / "other.jsonl", **conditions)
    assert [one["Id"] for one in so2docs.read(tmp_path / "other.jsonl")] == ids


def test_misfits(some: Path) -> None:
    with so2docs.open(some) as docs:
        rows = docs.answers.to_arrow().to_pylist()
    assert [(row["Id"], row["Score"], row["Other"]) for row in rows] == [
        (6, None, '{"Score":"many"}'),
        (5, None, None),
    ]


@pytest.mark.parametrize(
    "wrong", [{"since": "soon"}, {"tags": "a b"}, {"since": "2021", "until": "2020"}]
)
def test_selections_that_are_refused(wrong: dict[str, Any], some: Path) -> None:
    with so2docs.open(some) as docs, pytest.raises(so2docs.OptionError):
        docs.where(**wrong)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_published_dumps(name: str, real_dump: Path, tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(real_dump, output)
    expected = flat(list(so2docs.read(output, dict)))[name]
    with so2docs.open(output) as docs:
        actual = getattr(docs, name).to_arrow().to_pylist()
    assert list(map(as_read, actual)) == list(map(without_nested, expected))


DAMAGED = {
    "an answer": ('{"Id":1,"Answers":[5]}', "answers"),
    "comments": ('{"Id":1,"Comments":5}', "comments"),
    "no Id": ('{"Title":"t","Tags":["a"]}', "tags"),
    "MongoDB": ('{"Id":1,"CreationDate":{"$date":"2020-01-01T00:00:00.000Z"}}', "questions"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_documents_of_another_form_are_errors(name: str, tmp_path: Path) -> None:
    line, frame = DAMAGED[name]
    output = write_indexed(tmp_path, line)
    with (
        so2docs.open(output) as docs,
        pytest.raises(so2docs.OutputError, match=r"q\.jsonl: .*a document has no Id, or a value"),
    ):
        getattr(docs, frame).to_arrow()


@pytest.mark.parametrize("date", ["5", '{"$date":"2020-01-01T00:00:00.000Z"}'])
def test_dates_of_another_form_cannot_be_selected(date: str, tmp_path: Path) -> None:
    output = write_indexed(tmp_path, f'{{"Id":1,"CreationDate":{date}}}')
    with (
        so2docs.open(output) as docs,
        pytest.raises(so2docs.OutputError, match="between question 1 and question 1"),
    ):
        list(docs.where(since="2015"))


def write_indexed(folder: Path, line: str) -> Path:
    """Write an output of one document, whose index lists a question with an Id."""
    output = folder / "q.jsonl"
    keeps_id = '"Id"' in line
    dump = write_dump(folder / "Posts.xml", question(1, Tags="&lt;a&gt;", Title="t"))
    so2docs.convert(dump, output, fields=None if keeps_id else ["Title", "Tags"], jobs=1)
    if keeps_id:
        output.write_text(line + "\n")
    return output


@pytest.mark.parametrize(("name", "key"), [("users", "Owner"), ("votes", "Votes"), ("badges", "")])
def test_tables_without_a_frame_say_where_they_are(name: str, key: str, some: Path) -> None:
    with so2docs.open(some) as docs:
        for source in (docs, docs.where()):
            with pytest.raises(AttributeError, match=f"{name}.*{key}.*so2docs.tables"):
                getattr(source, name)
        assert not hasattr(docs, "nothing")
