"""Slices of a dump -> rows, against the standard library's parser; and what is repaired."""

from xml.etree import ElementTree
from xml.sax.saxutils import escape

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.oracle import _repair

from so2docs.posts import rows

FRAME = (b"<posts>", b"</posts>")
CHARACTERS = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff")
TEXT = st.text(st.one_of(CHARACTERS, st.sampled_from("\n\r\t<>&\"'/")), max_size=12)
NAMES = st.sampled_from(["Id", "PostTypeId", "Title", "Tags", "Body", "X", "row"])


def written(attributes: dict[str, str], gap: str) -> bytes:
    escapes = {'"': "&quot;", "\n": "&#10;", "\r": "&#xD;", "\t": "&#x9;"}
    parts = [f' {name}="{escape(value, escapes)}"' for name, value in attributes.items()]
    return f"<row{''.join(parts)} />{gap}".encode()


@given(
    st.lists(st.dictionaries(NAMES, TEXT, max_size=5), min_size=1, max_size=6),
    st.sampled_from(["", "\n", "\r\n  "]),
)
def test_rows_keep_every_attribute(found: list[dict[str, str]], gap: str) -> None:
    data = b"".join(written(attributes, gap) for attributes in found)
    assert list(rows.parse(data, FRAME)) == [rows.Rows(found)]


@given(
    st.lists(
        st.sampled_from(
            [
                b"<row />",
                b'<row Id="1"/>',
                b"\n",
                b"\r\n  ",
                b"/>",
                b"text",
                b"<row>",
                b"</row>",
                b">",
                b'<row A=">" />',
                b'<row A="/>\n" />',
                b"<!--x-->",
                b"<b/>",
                b"&#65;",
                b"<![CDATA[ ]]>",
                b"<?x y?>",
                b"\x00",
            ]
        ),
        max_size=8,
    )
)
@example([b"\x0b"])
@example([b"\x0c", b"<row />"])
@example([b"<row />", b"text", b"/>", b"<row />"])
@example([b"<row />", b"\n", b"<row />", b"/>", b"\n", b"<row />"])
def test_nothing_but_rows_is_let_pass(parts: list[bytes]) -> None:
    """Whatever stands between rows is an error, or white space, or a comment."""
    data = b"".join(parts)
    found = list(rows.parse(data, FRAME))
    if any(isinstance(part, rows.Malformed) for part in found):
        return
    root = ElementTree.fromstring(_repair(FRAME[0] + data + FRAME[1])[0])
    assert all(child.tag == "row" and not len(child) for child in root)
    between = [root.text or ""] + [(child.text or "") + (child.tail or "") for child in root]
    assert not "".join(between).strip()
    assert [dict(child.attrib) for child in root] == [
        row for part in found if isinstance(part, rows.Rows) for row in part.rows
    ]


@given(st.binary(max_size=60))
def test_repair_is_what_the_oracle_does(data: bytes) -> None:
    repaired, count = rows.repair(data)
    assert (repaired.decode(), count) == _repair(data)
    assert rows.repair(repaired) == (repaired, 0)


def test_only_what_needs_it_is_repaired() -> None:
    """A slice that parses is not looked at again; of one that does not, each row alone."""
    good = b'<row Id="1" A="&amp;#0;" />\n'
    assert list(rows.parse(good, FRAME)) == [rows.Rows([{"Id": "1", "A": "&#0;"}], 0)]
    bad = good + b'<row Id="2" A="&#0;" />\n' + b"<row Id=3/>\n" + good
    found = list(rows.parse(bad, FRAME))
    assert [part.repaired if isinstance(part, rows.Rows) else part.raw for part in found] == [
        0,
        1,
        b"<row Id=3/>\n",
        0,
    ]
    malformed = found[2]
    assert isinstance(malformed, rows.Malformed)
    assert bad[malformed.position :].startswith(malformed.raw)
    assert malformed.problem == "AttValue: \" or ' expected"


@pytest.mark.parametrize("text", ["", "x", "9" * 30, "-1", "+4"])
def test_row_id(text: str) -> None:
    assert rows.row_id({"Id": text}) == {"-1": -1, "+4": 4}.get(text)
    assert rows.row_id({}) is None


ROW = b'<row A="1" />'


@pytest.mark.parametrize(
    "data",
    [
        ROW + b"<!--x-->" + ROW + b"\n",
        ROW + b"<?x y?>" + ROW,
        ROW + b"<![CDATA[ ]]>" + ROW,
        b'<row A="1"></row>\n' + ROW,
        b'<p:row xmlns:p="x" A="1" />' + ROW,
        ROW + b"\n  " + ROW + b"\n",
    ],
)
def test_what_may_stand_between_rows(data: bytes) -> None:
    assert list(rows.parse(data, FRAME)) == [rows.Rows([{"A": "1"}, {"A": "1"}])]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"<a/>", "found <a> where <row> was expected"),
        (b"<row><a/></row>", "found <a> inside a row"),
        (ROW + b" text " + ROW, "found the text 'text' between rows"),
    ],
)
def test_what_may_not(data: bytes, problem: str) -> None:
    found = list(rows.parse(data, FRAME))
    assert problem in [part.problem for part in found if isinstance(part, rows.Malformed)]


@pytest.mark.parametrize("gap", [b"", b"\n", b"\r\n  "])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_plain_slices_are_parsed_once(count: int, gap: bytes) -> None:
    data = (ROW + gap) * count
    assert rows._is_plain(data, count)
    for odd in (b"text", b"/>", b"<!--x-->", b"<b/>", b">"):
        for at in range(count + 1):
            before = (ROW + gap) * at
            assert not rows._is_plain(before + odd + data[len(before) :], count)
    assert not rows._is_plain(data, 0)


def test_a_prolog_is_utf_8_whatever_it_declares() -> None:
    rows.check_prolog('<?xml version="1.0" encoding="utf-16"?><!-- ü --><posts></posts>'.encode())
    rows.check_prolog(b'<!DOCTYPE posts [<!ENTITY a "b">]><posts x="&a;"></posts>')
    with pytest.raises(rows.RowError) as error:
        rows.check_prolog(b"<!-- x --\n><posts></posts>")
    assert "line" not in str(error.value)
