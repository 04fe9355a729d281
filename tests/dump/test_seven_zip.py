from __future__ import annotations

import io
import lzma
import random
import shutil
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import py7zr
import pytest
from support.lzma2_samples import far_matches
from support.packed import (
    mutate_header,
    read_seven_zip,
    seven_zip_of_lzma2,
    seven_zip_with_header,
)
from support.table_sites import SITE, converted

from so2docs.dump import lzma2
from so2docs.dump.seven_zip import SevenZip
from so2docs.errors import ArchiveError, DumpError, TruncatedDumpError

METHODS = [
    py7zr.FILTER_LZMA,
    py7zr.FILTER_LZMA2,
    py7zr.FILTER_BZIP2,
    py7zr.FILTER_COPY,
]
CODE = b"".join(b"\xe8" + number.to_bytes(2, "little") + b"\0\0" for number in range(14_000))
FILES = {"Posts.xml": b"<posts/>", "a/code": CODE, "a/ünï.xml": b"x" * 3}


def write(files: dict[str, bytes], *filters: int, is_plain: bool = False) -> bytes:
    packed = io.BytesIO()
    chain = [{"id": number} for number in filters]
    with py7zr.SevenZipFile(packed, "w", filters=chain) as archive:
        archive.set_encoded_header_mode(not is_plain)
        for name, data in files.items():
            archive.writestr(data, name)
    return packed.getvalue()


def small() -> bytes:
    return write({"Posts.xml": b"<posts/>", "Tags.xml": b"<tags/>"}, py7zr.FILTER_LZMA2)


def small_plain() -> bytes:
    return write(FILES | {"a/code": b"code"}, py7zr.FILTER_COPY, is_plain=True)


def test_reads_methods_of_py7zr() -> None:
    for method in METHODS:
        assert read_seven_zip(write(FILES, method)) == FILES


REFUSED = "is not compressed with LZMA2, LZMA or bzip2 alone; unpack it first, such as with 7z x"


@pytest.mark.parametrize(
    "filters",
    [
        (py7zr.FILTER_X86, py7zr.FILTER_LZMA2),
        (py7zr.FILTER_X86, py7zr.FILTER_BZIP2),
        (py7zr.FILTER_DEFLATE,),
        (py7zr.FILTER_ZSTD,),
    ],
)
def test_filters_and_other_methods_are_refused(filters: tuple[int, ...]) -> None:
    with pytest.raises(ArchiveError, match=REFUSED):
        read_seven_zip(write(FILES, *filters))


@pytest.fixture
def pack(tmp_path: Path) -> Callable[..., bytes]:
    """Return a function that runs 7-Zip in a folder with files."""
    program = shutil.which("7zz") or shutil.which("7z")
    if program is None:
        pytest.skip("7-Zip is not installed")
    folder = tmp_path / "files"
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "a folder").mkdir()
    (folder / "empty").touch()

    def run(*arguments: str, name: str = "x.7z", **options: bytes) -> bytes:
        archive = tmp_path / "x.7z"
        archive.unlink(missing_ok=True)
        command = [program, "a", *arguments, str(archive), *([] if options else ["."])]
        subprocess.run(command, cwd=folder, capture_output=True, check=True, **options)  # type: ignore[call-overload]
        return (tmp_path / name).read_bytes()

    return run


def test_reads_archives_from_7_zip(pack: Callable[..., bytes]) -> None:
    files = FILES | {"empty": b""}
    for arguments in (
        ["-mx=1"],
        ["-m0=LZMA"],
        ["-m0=Copy", "-mhc=off"],
        ["-ms=off"],
    ):
        assert read_seven_zip(pack(*arguments)) == files, arguments
    assert read_seven_zip(pack("-si", input=b"<posts/>")) == {"x": b"<posts/>"}


def test_unsupported_archives_from_7_zip(pack: Callable[..., bytes]) -> None:
    for arguments, problem in (
        (["-m0=PPMd"], REFUSED),
        (["-m0=BCJ2"], REFUSED),
        (["-psecret"], "is encrypted; unpack it first, .* with its password"),
        (["-psecret", "-mhe=on"], "is encrypted"),
    ):
        with pytest.raises(DumpError, match=problem):
            read_seven_zip(pack(*arguments))
    volume = pack("-v1k", name="x.7z.001")
    with pytest.raises(DumpError, match=r"one of several volumes of a 7z archive; join them"):
        SevenZip("x.7z.001", io.BytesIO(volume))


@pytest.mark.parametrize("archive", [small(), small_plain()], ids=["compressed", "plain"])
def test_every_truncation_and_every_changed_byte_is_an_error_or_harmless(archive: bytes) -> None:
    files = read_seven_zip(archive)
    for size in range(len(archive)):
        with pytest.raises(TruncatedDumpError, match="is truncated"):
            read_seven_zip(archive[:size])
    harmless = 0
    for at in range(6, len(archive)):
        for mask in (0xFF, 0x01):
            changed = bytearray(archive)
            changed[at] ^= mask
            try:
                assert read_seven_zip(bytes(changed)) == files
            except DumpError:
                continue
            harmless += 1
    # The minor version, and bits that the decoders ignore; the times in the header decide which.
    assert harmless <= 8


def test_any_header_gives_files_or_an_error() -> None:
    rng = random.Random(7)
    archives = [
        small_plain(),
        write(FILES, py7zr.FILTER_LZMA, is_plain=True),
        write({"x": b"y" * 99}, py7zr.FILTER_LZMA2, is_plain=True),
    ]
    errors = 0
    for number in range(1500):
        try:
            read_seven_zip(mutate_header(rng, archives[number % 3]))
        except DumpError:
            errors += 1
    assert errors > 1000


