"""Counts add up, and survive JSON."""

import json
from collections import Counter
from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from so2docs.counts import ChunkTally, RowCounts, TableCounts, describe_part
from so2docs.extensions.tables.tables import FlatTable, TablesReport
from so2docs.report import Report

NUMBERS = st.integers(0, 10**12)
BY_NAME = st.dictionaries(st.sampled_from(["a", "b", "nested"]), st.integers(1, 99)).map(Counter)
TABLES = st.builds(TableCounts, rows=NUMBERS, nested=NUMBERS, filtered=NUMBERS, strays=BY_NAME)
ALL = {
    **dict.fromkeys(("rows", "questions", "answers", "filtered", "dropped"), NUMBERS),
    **dict.fromkeys(("strays", "other_types"), BY_NAME),
    **dict.fromkeys(("records", "without_record", "linked_elsewhere"), st.none() | NUMBERS),
    **dict.fromkeys(("first_day", "last_day"), st.sampled_from(["", "2014-01-21", "2020-06-01"])),
    "repaired_characters": NUMBERS,
    "tables": st.dictionaries(st.sampled_from(["comments", "votes"]), TABLES),
}
COUNTS = st.builds(RowCounts, **ALL)
TALLIES = st.builds(
    ChunkTally,
    **ALL,
    last_id=st.none() | NUMBERS,
)
REPORTS = st.builds(Report, st.just("Posts.xml"), st.just("q.jsonl.gz"), **ALL, seconds=NUMBERS)


@given(COUNTS | TALLIES | REPORTS | TABLES)
def test_json_and_back(counts: RowCounts | TableCounts) -> None:
    assert type(counts).from_dict(json.loads(json.dumps(counts.as_dict()))) == counts


@given(COUNTS, COUNTS | TALLIES, COUNTS)
def test_sums(one: RowCounts, other: RowCounts, third: RowCounts) -> None:
    before = deepcopy((one, other))
    total = RowCounts.total([one, other])
    total_of_all = RowCounts.total([total, third])
    assert total_of_all == RowCounts.total([one, RowCounts.total([other, third])])
    assert total == RowCounts.total([other, one])
    assert (one, other) == before
    assert RowCounts.total([one, RowCounts()]) == one
    for name in ("rows", "filtered", "repaired_characters"):
        assert getattr(total, name) == getattr(one, name) + getattr(other, name)
    assert total.strays["a"] == one.strays["a"] + other.strays["a"]
    for table in total.tables:
        sizes = [counts.tables.get(table, TableCounts()).nested for counts in (one, other)]
        assert total.tables[table].nested == sum(sizes)
    numbers = [counts.records for counts in (one, other) if counts.records is not None]
    assert total.records == (sum(numbers) if numbers else None)


def test_names_and_maxima_of_a_sum() -> None:
    report = Report("a", "out", rows=2, seconds=2.0, jobs=2, strays_path="strays")
    report += Report("b", "other", rows=3, seconds=1.5, strays_path="more")
    assert report == Report("a", "out", rows=5, seconds=2.0, jobs=2, strays_path="strays", files=2)


def test_reports_of_different_tables_add_up() -> None:
    total, votes = (
        TablesReport(name, {name: FlatTable(name, f"{name}.parquet", rows=2, written=2)}, jobs=jobs)
        for name, jobs in (("posts", 1), ("votes", 2))
    )
    for _ in range(2):
        total += votes
    assert {name: table.rows for name, table in total.items()} == {"posts": 2, "votes": 4}
    assert (total.jobs, votes["votes"].rows, total["votes"].path) == (2, 2, "votes.parquet")


def test_statements_agree_with_their_numbers() -> None:
    statements = [describe_part(*numbers, "row") for numbers in ((1, 148), (2, 1200), (1, 1))]
    assert statements == ["1 of 148 rows has", "2 of 1,200 rows have", "1 of 1 row has"]
    counts = TableCounts(rows=148, strays=Counter({"vote_without_post": 1}), nested=147)
    assert str(counts) == "147 of 148, 1 of 148 rows has no post"
