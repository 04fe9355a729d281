"""A dump cut into chunks and slices of any size: every row is whole and in exactly one."""

import re
from pathlib import Path

import pytest
from support.dumps import END, START, question, some_rows, write_dump

from so2docs.dump.dump import Dump, open_dump, slices
from so2docs.errors import TruncatedDumpError

ROWS = [
    question(1, Title="t"),
    b'<row Id="2" Body="&lt;row Id" PostTypeId="1"></row>',
    b'<row\tId="3" rowing="1" PostTypeId="1"/><row\nId="4" PostTypeId="1"/>',
    question(5, Body="<row " * 20),
]


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Dump:
    return open_dump(str(write_dump(tmp_path_factory.mktemp("dump") / "Posts.xml", *ROWS)))


def starts_in(part: bytes) -> list[int]:
    """Return the offsets of the starts of rows."""
    return [match.start() for match in re.finditer(rb"<row[\s/>]", part)]


def check(dump: Dump, chunk_bytes: int, slice_bytes: int) -> None:
    data = Path(dump.path).read_bytes()
    rows = []
    for _, _, start, end in dump.chunks(chunk_bytes, (), Path()):
        for offset, part in slices(dump, start, end, slice_bytes):
            rows.append((offset, part))
            assert all(start <= offset + at < end for at in starts_in(part))
    assert b"".join(part for _, part in rows) == data[dump.start : dump.end]
    for number, (offset, part) in enumerate(rows):
        assert data[offset : offset + len(part)] == part
        assert not number or re.match(rb"<row\s", part)


def test_every_chunk_size(dump: Dump) -> None:
    for chunk_bytes in (*range(1, 60), 100, 10_000):
        for slice_bytes in (1, 2, 3, 5, 8, 13, 50, 100, 10_000):
            check(dump, chunk_bytes, slice_bytes)


def test_a_row_longer_than_any_window(tmp_path: Path) -> None:
    long = question(2, Body="x" * 200_000)
    dump = open_dump(str(write_dump(tmp_path / "Posts.xml", question(1), long, question(3))))
    for chunk_bytes in (1000, 65_536, 100_000):
        check(dump, chunk_bytes, 1000)


@pytest.mark.parametrize("size", [1, 7, 100, 10_000])
def test_progress_of_chunks_adds_up_to_the_file(size: int, dump: Dump) -> None:
    chunks = list(dump.chunks(size, (), Path()))
    bytes_of = {chunk.number: dump.progress(chunk) for chunk in chunks}
    assert dump.progress_total(size, bytes_of) == (dump.size, dump.end - dump.start)
    for committed in (0, len(chunks) - 1):
        assert dump.progress_total(size, [committed]) == (dump.size, bytes_of[committed])
        remaining = [chunk.number for chunk in dump.chunks(size, {committed}, Path())]
        assert remaining == [number for number in bytes_of if number != committed]


@pytest.mark.parametrize("before", range(8))
def test_a_row_at_the_end_of_a_window(before: int, tmp_path: Path) -> None:
    """A chunk looks for its first row in windows of 64 KiB."""
    head = question(1, Body="")
    long = question(1, Body="x" * (1000 + 65_536 - before - len(head) - len(b"\n  ")))
    dump = open_dump(str(write_dump(tmp_path / "Posts.xml", long, question(2), question(3))))
    data = Path(dump.path).read_bytes()
    assert abs(starts_in(data)[1] - dump.start - 1000 - 65_536 + before) < 4
    check(dump, 1000, 10_000)


def test_head_and_tail(dump: Dump) -> None:
    data = Path(dump.path).read_bytes()
    assert data[: dump.start] == START.rstrip()
    assert data[dump.end :] == END
    assert (dump.first_line, dump.size) == (2, len(data))
    assert dump.frame == (b"<posts>", b"</posts>")


def test_the_last_good_row_of_a_cut_may_be_far_back(tmp_path: Path) -> None:
    path = tmp_path / "Posts.xml"
    path.write_bytes(START + question(7) + b'<row Id="8" Body="' + b"x" * 1_000_000)
    with pytest.raises(TruncatedDumpError, match=r"at byte 1,0.*, after post 7;"):
        open_dump(str(path))


def test_finds_rows_after_a_comment(tmp_path: Path) -> None:
    dump = open_dump(str(write_dump(tmp_path / "Posts.xml", b"<!-- x -->", *some_rows(5))))
    check(dump, 7, 5)
