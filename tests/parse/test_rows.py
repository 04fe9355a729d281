"""Slices become the same rows as by the standard library's parser; repairs."""

import itertools
import re
from collections.abc import Iterable
from xml.parsers import expat
from xml.sax.saxutils import escape

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.oracle import _repair

from so2docs.parse import rows

XML = "http://www.w3.org/XML/1998/namespace"
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
def test_rows_keep_every_attribute(rows_attributes: list[dict[str, str]], gap: str) -> None:
    data = b"".join(written(attributes, gap) for attributes in rows_attributes)
    assert list(rows.parse(data)) == [rows.Rows(rows_attributes)]


ODD = [
    *(b"<row />", b'<row Id="1"/>', b'<row A="1" a:A="2" b:A="3" />', b'<row A="1" A="2" />'),
    *(b'<row\nxmlns:a="u" a:A=":xmlns=" A="1" />', b"<row xmlns='u' xmlns:b='' />"),
    b'<row xmlns:xml="http://www.w3.org/XML/1998/namespace" A="1" />',
    *(b'<row xmlns:xml="u" A="1" />', b'<row xml:space="x" :a="1" b:="2" c:d:e="3" />'),
    *(b'<a:row A="1" />', b'<row A="&#0;" />', b'<row A="<!--" />', b"<row A='>' />"),
    *(b"<row A='\"/>\n' />", b"\n", b"\r\n  ", b"/>", b"text", b"<row>", b"<row ", b"</row>", b">"),
    *(
        b"<!--",
        b"-->",
        b"<!--x-->",
        b"<b/>",
        b"<root>",
        b"</root>",
        b"</root__>",
        b"&#65;",
        b"&#32;",
    ),
    *(b"&lol;", b"<![CDATA[", b"]]>", b"<![CDATA[ ]]>", b"<?x y?>", b"<?a:b ", b"?>"),
    *(b"<!DOCTYPE x>", b"\xef\xbb\xbf", b"\x00", b"\xff"),
]
NAMED, DECLARED = ODD[2], ODD[5]


def whole(data: bytes) -> list[dict[str, str]] | None:
    """Parse the rows of a slice by expat, which keeps names; None if there is anything else."""
    rows_found: list[dict[str, str]] = []
    depth = 0

    def start(name: str, attributes: list[str]) -> None:
        nonlocal depth
        if name != "row" or depth != 1:
            if depth:
                raise ValueError(name)
        else:
            rows_found.append(dict(zip(attributes[::2], attributes[1::2], strict=True)))
        depth += 1

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1

    def refuse(*texts: str) -> None:
        for text in texts:
            if text.strip(" \t\r\n") and (len(texts) == 1 or re.search(r"<row[\s/>]", text)):
                raise ValueError(text)

    parser = expat.ParserCreate("utf-8")
    parser.ordered_attributes = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = refuse
    parser.CommentHandler = lambda text: refuse("", text)
    parser.ProcessingInstructionHandler = refuse
    try:
        parser.Parse(b"<posts>" + data + b"</posts>", True)
    except (expat.ExpatError, ValueError):
        return None
    for row in rows_found:
        if row.get("xmlns:xml") == XML:
            del row["xmlns:xml"]
    return rows_found


def outcome(parsed: Iterable[rows.Rows | rows.Malformed]) -> list[object]:
    """Return the rows and malformed rows, in order."""
    return [
        item
        for part in parsed
        for item in (part.rows if isinstance(part, rows.Rows) else [(part.raw, part.problem)])
    ]


@pytest.mark.long
@settings(max_examples=600)
@given(st.lists(st.sampled_from(ODD), max_size=8))
@example([b"\x0b"])
@example([b"\x0c", b"<row />"])
@example([b"<row />", b"text", b"/>", b"<row />"])
@example([b"<row />", b"\n", b"<row />", b"/>", b"\n", b"<row />"])
@example([NAMED, b"</root>", b"<root>", b"<row />"])
@example([DECLARED, b"</root>", b"<root>", b"<row />"])
@example([b"<?a:b ", b"?>", b"</root>", b"<root>", b"<row />"])
@example([NAMED, b"</root>", b"\x00", b"<row />"])
@example([b"<row A='>' />", b"<row xmlns:a='u' />"])
@example([b"<!--", b"<row />", b"-->"])
def test_each_row_is_a_row_or_malformed(parts: list[bytes]) -> None:
    """Between rows, only white space, comments and processing instructions are allowed."""
    data = b"".join(parts)
    actual = list(rows.parse(data))
    malformed = [part for part in actual if isinstance(part, rows.Malformed)]
    good = [row for part in actual if isinstance(part, rows.Rows) for row in part.rows]
    refused = sum(1 for part in malformed if rows.ROW_START.match(part.raw))
    assert len(good) + refused == len(rows.ROW_START.findall(data))
    expected = whole(_repair(data)[0].encode())
    assert (expected is None) == bool(malformed)
    assert expected is None or [list(row.items()) for row in good] == [
        list(row.items()) for row in expected
    ]


