"""Segments have the same bytes in any process, can be read separately, and become one stream."""

import gzip
import platform
import subprocess
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command import run_python

from so2docs.options.choices import compression_from_name
from so2docs.output.compression import compress
from so2docs.output.file import Output
from so2docs.output.new_files import NewFiles

LINES = b"".join(b'{"Id":%d,"Tags":["c","gcc"],"Score":%d}\n' % (n, n % 7) for n in range(60))

# Compresses a few texts at 10,000 addresses, in steps of 64 KiB. With level 1, which has the
# smallest table of strings, nearly every text used to have an address with other bytes.
AT_MANY_ADDRESSES = """
import ctypes, mmap, sys
M_MMAP_THRESHOLD = -3
assert ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 4096)
from so2docs.output.compression import compress
lines, held, found = sys.stdin.buffer.read()[:500], [], set()
texts = [lines.replace(b"Id", name) for name in (b"Id", b"Site", b"Body", b"Score", b"Z", b"Title")]
for _ in range(10_000):
    held.append(mmap.mmap(-1, 65536, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ))
    found.update([compress(text, "gzip", 1).data for text in texts])
print(len(found))
"""


@pytest.mark.long
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="moves memory by a setting of glibc")
def test_same_bytes_at_any_address() -> None:
    result = run_python("-c", AT_MANY_ADDRESSES, input=LINES, encoding=None)
    assert result.stdout == b"6\n"


@pytest.mark.parametrize("level", range(10))
def test_each_piece_inflates_on_its_own(level: int) -> None:
    before = compress(LINES, "gzip", level).data
    for raw in (b"", b"\n", LINES, LINES * 900, b"\0" * 5000, b"\0{" * 25_000 + LINES):
        check_piece(raw, level)
        piece = compress(raw, "gzip", level)
        assert zlib.decompressobj(-15).decompress(before + piece.data) == LINES + raw


@given(st.binary(max_size=50), st.integers(0, 9))
def test_any_piece(raw: bytes, level: int) -> None:
    check_piece(raw, level)


def check_piece(raw: bytes, level: int) -> None:
    piece = compress(raw, "gzip", level)
    assert zlib.decompressobj(-15).decompress(piece.data) == raw
    assert (piece.raw_size, piece.crc) == (len(raw), zlib.crc32(raw))


@pytest.mark.parametrize("raws", [[], [b"one\n", b"two\n" * 1000, b"\xff\x00three\n"]])
@pytest.mark.parametrize(("name", "level"), [("x.jsonl", 2), *(("x.gz", n) for n in range(10))])
def test_every_reader_accepts_the_stream(
    name: str, level: int, raws: list[bytes], tmp_path: Path
) -> None:
    path = tmp_path / name
    compression = compression_from_name(name)
    with NewFiles(str(path)) as files:
        file = Output(files, str(path), compression)
        for raw in raws:
            file.append(compress(raw, compression, level))
        assert file.seal() == sum(len(raw) for raw in raws) or compression == "gzip"
    data, raw = path.read_bytes(), b"".join(raws)
    if compression == "none":
        assert data == raw
        return
    assert gzip.decompress(data) == raw
    inflate = zlib.decompressobj(31)
    assert inflate.decompress(data) == raw
    assert (inflate.eof, inflate.unused_data) == (True, b"")  # One member.
    assert data[3:8] == bytes(5)
    result = subprocess.run(["gzip", "-dc"], input=data, capture_output=True, check=True)
    assert result.stdout == raw
