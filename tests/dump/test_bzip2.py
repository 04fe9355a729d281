"""bzip2 block by block, compared with the standard library."""

import bz2
import io
import random
import re
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bzip2_samples import BLOCK, ROWS, find_numbers, samples

from so2docs.dump.bzip2 import _Decoder, _Input, decompress_bzip2
from so2docs.dump.layers import Stream
from so2docs.parse import core


@pytest.fixture(autouse=True, params=["python", "compiled"])
def decoder(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every test runs with libbz2 and with the compiled core."""
    if request.param == "compiled" and core.built() == "python":
        pytest.skip("no compiled core")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(core.VARIABLE, request.param)
        yield request.param


@pytest.fixture
def compiled_only(decoder: str) -> None:
    if decoder == "python":
        pytest.skip("compares the compiled core with libbz2")


def decompress(data: bytes, threads: int = 2, size: int = 1 << 20) -> bytes:
    with closing(Stream(decompress_bzip2(io.BytesIO(data).read, threads))) as reader:
        return b"".join(iter(lambda: reader.read(size), b""))


def judge(data: bytes) -> tuple[bytes, str]:
    """Return the decompressed bytes of whole blocks, and the error."""
    parts = []
    try:
        for part in decompress_bzip2(io.BytesIO(data).read, 1):
            parts.append(part)
    except (EOFError, OSError) as error:
        return b"".join(parts), "cut off" if isinstance(error, EOFError) else "damaged"
    return b"".join(parts), ""


def judge_by_library(data: bytes) -> tuple[bytes, str]:
    """Do the same by libbz2, for one or more streams."""
    parts: list[bytes] = []
    try:
        while (data and not parts) or re.match(b"BZh[1-9]", data):
            stream = bz2.BZ2Decompressor()
            parts.append(stream.decompress(data))
            while not stream.eof and (part := stream.decompress(b"")):
                parts.append(part)
            if not stream.eof:
                return b"".join(parts), "cut off"
            data = stream.unused_data
    except OSError:
        return b"".join(parts), "damaged"
    return b"".join(parts), ""


def check_judgement(data: bytes) -> None:
    decompressed, problem = judge(data)
    expected, expected_problem = judge_by_library(data)
    assert problem == expected_problem, data.hex()
    assert problem or decompressed == expected, data.hex()


def looks_like_a_block(size: int) -> bytes:
    """Make data whose compressed block contains the number that starts a block.

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


@pytest.mark.parametrize(
    "level", [1, *(pytest.param(level, marks=pytest.mark.long) for level in (5, 9))]
)
def test_levels(level: int) -> None:
    for name, data in samples(110_000 * level).items():
        assert decompress(bz2.compress(data, level)) == data, name


@pytest.mark.usefixtures("compiled_only")
def test_a_block_at_every_bit() -> None:
    packed = bz2.compress(ROWS[:5_000])
    for shift in range(64):
        count = shift + 8 * len(packed)
        shifted = (int.from_bytes(packed, "big") << (-count % 8)).to_bytes(-(-count // 8), "big")
        assert core.compiled.find_bzip2(shifted, 0) == 32 + shift
        block = _Decoder().decode(shifted, 32 + shift, 9)
        assert block is not None
        assert b"".join([block.start, *block.parts]) == ROWS[:5_000]
        assert core.compiled.find_bzip2(shifted, 33 + shift) == block.end


@pytest.mark.usefixtures("compiled_only")
def test_the_first_block_is_found_after_a_short_read() -> None:
    packed = bz2.compress(ROWS[:5_000])
    parts = [packed[4:], packed[:4]]
    data = _Input(lambda size: parts.pop())
    assert (data.read_header(), data.extend(), data.numbers[0]) == (9, True, 32)


@pytest.mark.parametrize(("threads", "level"), [(1, 9), (5, 1)])
def test_many_blocks_in_several_streams(threads: int, level: int) -> None:
    data = [random.Random(seed).randbytes(250_000) + bytes(1_500_000) for seed in range(3)]
    packed = b"".join(bz2.compress(part, level) for part in data)
    assert decompress(packed + b"what follows is passed over", threads) == b"".join(data)


def test_streams_of_several_levels() -> None:
    data = {level: random.Random(level).randbytes(250_000) for level in (1, 9, 2)}
    packed = b"".join(bz2.compress(part, level) for level, part in data.items())
    assert decompress(packed, 3) == b"".join(data.values())


def test_a_block_too_large_for_its_level() -> None:
    packed = bytearray(bz2.compress(random.Random(3).randbytes(150_000), 2))
    packed[3:4] = b"1"
    check_judgement(bytes(packed))


def test_parts_of_a_bomb_are_bounded() -> None:
    packed = bz2.compress(bytes(5_000_000))
    sizes = [len(part) for part in decompress_bzip2(io.BytesIO(packed).read, 2)]
    assert sum(sizes) == 5_000_000
    assert max(sizes) <= 1 << 20


def test_randomized_blocks_are_refused(decoder: str) -> None:
    packed = bytearray(bz2.compress(ROWS[:3_000]))
    packed[14] |= 0x80
    with pytest.raises(OSError, match="randomized" if decoder == "compiled" else "Invalid data"):
        decompress(bytes(packed))


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


@pytest.mark.usefixtures("compiled_only")
def test_every_cut_is_judged_like_libbz2() -> None:
    packed = bz2.compress(random.Random(2).randbytes(300), 1) + bz2.compress(ROWS[:2_000])
    for size in range(len(packed)):
        check_judgement(packed[:size])


@pytest.mark.usefixtures("compiled_only")
def test_every_flipped_bit_is_judged_like_libbz2() -> None:
    packed = bz2.compress(b"posts " * 100, 1)
    randomized = 8 * (4 + 6 + 4) + 7  # Such blocks are refused.
    for bit in (bit for bit in range(8 * len(packed)) if bit != randomized):
        damaged = bytearray(packed)
        damaged[bit // 8] ^= 1 << (bit % 8)
        check_judgement(bytes(damaged))
        check_judgement(bytes(damaged[: len(packed) - bit % 16]))


@pytest.mark.usefixtures("compiled_only")
@given(st.data())
@settings(max_examples=150)
def test_damaged_streams_are_judged_like_libbz2(data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([5, 60, 300, 2_000]))
    original = data.draw(st.sampled_from([*samples(size).values()]))
    packed = bytearray(bz2.compress(original, data.draw(st.integers(1, 9))))
    for bit in data.draw(st.lists(st.integers(32, 8 * len(packed) - 1), max_size=5)):
        packed[bit // 8] ^= 1 << (bit % 8)
    cut = data.draw(st.integers(4, len(packed)))
    check_judgement(bytes(packed[:cut]) + data.draw(st.binary(max_size=50)))


@pytest.mark.usefixtures("compiled_only")
def test_blocks_before_damage_are_handed_on() -> None:
    packed = bytearray(bz2.compress(ROWS[:500_000], 1))
    third = sorted(at for at, number in find_numbers(packed) if number == BLOCK)[2]
    packed[third // 8 + 12] ^= 255
    decompressed, problem = judge(bytes(packed))
    assert problem == "damaged"
    assert 199_000 < len(decompressed) < 201_000
    assert ROWS.startswith(decompressed)
    assert judge(bytes(packed[: third // 8 + 1_000]))[0] == decompressed
