"""A resumed conversion of a stream decompresses it again, and parses only the rest."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.dumps import left_by, some_rows, write_dump
from support.interruptions import Stop
from support.messages import heard
from support.packed import BZIP2, LZMA2, seven_zip

import so2docs
from so2docs.spill import Spill

CHUNK_BYTES = 30_000


def convert(source: Path, output: Path, **options: Any) -> list[str]:
    options = {"jobs": 1, "chunk_bytes": CHUNK_BYTES} | options
    with heard() as messages:
        so2docs.convert(source, output, **options)
    return messages


def stop_after(
    commits: int, monkeypatch: pytest.MonkeyPatch, source: Path, output: Path, **options: Any
) -> None:
    """Convert, and stop after a number of commits."""
    commit, count = Spill.commit, 0

    def counted(*arguments: Any, **keywords: Any) -> None:
        nonlocal count
        if count == commits:
            raise Stop
        count += 1
        commit(*arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(Spill, "commit", counted)
        with pytest.raises(Stop):
            convert(source, output, **options)


def utf_16(data: bytes) -> bytes:
    return data.decode().replace('"utf-8"', '"utf-16"').encode("utf-16")


def site(data: bytes) -> dict[str, bytes]:
    return {"Comments.xml": b"<comments>" + b" " * 50_000, "Posts.xml": data, "Tags.xml": b"<tags>"}


FORMS: dict[str, Callable[[Path, bytes], object]] = {
    "a.gz": lambda path, data: path.write_bytes(gzip.compress(data)),
    "a.bz2": lambda path, data: path.write_bytes(bz2.compress(data)),
    "a.xz": lambda path, data: path.write_bytes(lzma.compress(data)),
    "utf-16.bz2": lambda path, data: path.write_bytes(bz2.compress(utf_16(data))),
    "bzip2.7z": lambda path, data: seven_zip(path, site(data), BZIP2),
    "lzma2.7z": lambda path, data: seven_zip(path, site(data), LZMA2),
}


@pytest.mark.parametrize("name", FORMS)
def test_stopped_twice(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes are the same, and users are told that the stream is decompressed again."""
    data = write_dump(tmp_path / "Posts.xml", *some_rows(600, body_bytes=200)).read_bytes()
    source, output = tmp_path / name, tmp_path / "out" / "q.jsonl.gz"
    output.parent.mkdir()
    FORMS[name](source, data)
    convert(source, output)
    expected = left_by(output)
    for commits in (2, 1):
        stop_after(commits, monkeypatch, source, output, force=True)
    messages = convert(source, output, force=True)
    assert any(f"{name} from its start" in line for line in messages)
    assert left_by(output) == expected


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
