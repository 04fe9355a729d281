"""`spark.read.format("so2docs")`: found by its name, with the columns and rows of Parquet."""

from pathlib import Path
from typing import Any

import pytest
from support.spark_runs import SAMPLES, assert_same_as_parquet

import so2docs
from so2docs import spark as on_spark

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
    wanted = on_spark.documents(session, pattern, schema=True)
    assert loaded.schema == wanted.schema
    rows, expected = (frame.orderBy("Site", "Id").collect() for frame in (loaded, wanted))
    assert rows == expected
    assert {row.Site for row in loaded.select("Site").collect()} == {"values", "votes"}
    several = session.read.format("so2docs").load([str(SAMPLES / "strays.xml")])
    assert several.count() == sum(1 for _ in so2docs.documents(SAMPLES / "strays.xml"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_score": "high"}, "min_score is 'high'; it must be a whole number"),
        ({"nest": "badges"}, "there is no table 'badges'"),
        ({"tag": "c"}, "unexpected keyword argument 'tag'"),
    ],
)
def test_wrong_options_say_so(session: Any, options: dict[str, str], message: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match=message):
        session.read.format("so2docs").options(**options).load(str(SAMPLES / "posts.xml"))


def test_a_dump_that_is_not_there_says_so(session: Any, tmp_path: Path) -> None:
    from pyspark.errors import PySparkException

    frame = session.read.format("so2docs").load(str(tmp_path / "none.xml"))
    with pytest.raises(PySparkException, match=r"none\.xml: cannot be read: No such file"):
        frame.count()
