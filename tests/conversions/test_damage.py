"""Damaged dumps give the documents of the oracle, or an error with a position.

`SO2DOCS_LONG=1` tries thousands of flips instead of a few hundred.
"""

import os
import random
import re
from pathlib import Path

import pytest
from support.dumps import END, START, answer, dump_of, question, unpacked, write_dump
from support.judge import check, mutated
from support.places import LONG, SAMPLES

import so2docs

FINDINGS = sorted((Path(__file__).parent / "findings").glob("*"))


def failure(dump: Path, tmp_path: Path, **options: object) -> so2docs.DumpError:
    """Return the error of a conversion, which must fail and leave no output."""
    output = tmp_path / "failed.jsonl.gz"
    with pytest.raises(so2docs.DumpError) as caught:
        so2docs.convert(dump, output, jobs=1, restart=True, **options)  # type: ignore[arg-type]
    assert not output.exists()
    return caught.value


def check_excerpt(error: so2docs.DumpError, tmp_path: Path, **options: object) -> None:
    """Check that converting the excerpt gives the same error."""
    assert error.excerpt_path is not None
    assert error.excerpt_path in str(error)
    excerpt = tmp_path / "excerpt.xml"
    os.replace(error.excerpt_path, excerpt)
    again = failure(excerpt, tmp_path, **options)
    assert (type(again), again.problem) == (type(error), error.problem)


@pytest.mark.long
def test_cut_at_every_byte(tmp_path: Path) -> None:
    rows = question(1, Body="\n<p>\u00e9</p>", Tags="<a>"), answer(12, 1, Score=-1), question(5)
    whole = (SAMPLES / "posts.xml").read_bytes() if LONG else dump_of(*rows)
    whole += b"\r\n"
    dump, output = tmp_path / "Posts.xml", tmp_path / "questions.jsonl.gz"
    dump.write_bytes(whole)
    so2docs.convert(dump, output, jobs=1)
    expected = unpacked(output)
    closed = whole.rindex(END) + len(END)
    opened = whole.index(b"<posts>") + len(b"<posts>")
    for cut in range(len(whole)):
        dump.write_bytes(whole[:cut])
        if cut >= closed:
            so2docs.convert(dump, output, jobs=1, force=True)
            assert unpacked(output) == expected
            continue
        error = failure(dump, tmp_path)
        if cut < opened:
            assert "is empty" in str(error) or "is not a Posts.xml: no root element" in str(error)
            continue
        assert isinstance(error, so2docs.TruncatedDumpError)
        good = re.findall(rb'<row Id="([0-9]+)"[^<]*" />', whole[:cut])
        last_id = int(good[-1]) if good else None
        assert error.location == so2docs.Location(cut, None, last_id)
        check_excerpt(error, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20 if LONG else 3))
def test_bytes_flipped_at_random(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    seeds = [path.read_bytes() for path in sorted(SAMPLES.glob("*.xml"))]
    outcomes = {check(mutated(rng, seeds), tmp_path) for _ in range(500 if LONG else 60)}
    assert {"documents", "MalformedDumpError"} <= outcomes


@pytest.mark.parametrize("at", range(0, len(question(1, Title="t")), 3))
def test_every_bit_of_a_row(at: int, tmp_path: Path) -> None:
    rows = question(1, Title="t"), question(2, Title="t"), answer(3, 1)
    for bit in range(8) if LONG else (at % 8, 5):
        damaged = bytearray(rows[1])
        damaged[at] ^= 1 << bit
        check(dump_of(rows[0], bytes(damaged), rows[2]), tmp_path)


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda path: path.name)
def test_findings_of_the_fuzzer(finding: Path, tmp_path: Path) -> None:
    check(finding.read_bytes(), tmp_path)


# Each text is inserted between two rows, and counting rows does not detect it.
BETWEEN = {
    "text": b"lost",
    "text-that-ends-like-a-row": b'of a body" Score="3" />\r\n',
    "text-alone-on-a-line": b"lost/>\r\n",
    "a-reference": b"&#65;",
    "an-entity": b"&lol;",
    "another-element": b"<rov/>",
    "an-element-with-rows": b'<rows><row Id="9" PostTypeId="1"/></rows>',
    "character-data": b"<![CDATA[lost]]>",
    "a-closing-tag": b"</row>",
    "a-second-root": b"</posts><posts>",
    "another-dump": END + b"\r\n" + START,
    "raw-nul": b"\x00",
    "a-vertical-tab": b"\x0b",
    "a-no-break-space": "\u00a0".encode(),
    "half-a-row": b'<row Id="9"',
}