MOST = b"\xff" * 9
LZMA_CODER = b"\x23\x03\x01\x01\x05\x5d\xff\xff\xff\xff"


def streams(packed: bytes, folder: bytes, sizes: bytes) -> bytes:
    return (
        b"\x06\x00\x01\x09" + packed + b"\x00\x07\x0b\x01\x00" + folder + b"\x0c" + sizes + b"\0\0"
    )


def test_hostile_headers_take_little_memory() -> None:
    blanks = b"\x01\x05\xff" + (1 << 62).to_bytes(8, "little") + b"\0\0"
    bomb = lzma.compress(bytes(1 << 24), lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2}])
    bomb_size = len(bomb).to_bytes(3, "little")
    headers = {
        "files": (b"\x01\x05" + MOST, "files, blocks or methods, more than 100,000"),
        "files without names": (blanks, "more than 100,000"),
        "bytes of names": (b"\x01\x05\x01\x11" + MOST, "ends too early"),
        "streams": (b"\x01\x04\x06\x00" + MOST, "more than 100,000"),
        "blocks": (b"\x01\x04\x06\x00\x00\x00\x07\x0b" + MOST, "more than 100,000"),
        "methods": (b"\x01\x04\x07\x0b\x01\x00\x7f", "127 files, blocks or methods, more than 32"),
        "compressed bytes": (b"\x01\x04" + streams(MOST, b"\x01\x01\x00", b"\x01"), "have more"),
        "settings": (b"\x01\x04\x07\x0b\x01\x00\x01\x21\x21" + MOST, "ends too early"),
        "header": (b"\x17" + streams(b"\x01", b"\x01" + LZMA_CODER, MOST), "sizes of its blocks"),
        "larger header": (
            b"\x17" + streams(b"\x01", b"\x01" + LZMA_CODER, b"\xf0\xff\xff\xff\xff"),
            "list of members of more than 16 MiB",
        ),
        "bomb": (
            b"\x17" + streams(b"\xe0" + bomb_size, b"\x01\x21\x21\x01\x28", b"\xe0\xff\xff\xff"),
            "no list of members",
        ),
        "no settings": (b"\x17" + streams(b"\x01", b"\x01\x03\x03\x01\x01", b"\x01"), "damaged"),
        "no methods": (b"\x01\x04" + streams(b"\x01", b"\x00", b""), REFUSED),
    }
    tracemalloc.start()
    try:
        for name, (header, problem) in headers.items():
            archive = seven_zip_with_header(header, bomb if name == "bomb" else b"xx")
            tracemalloc.reset_peak()
            with pytest.raises(DumpError, match=problem):
                read_seven_zip(archive)
            assert tracemalloc.get_traced_memory()[1] < 64 << 20, name
    finally:
        tracemalloc.stop()


BLOCK = b"\x01\x00\x01\x01\x00\x0c\x02"  # One stored block of two bytes.
PACK = b"\x06\x00\x01\x09\x02"
REPEATED = {
    "members": b"\x01" + b"\x05\x00\x00" * 2,
    "streams": b"\x01\x04" + PACK + b"\x00" + b"\x07\x0b" + BLOCK + b"\x00" + b"\x08\x00" * 2,
    "compressed streams": b"\x01\x04" + PACK + b"\x0a\x00\x00" * 2,
    "sizes": b"\x01\x04" + PACK + b"\x09\x02",
    "checksums of blocks": b"\x01\x04" + PACK + b"\x00\x07\x0b" + BLOCK + b"\x0a\x00\x00" * 2,
}


@pytest.mark.parametrize("name", REPEATED)
def test_a_repeated_property_is_an_error(name: str) -> None:
    """The work for a header must be linear in its size, and some properties take a byte."""
    with pytest.raises(DumpError, match=r"has \d+ where 0 belongs"):
        read_seven_zip(seven_zip_with_header(REPEATED[name], b"xx"))


def test_padding_is_skipped() -> None:
    names = b"\x11\x05\x00x\0\0\0"
    header = b"\x01\x05\x01\x0e\x01\x80\x0f\x01\x80" + b"\x19\x02\0\0" * 9 + names
    assert read_seven_zip(seven_zip_with_header(header + b"\0\0", b"")) == {"x": b""}


@pytest.mark.parametrize(("block_bytes", "jobs"), [(1_000, 1), (7_000, 2)])
def test_a_site_in_blocks(
    block_bytes: int, jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lzma2, "_LEAST_UNPACKED", 1)
    files = {path.name: path.read_bytes() for path in sorted(SITE.glob("*.xml"))}
    files |= {"Badges.xml": b"<badges></badges>", "PostHistory.xml": far_matches(50_000)}
    files = dict(sorted(files.items()))
    archive = seven_zip_of_lzma2(tmp_path / "tea.7z", monkeypatch, files, block_bytes)
    assert converted(archive, tmp_path / "questions.jsonl", ["all"], jobs=jobs) == [
        (SITE / f"questions{name}.jsonl").read_bytes() for name in ("", ".strays")
    ]


def test_members_are_read_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lzma2, "_LEAST_UNPACKED", 1)
    files = {f"{name}.xml": far_matches(20_000) for name in "abcd"}
    archive = seven_zip_of_lzma2(tmp_path / "x.7z", monkeypatch, files, 3_000)
    with open(archive, "rb", buffering=0) as file:
        opened = SevenZip("x.7z", file)
        for number in (0, 2, 3, 1):
            data = b"".join(map(bytes, opened.read(opened.entries[number], 2, None)))
            assert data == files[opened.entries[number].name]
        opened.close()
