"""Blocks of LZMA2 give the same bytes and errors in parallel as one after the other.

`make sanitize` runs this module, so it does not import py7zr, whose ciphers the sanitizer rejects.
"""

import io
import lzma
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.lzma2_samples import (
    DICTIONARY,
    FILTERS,
    LITERAL_SETTINGS,
    far_matches,
    pack,
    pack_lzma2,
)
from support.places import LONG

from so2docs.dump import lzma2
from so2docs.dump.archives import Wanted
from so2docs.dump.compressed import Parts, decompress_streams
from so2docs.dump.layers import Stream
from so2docs.dump.lzma2 import Lzma2Stream, Method, find_blocks
from so2docs.parse.core import compiled

RNG = random.Random(1)
WORDS = [RNG.randbytes(RNG.randint(2, 9)) for _ in range(400)]


def text(size: int) -> bytes:
    return b" ".join(RNG.choices(WORDS, k=size // 6))[:size]


PARTS = [text(300_000), RNG.randbytes(80_000), b"x", b"", text(150_000), text(70_000)]
DATA = b"".join(PARTS)


PACKED = pack_lzma2(PARTS)


@pytest.fixture(autouse=True)
def every_reset_starts_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lzma2, "_LEAST_UNPACKED", 1)


def new() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=FILTERS)


def outcome(
    packed: bytes,
    size: int | None = None,
    *,
    threads: int = 3,
    wanted: Wanted | None = None,
) -> tuple[bytes, type[Exception] | None]:
    """Decompress by several threads; return the bytes and the error after them."""

    def read_at(length: int, offset: int) -> bytes:
        return packed[offset : offset + length]

    size = len(packed) if size is None else size
    data = bytearray()
    method = Method(new, DICTIONARY)
    parts = Lzma2Stream(read_at, size, method).decompress(threads, wanted or Wanted(0, size * 99))
    try:
        for part in parts:
            data += part
    except Exception as error:
        return bytes(data), type(error)
    return bytes(data), None


def reference(packed: bytes) -> tuple[bytes, type[Exception] | None]:
    """Do the same by one thread, in small steps."""
    parts, data = iter([packed]), bytearray()
    try:
        for part in decompress_streams(lambda _: next(parts, b""), new):
            data += part
    except Exception as error:
        return bytes(data), type(error)
    return bytes(data), None


def test_blocks_are_found() -> None:
    blocks = list(find_blocks(lambda size, at: PACKED[at : at + size], len(PACKED)))
    assert [block.length for block in blocks] == [len(part) for part in PARTS if part]
    assert sum(block.size for block in blocks) == len(PACKED)


def test_small_blocks_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lzma2, "_LEAST_UNPACKED", 80_002)
    blocks = list(find_blocks(lambda size, at: PACKED[at : at + size], len(PACKED)))
    assert [block.length for block in blocks] == [300_000, 230_001, 70_000]
    assert outcome(PACKED) == (DATA, None)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_blocks_side_by_side_are_the_stream(threads: int) -> None:
    assert outcome(PACKED, threads=threads) == (DATA, None) == reference(PACKED)
    assert outcome(PACKED + PACKED, threads=threads) == (DATA * 2, None)
    assert outcome(pack_lzma2([DATA]), threads=threads) == (DATA, None)


def test_unneeded_blocks_are_skipped() -> None:
    start, end = 390_000, 395_000
    for threads in (1, 3):
        data, error = outcome(PACKED, threads=threads, wanted=Wanted(start, end))
    assert error is None
    assert len(data) == len(DATA)
    assert data[start:end] == DATA[start:end]
    assert data[:300_000] == bytes(300_000)


def test_large_dictionaries_are_decompressed_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lzma2, "_DICTIONARIES", 2 * DICTIONARY - 1)
    monkeypatch.setattr(lzma2, "ThreadPoolExecutor", lambda *_: pytest.fail("a second dictionary"))
    assert outcome(PACKED, threads=4) == (DATA, None)