@pytest.mark.long
@settings(max_examples=300)
@given(st.lists(st.sampled_from(ODD), max_size=8), st.data())
def test_slices_may_be_cut_at_any_row(parts: list[bytes], draw: st.DataObject) -> None:
    data = b"".join(parts)
    starts = [match.start() for match in rows.ROW_START.finditer(data)]
    cuts = draw.draw(
        st.lists(st.sampled_from(starts), unique=True).map(sorted) if starts else st.just([])
    )
    apart = [data[a:b] for a, b in itertools.pairwise([0, *cuts, len(data)]) if data[a:b].strip()]
    at_once = list(rows.parse(data))
    in_turn = [part for piece in apart for part in rows.parse(piece)]
    assert outcome(at_once) == outcome(in_turn)
    assert sum(part.repaired for part in at_once if isinstance(part, rows.Rows)) == sum(
        part.repaired for part in in_turn if isinstance(part, rows.Rows)
    )


@given(st.binary(max_size=60))
def test_repair_agrees_with_the_oracle(data: bytes) -> None:
    repaired, count = rows.repair(data)
    assert (repaired.decode(), count) == _repair(data)
    assert rows.repair(repaired) == (repaired, 0)


PAIRED = [b"&#xD83D;", b"&#55357;", b"&#xDE00;", b"&#056832;", b"&#65;", b"a", b"&#0;", b"&#xd83d"]


@given(st.lists(st.sampled_from(PAIRED), max_size=6).map(b"".join))
@example(b"&#xD83D;&#xDE00;")
def test_pairs_of_surrogates_become_their_character(data: bytes) -> None:
    repaired, count = rows.repair(data)
    assert (repaired.decode(), count) == _repair(data)
    assert rows.repair(b"&#xD83D;&#xDE00;") == ("\U0001f600".encode(), 1)
    assert rows.repair(b"&#xD83D; &#xDE00;") == ("\ufffd \ufffd".encode(), 2)


def test_valid_rows_are_not_repaired() -> None:
    """A valid slice is unchanged; in an invalid slice, only the invalid rows change."""
    good = b'<row Id="1" A="&amp;#0;" />\n'
    assert list(rows.parse(good)) == [rows.Rows([{"Id": "1", "A": "&#0;"}], 0)]
    bad = good + b'<row Id="2" A="&#0;" />\n' + b"<row Id=3/>\n" + good
    parsed = list(rows.parse(bad))
    repairs = [part.repaired if isinstance(part, rows.Rows) else part.raw for part in parsed]
    assert repairs == [0, 1, b"<row Id=3/>\n", 0]
    malformed = parsed[2]
    assert isinstance(malformed, rows.Malformed)
    assert bad[malformed.position :].startswith(malformed.raw)
    assert malformed.problem == "not well-formed (invalid token)"


def test_row_id() -> None:
    for text, row_id in {"": None, "x": None, "9" * 30: None, "-1": -1, "+4": 4}.items():
        assert rows.row_id({"Id": text}) == row_id
    assert rows.row_id({}) is None


ROW = b'<row A="1" />'


def test_attributes_keep_their_names() -> None:
    written = "Title a:Title xmlns xmlns:a :b c: d:e:f xml:space xmlnsx xmlns:xmlx"
    names = written.split()
    row = "<row" + "".join(f' {name}="{name}"' for name in names) + "/>"
    assert list(rows.parse(row.encode())) == [rows.Rows([{name: name for name in names}])]
    (refused,) = rows.parse(row.replace(" c:=", " xmlns=").encode())
    assert isinstance(refused, rows.Malformed)
    assert refused.problem == "duplicate attribute"


def test_allowed_content_between_rows() -> None:
    between = (b"<!--x-->", b"<?x y?>", b"<![CDATA[ ]]>", b"\n  ")
    for data in (*(ROW + gap + ROW for gap in between), b'<row A="1"></row>\n' + ROW + b"\n"):
        assert outcome(rows.parse(data)) == [{"A": "1"}, {"A": "1"}]


def test_forbidden_content_between_rows() -> None:
    for data, problem in {
        b"<a/>": "found <a> where <row> was expected",
        b'<p:row xmlns:p="x" A="1" />': "found <p:row> where <row> was expected",
        b"<row><a/></row>": "found <a> inside a row",
        b"<row>text</row>": "found the text 'text' inside a row",
        ROW + b" text " + ROW: "found the text 'text' between rows",
    }.items():
        malformed = [part for part in rows.parse(data) if isinstance(part, rows.Malformed)]
        assert problem in [part.problem for part in malformed]
        is_damage = "between rows" in problem
        assert all(part.is_xml is not is_damage for part in malformed)
        for damage in (b"<b>", b"&"):  # Later in the same row.
            malformed = [p for p in rows.parse(data + damage) if isinstance(p, rows.Malformed)]
            assert not malformed[-1].is_xml


@pytest.mark.parametrize("gap", [b"", b"\n", b"\r\n  "])
def test_plain_slices_are_parsed_once(gap: bytes) -> None:
    row = ROW + gap
    assert rows._is_plain(row * 3, 3)
    assert not rows._is_plain(row * 3, 0)
    for odd in (b"text", b"/>", b"<!--x-->", b"<b/>", b">"):
        for at in range(4):
            assert not rows._is_plain(row * at + odd + row * (3 - at), 3)


def test_a_prolog_is_utf_8_whatever_it_declares() -> None:
    rows.check_prolog('<?xml version="1.0" encoding="utf-16"?><!-- ü --><posts></posts>'.encode())
    rows.check_prolog(b'<!DOCTYPE posts [<!ENTITY a "b">]><posts x="&a;"></posts>')
    with pytest.raises(rows.RowError) as error:
        rows.check_prolog(b"<!-- x --\n><posts></posts>")
    assert "line" not in str(error.value)
