"""Counts add up, and survive JSON."""

import json
from collections import Counter
from dataclasses import fields

from hypothesis import given
from hypothesis import strategies as st

from so2docs.counts import Counts

NUMBERS = st.integers(0, 10**12)
BY_NAME = st.dictionaries(st.sampled_from(["a", "b", "nested"]), st.integers(1, 99)).map(Counter)
COUNTS = st.builds(
    Counts,
    **{
        one.name: NUMBERS if one.type == "int" else BY_NAME
        for one in fields(Counts)
        if one.name != "tables"
    },
    tables=st.dictionaries(st.sampled_from(["comments", "votes"]), BY_NAME),
)


@given(COUNTS)
def test_json_and_back(counts: Counts) -> None:
    assert Counts.from_json(json.loads(json.dumps(counts.to_json()))) == counts


@given(COUNTS, COUNTS, COUNTS)
def test_sums(one: Counts, other: Counts, third: Counts) -> None:
    before = one.to_json()
    total = one + other
    assert one.to_json() == before
    assert total == other + one == Counts.total([other, one])
    assert total + third == one + (other + third)
    assert one + Counts() == one
    for name in ("rows", "filtered", "without_record"):
        assert getattr(total, name) == getattr(one, name) + getattr(other, name)
    assert total.strays["a"] == one.strays["a"] + other.strays["a"]
    for table in total.tables:
        sizes = [counts.tables.get(table, Counter())["nested"] for counts in (one, other)]
        assert total.tables[table]["nested"] == sum(sizes)