def test_an_error_keeps_the_bytes_of_the_blocks_before_it() -> None:
    at = len(pack_lzma2(PARTS[:1])) + len(pack_lzma2(PARTS[1:2]))
    data, error = outcome(PACKED[: at + 100])
    assert error is EOFError
    assert data[:380_000] == DATA[:380_000]


@pytest.mark.parametrize("seed", range(40 if LONG else 2))
def test_damage_gives_the_same_verdict_as_one_thread(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(25):
        damaged = bytearray(PACKED[: rng.choice([len(PACKED), rng.randrange(len(PACKED))])])
        for _ in range(rng.randint(0, 2)):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        data, error = outcome(bytes(damaged))
        expected_data, expected_error = reference(bytes(damaged))
        assert error == expected_error
        if error is None:
            assert data == expected_data


@given(st.lists(st.sampled_from([b"\0", b"\1\0\0x", b"\2\0\0x", b"\xe0", b"\x80\0\0"]), max_size=8))
def test_odd_chunks_give_the_same_verdict_as_one_thread(chunks: list[bytes]) -> None:
    data, error = outcome(b"".join(chunks))
    expected_data, expected_error = reference(b"".join(chunks))
    assert error == expected_error
    # A single thread loses the bytes that were decoded in the same step as an error.
    assert data == expected_data if error is None else data.startswith(expected_data)


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail if the standard library decompresses a stream: the compiled core must not refuse it."""
    if compiled is None:
        pytest.skip("there is no compiled core")
    monkeypatch.setenv("SO2DOCS_CORE", "compiled")
    monkeypatch.setattr(lzma2, "decompress_streams", lambda *_: pytest.fail("the core refused"))


@pytest.mark.usefixtures("no_library")
@pytest.mark.parametrize("pb", range(5))
def test_the_core_decodes_all_settings(pb: int) -> None:
    data = text(10_000) + far_matches(20_000) + RNG.randbytes(66_000) + bytes(3_000)
    for number, (lc, lp) in enumerate(LITERAL_SETTINGS):
        dictionary = 1 << 12 + 2 * number % 10
        settings = {"lc": lc, "lp": lp, "pb": pb, "preset": number % 10, "dict_size": dictionary}
        assert decoded(pack(data, **settings), dictionary) == data, settings


@pytest.mark.usefixtures("no_library")
def test_the_core_decodes_more_than_its_window() -> None:
    data = far_matches(300_000) * 40  # 12 MB; the window has the dictionary and 4 MiB.
    assert decoded(pack(data, preset=0, dict_size=1 << 19), 1 << 19) == data


@pytest.mark.usefixtures("no_library")
def test_the_core_decodes_streams_one_after_the_other() -> None:
    packed = [pack(data, dict_size=DICTIONARY) for data in (b"", b"x", DATA, b"", PARTS[0])]
    assert decoded(b"".join(packed), DICTIONARY) == b"x" + DATA + PARTS[0]


def decoded(packed: bytes, dictionary: int) -> bytes:
    method = lzma2.Method(lambda: pytest.fail("the core refused"), dictionary)
    parts = method.decompress(lambda: io.BytesIO(packed).read)
    return b"".join(map(bytes, parts))


def test_blocks_that_are_larger_than_a_window() -> None:
    parts = [far_matches(300_000) * 16, b"x" * 5_000_000, text(1_000)]
    assert outcome(pack_lzma2(parts), threads=2) == (b"".join(parts), None)


def test_a_stream_copies_a_part_that_is_overwritten() -> None:
    """The first read of a stream joins small parts."""

    def parts() -> Parts:
        memory = bytearray(1)
        for byte in DATA[:10_000]:
            memory[0] = byte
            yield memoryview(memory)

    assert Stream(parts()).peek(10_000) == DATA[:10_000]
