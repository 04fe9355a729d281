"""Segments become one gzip stream that every reader accepts; a file is complete or absent."""

import gzip
import io
import os
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from so2docs.errors import OutputError
from so2docs.options.choices import compression_from_name
from so2docs.output.compression import compress
from so2docs.output.file import Output
from so2docs.output.new_files import NewFiles
from so2docs.store.disk import write_all

RAWS = [b"one\n", b"two\n" * 1000, b"\xff\x00three\n"]


def write(path: Path, raws: list[bytes], level: int = 2) -> bytes:
    compression = compression_from_name(str(path))
    with NewFiles(str(path)) as files:
        file = Output(files, str(path), compression)
        for raw in raws:
            file.append(compress(raw, compression, level))
        size = file.seal()
        assert not path.exists()
    assert path.stat().st_size == size
    assert os.listdir(path.parent) == [path.name]
    return path.read_bytes()


@pytest.mark.parametrize("level", range(10))
def test_every_reader_accepts_the_only_member(level: int, tmp_path: Path) -> None:
    data = write(tmp_path / "x.jsonl.gz", RAWS, level)
    assert gzip.decompress(data) == b"".join(RAWS)
    inflate = zlib.decompressobj(31)
    assert inflate.decompress(data) == b"".join(RAWS)
    assert inflate.eof
    assert inflate.unused_data == b""
    assert data[4:8] == bytes(4)
    assert not data[3]
    result = subprocess.run(["gzip", "-dc"], input=data, capture_output=True, check=True)
    assert result.stdout == b"".join(RAWS)


@given(st.lists(st.binary(max_size=50), max_size=4), st.integers(0, 9))
def test_any_pieces(raws: list[bytes], level: int) -> None:
    pieces = [compress(raw, "gzip", level) for raw in raws]
    for piece, raw in zip(pieces, raws, strict=True):
        assert zlib.decompressobj(-15).decompress(piece.data) == raw
        assert (piece.raw_size, piece.crc) == (len(raw), zlib.crc32(raw))
    body = b"".join(piece.data for piece in pieces)
    crc = zlib.crc32(b"".join(raws)).to_bytes(4, "little")
    size = sum(map(len, raws)).to_bytes(4, "little")
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    assert gzip.decompress(head + body + b"\x03\x00" + crc + size) == b"".join(raws)


@pytest.mark.parametrize("name", ["x.jsonl", "x.ndjson", "x.json"])
def test_not_compressed(name: str, tmp_path: Path) -> None:
    assert write(tmp_path / name, RAWS) == b"".join(RAWS)


@pytest.mark.parametrize("name", ["x.jsonl", "x.jsonl.gz"])
def test_nothing_to_write(name: str, tmp_path: Path) -> None:
    data = write(tmp_path / name, [])
    assert (gzip.decompress(data) if name.endswith(".gz") else data) == b""


def test_a_file_is_published_once(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with NewFiles(str(path)) as files:
        files.write(str(path), b"abc")
    assert os.listdir(tmp_path) == ["x.jsonl"]
    assert path.read_bytes() == b"abc"


def test_a_folder_that_a_link_leads_to_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / ".x.jsonl.part").symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match=r"\.x\.jsonl\.part: cannot be written"):
        write(tmp_path / "x.jsonl", [b"x"])
    assert {path.name for path in tmp_path.iterdir()} == {"mine", ".x.jsonl.part"}


def test_an_incomplete_file_is_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "x.jsonl")
    with NewFiles(path) as files:
        Output(files, path, "none").append(compress(b"x", "none", 2))
    assert not os.listdir(tmp_path)


def test_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"missing/\.x\.part: cannot be written: No such file"):
        write(tmp_path / "missing" / "x", [b"x"])


class Slow(io.RawIOBase):
    """Writes one byte per call, as a raw file may."""

    taken = b""

    def write(self, data: memoryview) -> int:  # type: ignore[override]
        self.taken += data[:1]
        return 1


def test_a_short_write_is_repeated() -> None:
    write_all(slow := Slow(), b"documents\n")
    assert slow.taken == b"documents\n"