@pytest.mark.parametrize("chunk_bytes", [40, 150])
@pytest.mark.parametrize("name", BETWEEN)
def test_nothing_between_rows_is_lost(name: str, chunk_bytes: int | None, tmp_path: Path) -> None:
    # The longest chunks start with a row and contain several.
    first = [question(post_id) for post_id in range(10, 14)]
    rows = question(1), question(2), BETWEEN[name], question(3), question(4)
    dump = write_dump(tmp_path / "Posts.xml", *first, *rows)
    error = failure(dump, tmp_path, chunk_bytes=chunk_bytes)
    assert isinstance(error, so2docs.MalformedDumpError)
    assert error.location is not None
    # The malformed piece starts with the previous row, or with the partial row itself.
    start = len(START) + len(b"".join(first)) + len(rows[0])
    is_half = name == "half-a-row"
    assert error.location.offset == start + (len(rows[1]) if is_half else 2)
    assert error.location.line == 8 + is_half
    assert error.location.last_id == 1 + is_half
    assert "not well-formed" in error.problem
    assert "leave such rows out with errors='skip'" in str(error)
    check_excerpt(error, tmp_path)


@pytest.mark.parametrize("chunk_bytes", [None, 40])
def test_rows_that_are_not_xml_are_skipped(chunk_bytes: int | None, tmp_path: Path) -> None:
    bad = b'  <row Id="3" Body="<b>" />\r\n'
    dump = write_dump(tmp_path / "Posts.xml", question(1), bad, answer(2, 1), b"  <row Id=4/>\n")
    output = tmp_path / "questions.jsonl.gz"
    report = so2docs.convert(dump, output, jobs=1, chunk_bytes=chunk_bytes, errors="skip")
    assert (report.rows, report.strays) == (4, {"malformed_row": 2})
    (document,) = so2docs.read(output)
    assert [post["Id"] for post in (document, *document["Answers"])] == [1, 2]
    strays = list(so2docs.read(tmp_path / ".questions.jsonl.gz.strays.gz"))
    data = dump.read_bytes()
    for stray in strays:
        assert stray["reason"] == "malformed_row"
        assert data[stray["offset"] :].startswith(stray["text"].encode())
    assert strays[0]["text"] == bad.decode()[2:] + "  "


# Every notation for the characters that XML forbids (XML 1.0, [2] Char).
FORBIDDEN = [
    b"&#0;",
    b"&#00000;",
    b"&#x0;",
    b"&#x0000000000000000001F;",
    b"&#31;",
    b"&#55296;",
    b"&#xDFFF;",
    b"&#xD83D;",
    b"&#xFFFE;",
    b"&#65535;",
    b"&#x110000;",
    b"&#" + b"9" * 5000 + b";",
    b"\x00",
    b"\x08",
    b"\x0b",
    b"\x1f",
    b"\xff",
    b"\xc3",
    b"\xef\xbf\xbe",
    b"\xef\xbf\xbf",
]
ALLOWED = [b"&#9;", b"&#x1F600;", b"&#xFFFD;", b"&#xE000;", b"\x7f", b"\xef\xbf\xbd", b"\xc2\x85"]


@pytest.mark.parametrize("form", FORBIDDEN, ids=lambda form: ascii(form)[2:20])
def test_forbidden_character(form: bytes, tmp_path: Path) -> None:
    bad = b'  <row Id="2" PostTypeId="1" Title="a' + form + b'z" Body="&lt;\xc3\xa9&amp;#0;" />\r\n'
    dump = write_dump(tmp_path / "Posts.xml", question(1, Title="\u00e9"), bad, question(3))
    output = tmp_path / "questions.jsonl.gz"
    report = so2docs.convert(dump, output, jobs=1)
    documents = list(so2docs.read(output))
    assert documents[1]["Title"] == "a\ufffdz"
    assert documents[1]["Body"] == "<\u00e9&#0;"
    assert (documents[0]["Title"], len(documents), report.repaired_characters) == ("\u00e9", 3, 1)
    error = failure(dump, tmp_path, errors="strict")
    assert isinstance(error, so2docs.StrictError)
    at = dump.read_bytes().index(bad) + 2
    assert str(error.location) == f"at byte {at}, line 4, after post 1"
    assert error.problem == "has 1 forbidden characters in the row"
    check_excerpt(error, tmp_path, errors="strict")


@pytest.mark.parametrize("form", ALLOWED, ids=ascii)
def test_allowed_character(form: bytes, tmp_path: Path) -> None:
    good = b'<row Id="1" PostTypeId="1" Title="' + form + b'" />'
    dump, output = write_dump(tmp_path / "Posts.xml", good), tmp_path / "questions.jsonl.gz"
    assert so2docs.convert(dump, output, jobs=1, errors="strict").repaired_characters == 0


def test_an_excerpt_never_overwrites_its_dump(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "questions.error.xml", b"<row Id=1/>\n", b"  <row Id=2/>\n")
    data = dump.read_bytes()
    with pytest.raises(so2docs.MalformedDumpError) as caught:
        so2docs.convert(dump, tmp_path / "questions.jsonl.gz", jobs=1)
    assert dump.read_bytes() == data
    assert caught.value.excerpt_path is None
