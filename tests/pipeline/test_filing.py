"""Rows of tables get the question ids of their posts, looked up for many slices at once."""

from __future__ import annotations

import random
from array import array
from pathlib import Path

import pytest
from support.dumps import question, row, write_dump

import so2docs
from so2docs.dump.dump import SLICE_BYTES
from so2docs.parse import core
from so2docs.pipeline import filing
from so2docs.store import id_map

POSTS = 600
COMMENTS = 3_000
VOTES = 20_000

pytestmark = pytest.mark.skipif(core.built() == "python", reason="no compiled core")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Posts and comments on them; the reference parses one slice of the comments."""
    rng = random.Random(0)
    write_dump(tmp_path / "Posts.xml", *map(question, range(1, POSTS + 1)))
    comments = [
        row(Id=number, PostId=rng.randint(1, POSTS), Score=0, Text="word " * 60)
        for number in range(COMMENTS)
    ]
    comments[COMMENTS // 2] = comments[COMMENTS // 2].replace(b'"', b"'")
    assert sum(map(len, comments)) > 3 * SLICE_BYTES
    write_dump(tmp_path / "Comments.xml", *comments)
    return tmp_path


def read_of_the_map(site: Path, table: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Nest a table, and return where the map of posts is read, with a small cache."""
    monkeypatch.setattr(id_map, "_MOST_KNOWN", 1)
    read: list[int] = []
    plain, finish_map = id_map.read_at, id_map.IdMapWriter.finish

    def finish(writer: id_map.IdMapWriter) -> array[int]:
        samples = finish_map(writer)
        read.clear()  # The files of the runs that the map was merged from.
        return samples

    def read_at(file: int, size: int, offset: int) -> bytes:
        read.append(offset)
        return plain(file, size, offset)

    monkeypatch.setattr(id_map.IdMapWriter, "finish", finish)
    monkeypatch.setattr(id_map, "read_at", read_at)
    report = so2docs.convert(site, site / "o.jsonl.gz", nest=table, core="compiled", jobs=1)
    assert report.tables[table].nested == report.tables[table].rows
    return [offset for offset in read if offset < POSTS * 16]


def test_each_block_of_the_map_is_read_once_for_many_slices(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    comments = site / "Comments.xml"
    comments.write_bytes(comments.read_bytes().replace(b"'", b'"'))
    assert len(read_of_the_map(site, "comments", monkeypatch)) == -(-POSTS // id_map._BLOCK)


def test_each_block_of_the_map_is_read_once_for_the_votes_of_a_chunk(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are short: a few slices have fewer votes than the map of a large site has blocks."""
    votes = (row(Id=n, PostId=n * 7 % POSTS + 1, VoteTypeId=2) for n in range(VOTES))
    write_dump(site / "Votes.xml", *votes)
    assert (site / "Votes.xml").stat().st_size > 3 * SLICE_BYTES
    monkeypatch.setattr(filing, "_FLUSH_EVERY", SLICE_BYTES)
    assert len(read_of_the_map(site, "votes", monkeypatch)) == -(-POSTS // id_map._BLOCK)


def test_slices_of_either_core_stay_in_order(site: Path) -> None:
    outputs = []
    for name in ("compiled", "python"):
        output = site / f"{name}.jsonl.gz"
        so2docs.convert(site, output, nest="comments", core=name, jobs=1)
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]
