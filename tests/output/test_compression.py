"""Segments have the same bytes in any process, and each can be read separately."""

import platform
import zlib

import pytest
from support.command import run_python

from so2docs.output.compression import compress

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
        piece = compress(raw, "gzip", level)
        assert zlib.decompressobj(-15).decompress(piece.data) == raw
        assert zlib.decompressobj(-15).decompress(before + piece.data) == LINES + raw
        assert (piece.raw_size, piece.crc) == (len(raw), zlib.crc32(raw))
