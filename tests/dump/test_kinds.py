"""Files that are refused are named as what they are; odd files are read or passed over."""

import gzip
import lzma
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command import run_python
from support.dumps import dump_of, question
from support.packed import seven_zip, zipped

import so2docs
from so2docs import zstd

DUMP = dump_of(question(1))


def skippable(data: bytes) -> bytes:
    """Make a frame that decoders skip, as in files of pzstd (RFC 8878, 3.1.2)."""
    return struct.pack("<II", 0x184D2A50, len(data)) + data


def test_zstd_with_skippable_frames(tmp_path: Path) -> None:
    path = tmp_path / "Posts.xml.zst"
    path.write_bytes(skippable(b"1234") * 2 + zstd.compress(DUMP) + skippable(b"end"))
    assert so2docs.convert(path, tmp_path / "q.jsonl", jobs=1).questions == 1


def xz_with_a_dictionary_of_3_gib() -> bytes:
    packed = bytearray(lzma.compress(DUMP))
    header = slice(12, 12 + (packed[12] + 1) * 4 - 4)  # After the header of the stream.
    packed[packed.index(b"\x21\x01", 12) + 2] = 39
    packed[header.stop : header.stop + 4] = struct.pack("<L", zlib.crc32(packed[header]))
    return bytes(packed)


@pytest.mark.parametrize(
    "data",
    [b"\x28\xb5\x2f\xfd\x00\x90\x01\x00\x00", xz_with_a_dictionary_of_3_gib()],
    ids=["zstd-window-of-256-mib", "xz-dictionary"],
)
def test_limits_of_memory_are_not_damage(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "dump"
    path.write_bytes(data)
    with pytest.raises(so2docs.ArchiveError, match=r"needs too much memory.*unpack it first"):
        so2docs.convert(path, tmp_path / "q.jsonl", jobs=1)


def test_files_that_macos_writes_beside_others(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    twin = b"\0\5\x16\7\0\2\0\0Mac OS X        "
    seven_zip(tmp_path / "a" / "tea.7z", {"Posts.xml": DUMP, "Tags.xml": b"<tags></tags>"})
    (tmp_path / "a" / "._tea.7z").write_bytes(twin)
    assert so2docs.convert(tmp_path / "a", tmp_path / "q.jsonl", jobs=1).questions == 1
    assert so2docs.inspect(tmp_path / "a", jobs=1).tables["Tags.xml"].rows == 0
    members = {"__MACOSX/._Posts.xml.gz": twin, "Posts.xml.gz": DUMP, "._Posts.7z": twin}
    zipped(tmp_path / "a.zip", members)
    assert so2docs.convert(tmp_path / "a.zip", tmp_path / "2.jsonl", jobs=1).questions == 1


WITHOUT = """
import sys
sys.modules["{module}"] = None
from so2docs.cli import run
sys.exit(run(["convert", *sys.argv[1:], "-q", "-j", "1"]))
"""


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.7z", lambda path: seven_zip(path, {"Posts.xml": DUMP})),
        ("Posts.xml.xz", lambda path: path.write_bytes(lzma.compress(DUMP))),
    ],
)
def test_a_python_without_lzma(name: str, pack: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / name
    pack(path)
    script = WITHOUT.format(module="_lzma")
    result = run_python("-c", script, path, tmp_path / "q.jsonl", code=None)
    assert "need the module lzma, which this Python was built without" in result.stderr
    assert "Traceback" not in result.stderr
    plain = tmp_path / "Posts.xml.gz"
    plain.write_bytes(gzip.compress(DUMP))
    run_python("-c", script, plain, tmp_path / "q.jsonl")


def test_a_python_without_sqlite(tmp_path: Path) -> None:
    script = WITHOUT.format(module="_sqlite3")
    result = run_python("-c", script, tmp_path / "Posts.xml", tmp_path / "q.jsonl", code=1)
    assert "this needs the module sqlite3, which this Python was built without" in result.stderr
    assert result.stderr.count("\n") == 1
