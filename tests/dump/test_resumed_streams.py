"""A resumed conversion of a stream decompresses it again, and parses only the rest."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.dumps import left_by, some_rows, write_dump
from support.interruptions import stopped
from support.messages import heard
from support.packed import BZIP2, LZMA2, seven_zip
from support.table_sites import SITE

import so2docs
from so2docs.spill import Spill

CHUNK_BYTES = 30_000


def convert(source: Path, output: Path, **options: Any) -> list[str]:
    options = {"jobs": 1, "chunk_bytes": CHUNK_BYTES} | options
    with heard() as messages:
        so2docs.convert(source, output, **options)
    return messages


def utf_16(data: bytes) -> bytes:
    return data.decode().replace('"utf-8"', '"utf-16"').encode("utf-16")


FORMS: dict[str, Callable[[Path, bytes], object]] = {
    "a.gz": lambda path, data: path.write_bytes(gzip.compress(data)),
    "a.bz2": lambda path, data: path.write_bytes(bz2.compress(data)),
    "a.xz": lambda path, data: path.write_bytes(lzma.compress(data)),
    "utf-16.bz2": lambda path, data: path.write_bytes(bz2.compress(utf_16(data))),
}


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "q.jsonl.gz"


def check_stopped_twice(source: Path, output: Path, **options: Any) -> None:
    """Check that the bytes are the same, and that the stream is decompressed again."""
    convert(source, output, **options)
    expected = left_by(output)
    for commits in (2, 9):
        with stopped(Spill, "commit", commits):
            convert(source, output, force=True, **options)
    messages = convert(source, output, force=True, **options)
    assert any("decompressing" in line and "from its start" in line for line in messages)
    assert left_by(output) == expected


@pytest.mark.parametrize("name", FORMS)
def test_stopped_twice(name: str, output: Path, tmp_path: Path) -> None:
    data = write_dump(tmp_path / "Posts.xml", *some_rows(600, body_bytes=200)).read_bytes()
    FORMS[name](tmp_path / name, data)
    check_stopped_twice(tmp_path / name, output, chunk_bytes=10_000)


@pytest.mark.parametrize("filters", [BZIP2, LZMA2], ids=["bzip2", "lzma2"])
def test_stopped_twice_in_an_archive(
    filters: list[dict[str, Any]], output: Path, tmp_path: Path
) -> None:
    """Tables come before and after the posts, in several chunks each."""
    files = {path.name: path.read_bytes() for path in sorted(SITE.glob("*.xml"))}
    archive = seven_zip(tmp_path / "tea.7z", files, filters)
    check_stopped_twice(archive, output, nest="all", chunk_bytes=300)


def test_an_error_has_its_place_after_a_restart(tmp_path: Path) -> None:
    rows = some_rows(3000, body_bytes=200, dense=True)
    rows[2900] = rows[2900].replace(b" />", b">")
    data = write_dump(tmp_path / "Posts.xml", *rows).read_bytes()
    packed = tmp_path / "Posts.xml.bz2"
    packed.write_bytes(bz2.compress(data, 1))
    places = []
    for source, output in (("Posts.xml", "a"), ("Posts.xml.bz2", "b"), ("Posts.xml.bz2", "b")):
        with pytest.raises(so2docs.MalformedDumpError) as failed:
            convert(tmp_path / source, tmp_path / f"{output}.jsonl.gz")
        places.append(failed.value.location)
    assert places[0] == places[1] == places[2]
