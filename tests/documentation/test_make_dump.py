"""Generated dumps have the counts in `Made`, in the layout of published dumps."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import make_dump
import pytest
from support.oracle import nest

Dumps = dict[str, tuple[bytes, make_dump.Made]]
ORDERS = {"sorted": 2_000_000, "grouped": 500_000, "shuffled": 1_000_000}
"""Sizes of the dumps, by the order of their rows."""


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Dumps:
    """For each order of rows, a dump and the counts returned by the generator."""
    folder = tmp_path_factory.mktemp("dumps")
    made = {
        order: make_dump.make_dump(folder / order, ORDERS[order], order=order) for order in ORDERS
    }
    assert sorted(path.name for path in folder.iterdir()) == sorted(ORDERS)
    return {order: ((folder / order).read_bytes(), made[order]) for order in ORDERS}


def lines(dump: bytes) -> list[bytes]:
    return dump.split(b"\r\n")[2:-1]


def attributes(dump: bytes) -> list[dict[str, str]]:
    return [row.attrib for row in ElementTree.fromstring(dump)]


def test_the_layout_equals_published_dumps(dumps: Dumps) -> None:
    dump, _ = dumps["shuffled"]
    assert len(dump) == pytest.approx(ORDERS["shuffled"], rel=0.02)
    assert dump.startswith(b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?>\r\n<posts>\r\n  <')
    assert dump.endswith(b" />\r\n</posts>")
    assert all(re.fullmatch(rb'  <row( \w+="[^"<>\r\n]*")+ />', line) for line in lines(dump))
    references = {b"&lt;", b"&gt;", b"&amp;", b"&quot;", b"&#xA;", b"&#xD;"}
    assert set(re.findall(rb"&[^;]*;?", dump)) == references
    assert b"\t" in dump
    assert any(max(line) > 0xEF for line in lines(dump))  # four bytes of UTF-8: an emoji


def test_counts_and_strays_are_as_declared(dumps: Dumps) -> None:
    dump, declared = dumps["sorted"]
    expected = nest(dump)
    for name in ("rows", "questions", "answers"):
        assert getattr(declared, name) == getattr(expected, name), name
    assert declared.others == sum(expected.other_types.values())
    assert declared.strays == expected.strays_by_reason
    assert 3 <= declared.strays["question_not_in_dump"] <= 8
    # There are more orphans in such a small dump.
    assert declared.questions / declared.rows == pytest.approx(0.41, abs=0.05)


def test_orders_of_rows(dumps: Dumps) -> None:
    rows = {order: attributes(dump) for order, (dump, _) in dumps.items()}
    ids = {order: [int(row["Id"]) for row in rows[order]] for order in ORDERS}
    assert ids["sorted"] == sorted(ids["sorted"])
    groups = [min(int(row["PostTypeId"]), 3) for row in rows["grouped"]]
    assert groups == sorted(groups)
    ascents = sum(first < second for first, second in pairwise(ids["shuffled"]))
    assert ascents / len(ids["shuffled"]) == pytest.approx(0.5, abs=0.05)
