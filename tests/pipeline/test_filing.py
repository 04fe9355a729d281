"""Rows of tables get the question ids of their posts, looked up for many slices at once."""

from __future__ import annotations

import random
from array import array
from pathlib import Path

import pytest

import so2docs
from so2docs.dump.dump import SLICE_BYTES
from so2docs.parse import core
from so2docs.store import id_map

POSTS = 600
COMMENTS = 3_000

_POST = '<row Id="{0}" PostTypeId="1" Score="0" Title="t" Body="b" />\n'
_COMMENT = '<row Id="{}" PostId="{}" Score="0" Text="{}" />\n'
_ODD = "<row Id='{}' PostId='{}' Score='0' Text='{}' />\n"


def write_site(folder: Path) -> None:
    """Write posts and comments on them; the reference parses one slice of the comments."""
    rng = random.Random(0)
    posts = "".join(map(_POST.format, range(1, POSTS + 1)))
    comments = [
        (_ODD if number == COMMENTS // 2 else _COMMENT).format(
            number, rng.randint(1, POSTS), "word " * 60
        )
        for number in range(COMMENTS)
    ]
    (folder / "Posts.xml").write_text(f"<posts>{posts}</posts>")
    (folder / "Comments.xml").write_text(f"<comments>{''.join(comments)}</comments>")
    assert sum(map(len, comments)) > 3 * SLICE_BYTES


@pytest.mark.skipif(core.built() == "python", reason="no compiled core")
def test_each_block_of_the_map_is_read_once_for_many_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_site(tmp_path)
    comments = (tmp_path / "Comments.xml").read_text().replace("'", '"')
    (tmp_path / "Comments.xml").write_text(comments)
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
    report = so2docs.convert(
        tmp_path, tmp_path / "o.jsonl.gz", nest="comments", core="compiled", jobs=1
    )
    assert report.tables["comments"].nested == COMMENTS
    blocks = -(-POSTS // id_map._BLOCK)
    assert sum(offset < POSTS * 16 for offset in read) == blocks


@pytest.mark.skipif(core.built() == "python", reason="no compiled core")
def test_slices_of_either_core_stay_in_order(tmp_path: Path) -> None:
    write_site(tmp_path)
    outputs = []
    for name in ("compiled", "python"):
        output = tmp_path / f"{name}.jsonl.gz"
        so2docs.convert(tmp_path, output, nest="comments", core=name, jobs=1)
        outputs.append(output.read_bytes())
    assert outputs[0] == outputs[1]
