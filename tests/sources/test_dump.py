"""A dump cut into chunks and slices of any size: every row once, none cut."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.dumps import END, START, question, some_rows, write_dump

from so2docs.errors import TruncatedDumpError
from so2docs.posts import rows
from so2docs.sources.dump import Dump, open_dump, slices

ROWS = [
    question(1, Title="t"),
    b'<row Id="2" Body="&lt;row Id" PostTypeId="1"></row>',
    b'<row\tId="3" rowing="1" PostTypeId="1"/><row\nId="4" PostTypeId="1"/>',
    question(5, Body="<row " * 20),
]
STARTS = [b"Id", b"Id", b"Id", b"Id", b"Id"]


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Dump:
    return open_dump(str(write_dump(tmp_path_factory.mktemp("dump") / "Posts.xml", *ROWS)))


def check(dump: Dump, chunk_bytes: int, slice_bytes: int) -> None:
    data = Path(dump.path).read_bytes()
    found = [
        part
        for _, _, start, end in dump.chunks(chunk_bytes, (), Path())
        for part in slices(dump, start, end, slice_bytes)
    ]
    assert b"".join(part for _, part in found) == data[dump.start : dump.end]
    for number, (offset, part) in enumerate(found):
        assert data[offset : offset + len(part)] == part
        assert not number or re.match(rb"<row\s", part)


@pytest.mark.parametrize("chunk_bytes", [*range(1, 60), 100, 10_000])
def test_every_chunk_size(chunk_bytes: int, dump: Dump) -> None:
    for slice_bytes in (1, 2, 3, 5, 8, 13, 50, 100, 10_000):
        check(dump, chunk_bytes, slice_bytes)


@given(st.integers(1, 500), st.integers(1, 500))
def test_any_sizes(dump: Dump, chunk_bytes: int, slice_bytes: int) -> None:
    check(dump, chunk_bytes, slice_bytes)


def test_a_row_longer_than_any_window(tmp_path: Path) -> None:
    long = question(2, Body="x" * 200_000)
    dump = open_dump(str(write_dump(tmp_path / "Posts.xml", question(1), long, question(3))))
    for chunk_bytes in (1000, 65_536, 100_000):
        check(dump, chunk_bytes, 1000)


def test_head_and_tail(dump: Dump) -> None:
    data = Path(dump.path).read_bytes()
    assert data[: dump.start] == START.rstrip()
    assert data[dump.end :] == END
    assert (dump.first_line, dump.size) == (2, len(data))
    assert dump.frame == (b"<posts>", b"</posts>")


@pytest.mark.parametrize(
    "tail", [b"\r\n", b" \t\n" * 50_000, b"\n<!-- end -->", b"<?end?>\n", b"\n" * 3]
)
def test_what_may_follow_the_rows(tail: bytes, tmp_path: Path) -> None:
    path = tmp_path / "Posts.xml"
    path.write_bytes(START + question(1) + END + tail)
    assert open_dump(str(path)).end == len(START) + len(question(1))


def test_a_closing_tag_with_white_space(tmp_path: Path) -> None:
    path = tmp_path / "Posts.xml"
    path.write_bytes(START + question(1) + b"</posts\n >")
    assert list(rows.parse(question(1), open_dump(str(path)).frame))


def test_the_last_good_row_of_a_cut_may_be_far_back(tmp_path: Path) -> None:
    path = tmp_path / "Posts.xml"
    path.write_bytes(START + question(7) + b'<row Id="8" Body="' + b"x" * 1_000_000)
    with pytest.raises(TruncatedDumpError, match=r"at byte 1,0.*, line 4, after post 7;"):
        open_dump(str(path))


def test_reading_takes_what_stands_before_the_first_row(tmp_path: Path) -> None:
    dump = open_dump(str(write_dump(tmp_path / "Posts.xml", b"<!-- x -->", *some_rows(5))))
    check(dump, 7, 5)
