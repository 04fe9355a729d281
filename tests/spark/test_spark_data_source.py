"""`spark.read.format("so2docs")`: the columns and rows of Parquet."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.spark_runs import SAMPLES, assert_same_as_parquet, sparse_dump

import so2docs
from so2docs import spark as on_spark
from so2docs.spark.sites import Site

pytest.importorskip("pyspark")
from pyspark.errors import PySparkException
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType

from so2docs.spark.data_source import Questions

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


def test_a_pattern_is_a_partition_a_dump(session: Any) -> None:
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
        ({"min_score": "high"}, "min_score is 'high'; it must be a whole number"),
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


def test_a_dump_that_is_not_there_says_so(session: Any, tmp_path: Path) -> None:
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
        frame = session.read.format("so2docs").options(**options).schema("Site string, Id bigint")
        return dict(map(tuple, frame.load(str(tmp_path / name)).groupBy("Site").count().collect()))

    good = load("good")
    assert good == {"good": sum(1 for _ in so2docs.documents(tmp_path / "good"))}
    for option in ({"on_error": "skip"}, {"ignoreCorruptFiles": "true"}):
        assert load("*", **option) == good
        assert load("truncated", **option) == {}
    with pytest.raises(PySparkException, match="is truncated"):
        load("*", ignoreCorruptFiles="true", on_error="stop")
    with pytest.raises(PySparkException, match="is not well-formed"):
        load("malformed")
    skipping = so2docs.documents(tmp_path / "malformed", skip_malformed=True)
    assert load("malformed", skip_malformed="true") == {"malformed": sum(1 for _ in skipping)}
    strays = str(SAMPLES / "strays.xml")
    with pytest.raises(PySparkException, match="StrictError"):
        load(strays, strict="true")
    assert load(strays, strict="true", on_error="skip") == {}
    session.conf.set("spark.sql.files.ignoreCorruptFiles", "true")
    frame = on_spark.documents(session, tmp_path / "*")
    assert {row.Site for row in frame.select("Site").collect()} == {"good"}
    session.conf.unset("spark.sql.files.ignoreCorruptFiles")


def test_a_table_of_the_catalog(session: Any, tmp_path: Path) -> None:
    name = "questions_of_a_sample"
    try:
        session.sql(
            f"CREATE TABLE {name} USING so2docs "
            f"OPTIONS (path '{SAMPLES / 'site'}', nest 'all', min_score '1')"
        )
        session.sql(
            f"CREATE TABLE {name}_fields USING so2docs "
            f"OPTIONS (path '{SAMPLES / 'site'}', fields 'Id,Title')"
        )
        assert session.table(f"{name}_fields").columns == ["Id", "Title", "Site", "Other"]
        session.sql(f"CREATE TABLE {name}_columns (Id BIGINT) USING so2docs OPTIONS (path '/x')")
        with pytest.raises(PySparkException, match="choose them with the option fields"):
            session.table(f"{name}_columns").count()
        table = session.table(name)
        plain = list(so2docs.documents(SAMPLES / "site", nest="all", min_score=1))
        rows = table.selectExpr("Id", "size(Comments) AS Comments", "Site").collect()
        assert sorted((row.Id, row.Comments, row.Site) for row in rows) == [
            (one["Id"], len(one["Comments"]), "site") for one in plain
        ]
        with pytest.raises(PySparkException, match="'tag'"):
            session.sql(f"CREATE TABLE other USING so2docs OPTIONS (path '{SAMPLES}', tag 'c')")
    finally:
        for end in ("", "_fields", "_columns"):
            session.sql(f"DROP TABLE IF EXISTS {name}{end}")


def test_a_schema_of_the_user_prunes_columns(session: Any) -> None:
    reader = session.read.format("so2docs").schema("Title string, Id bigint")
    rows = reader.load(str(SAMPLES / "posts.xml")).collect()
    plain = list(so2docs.documents(SAMPLES / "posts.xml"))
    assert [tuple(row) for row in rows] == [(one.get("Title"), one["Id"]) for one in plain]
    for schema, message in (
        ("Tilte string", "the schema has a column 'Tilte'"),
        ("Id string", "the schema has Id as string; the type is bigint"),
    ):
        frame = session.read.format("so2docs").schema(schema).load(str(SAMPLES / "posts.xml"))
        with pytest.raises(PySparkException, match=message):
            frame.collect()


def build_schema(**kinds: Any) -> StructType:
    return StructType([StructField(name, kind) for name, kind in kinds.items()])


def test_a_pruned_column_is_not_made() -> None:
    questions = Questions({"path": str(SAMPLES / "posts.xml")})
    reader = questions.reader(build_schema(Id=LongType(), Title=StringType(), Site=StringType()))
    (batch,) = reader.read(InputPartition(Site("posts", str(SAMPLES / "posts.xml"))))
    assert batch.schema.names == ["Id", "Title", "Site"]
    assert reader._request.kwargs["fields"] == ["Id", "Id", "Title"]


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
