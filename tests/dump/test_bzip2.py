"""bzip2 block by block, compared with the standard library."""

import bz2
import io
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from so2docs.dump.compressed import decompress_bzip2, find_numbers
from so2docs.dump.source import Stream

BLOCK = 0x314159265359


def decompress(data: bytes, threads: int = 2, size: int = 1 << 20) -> bytes:
    with Stream(decompress_bzip2(io.BytesIO(data).read, threads)) as reader:
        return b"".join(iter(lambda: reader.read(size), b""))


def looks_like_a_block(size: int) -> bytes:
    """Data whose compressed block contains the number that starts a block.

    The set of bytes in use is stored as bits: 16 bits for groups of 16 byte values that occur,
    then 16 bits for each of these groups.
    """
    maps = {2: 0x5926, 3: 0x5359, 7: 1, 9: 1, 15: 1}
    used = [
        16 * group + bit
        for group, bits in maps.items()
        for bit in range(16)
        if bits >> (15 - bit) & 1
    ]
    assert sum(1 << (15 - group) for group in maps) == 0x3141
    chosen = random.Random(1)
    data = bytearray(used)
    while len(data) < size:
        value = chosen.choice(used)
        if value != data[-1]:
            data.append(value)
    return bytes(data)


@given(st.binary(max_size=3000), st.integers(1, 9), st.integers(1, 1000))
@settings(max_examples=50)
def test_round_trip(data: bytes, level: int, size: int) -> None:
    assert decompress(bz2.compress(data, level), size=size) == data


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("level", [1, 9])
def test_many_blocks_in_several_streams(threads: int, level: int) -> None:
    data = [random.Random(seed).randbytes(350_000) + bytes(3_000_000) for seed in range(3)]
    packed = b"".join(bz2.compress(part, level) for part in data)
    assert decompress(packed + b"what follows is passed over", threads) == b"".join(data)


@pytest.mark.parametrize("size", [5_000, 250_000])
def test_number_of_a_block_within_a_block(size: int) -> None:
    data = looks_like_a_block(size)
    packed = bz2.compress(data, 1)
    blocks = -(-size // 99_981)
    assert len([number for _, number in find_numbers(packed) if number == BLOCK]) == 2 * blocks
    assert decompress(packed) == data


def test_wrong_order_of_blocks_is_noticed() -> None:
    halves = [bytes(range(256)) * 200, b"-" * 51_200]
    first, second = (bz2.compress(half) for half in halves)
    with pytest.raises((OSError, EOFError)):
        decompress(first[:-1] + second[4:])


def test_every_cut_is_noticed() -> None:
    packed = bz2.compress(random.Random(2).randbytes(300), 1)
    for size in range(4, len(packed)):
        with pytest.raises(EOFError):
            decompress(packed[:size])


def test_every_flipped_bit_is_noticed() -> None:
    packed = bz2.compress(b"posts " * 100, 1)
    for bit in range(8 * 4, 8 * len(packed)):
        damaged = bytearray(packed)
        damaged[bit // 8] ^= 1 << (bit % 8)
        try:
            decompressed = decompress(bytes(damaged))
        except (OSError, EOFError):
            continue
        # Some bits mean nothing: those after the end, and one that is for larger blocks.
        assert decompressed == b"posts " * 100
