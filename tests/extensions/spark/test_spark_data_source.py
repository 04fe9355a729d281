"""`spark.read.format("so2docs")`: the columns and rows of Parquet."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.spark_runs import SAMPLES, assert_same_as_parquet, sparse_dump

import so2docs
from so2docs.extensions import spark as on_spark

pytest.importorskip("pyspark")
from pyspark.errors import PySparkException

pytestmark = pytest.mark.spark


def test_tables_and_filters(session: Any, tmp_path: Path) -> None:
    frame = session.read.format("so2docs").option("nest", "all").option("min_score", "1")
    loaded = frame.load(str(SAMPLES / "site"))
    assert_same_as_parquet(session, tmp_path, SAMPLES / "site", loaded, nest="all", min_score=1)


def test_options_are_texts(session: Any, tmp_path: Path) -> None:
    texts = {"answered": "true", "nest": "comments,votes", "limit": "2", "core": "python"}
    options: dict[str, Any] = {"answered": True, "nest": ["comments", "votes"], "limit": 2}
    loaded = session.read.format("so2docs").options(**texts).load(str(SAMPLES / "site"))
    assert_same_as_parquet(session, tmp_path, SAMPLES / "site", loaded, **options)


def test_a_pattern_gives_one_partition_per_dump(session: Any) -> None:
    pattern = SAMPLES / "v*.xml"
    loaded = session.read.format("so2docs").load(str(pattern))
    expected_rows = on_spark.documents(session, pattern, typed=True)
    assert loaded.schema == expected_rows.schema
    rows, expected = (frame.orderBy("Site", "Id").collect() for frame in (loaded, expected_rows))
    assert rows == expected
    assert {row.Site for row in loaded.select("Site").collect()} == {"values", "votes"}
    several = session.read.format("so2docs").load([str(SAMPLES / "strays.xml")])
    assert several.count() == sum(1 for _ in so2docs.documents(SAMPLES / "strays.xml"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_score": "high"}, "min_score is 'high'"),
        ({"since": "0"}, "since is '0'; it must be a date in UTC"),
        ({"fields": "Tilte"}, "did you mean Title"),
        ({"nest": "posts"}, "nest is 'posts'"),
        ({"tag": "c"}, "unexpected keyword argument 'tag'"),
        ({"on_error": "go"}, "on_error is 'go'; it must be 'stop' or 'skip'"),
    ],
)
def test_wrong_options_say_so(session: Any, options: dict[str, str], message: str) -> None:
    with pytest.raises(PySparkException, match=message) as caught:
        session.read.format("so2docs").options(**options).load(str(SAMPLES / "posts.xml"))
    assert "Traceback" not in str(caught.value)


def test_a_missing_dump_is_reported(session: Any, tmp_path: Path) -> None:
    frame = session.read.format("so2docs").load(str(tmp_path / "none.xml"))
    with pytest.raises(
        PySparkException, match=r"none\.xml: cannot be read: No such file"
    ) as caught:
        frame.count()
    assert "Traceback" not in str(caught.value)


def test_policies_on_damage(session: Any, tmp_path: Path) -> None:
    ids = range(1, 600, 3)
    sparse_dump(tmp_path / "good" / "Posts.xml", ids)
    sparse_dump(tmp_path / "malformed" / "Posts.xml", ids, malformed=301)
    cut = sparse_dump(tmp_path / "truncated" / "Posts.xml", ids)
    cut.write_bytes(cut.read_bytes()[:-500])

    def load(name: str, **options: str) -> dict[str, int]:
        frame = session.read.format("so2docs").options(**options)
        return dict(map(tuple, frame.load(str(tmp_path / name)).groupBy("Site").count().collect()))

    good = load("good")
    assert good == {"good": sum(1 for _ in so2docs.documents(tmp_path / "good"))}
    assert load("*", on_error="skip") == good
    assert load("truncated", on_error="skip") == {}
    with pytest.raises(PySparkException, match="is truncated"):
        load("*")
    with pytest.raises(PySparkException, match="is not well-formed"):
        load("malformed")
    skipping = so2docs.documents(tmp_path / "malformed", errors="skip")
    assert load("malformed", errors="skip") == {"malformed": sum(1 for _ in skipping)}
    strays = str(SAMPLES / "strays.xml")
    with pytest.raises(PySparkException, match="StrictError"):
        load(strays, errors="strict")
    assert load(strays, errors="strict", on_error="skip") == {}
    frame = on_spark.documents(session, tmp_path / "*", on_error="skip")
    assert {row.Site for row in frame.select("Site").collect()} == {"good"}


def test_columns_and_questions_are_chosen_by_options(session: Any) -> None:
    reader = session.read.format("so2docs")
    frame = reader.option("fields", "Id,Title").load(str(SAMPLES / "posts.xml"))
    assert frame.columns == ["Id", "Title", "Site", "Other"]
    plain = list(so2docs.documents(SAMPLES / "posts.xml"))
    rows = frame.select("Id", "Title").collect()
    assert [tuple(row) for row in rows] == [(one["Id"], one.get("Title")) for one in plain]
    sample = so2docs.documents(SAMPLES / "posts.xml", sample_size=2)
    frame = reader.option("sample_size", "2").load(str(SAMPLES / "posts.xml"))
    assert [row.Id for row in frame.select("Id").collect()] == [one["Id"] for one in sample]
    frame = session.read.format("so2docs").schema("Id bigint").load(str(SAMPLES / "posts.xml"))
    with pytest.raises(PySparkException, match="choose columns with the option fields"):
        frame.collect()


def test_a_filtered_frame_is_counted_in_full_afterwards(session: Any) -> None:
    name = "spark.sql.python.filterPushdown.enabled"
    questions = list(so2docs.documents(SAMPLES / "posts.xml"))
    best = sum(one.get("Score", 0) >= 3 for one in questions)
    assert 0 < best < len(questions)
    session.conf.set(name, "true")
    try:
        frame = on_spark.documents(session, SAMPLES / "posts.xml", typed=True)
        counts = [frame.count(), frame.where("Score >= 3").count(), frame.count()]
        early = frame.where("CreationDate >= timestamp'0001-01-01 00:00:00'").count()
    finally:
        session.conf.unset(name)
    assert counts == [len(questions), best, len(questions)]
    assert early == sum("CreationDate" in one for one in questions)


def test_documents_read_nothing_before_an_action(session: Any, tmp_path: Path) -> None:
    frame = on_spark.documents(session, tmp_path / "posts.xml")
    with pytest.raises(PySparkException, match=r"posts\.xml: cannot be read"):
        frame.count()
    shutil.copy(SAMPLES / "posts.xml", tmp_path)
    assert frame.count() == sum(1 for _ in so2docs.documents(SAMPLES / "posts.xml"))
