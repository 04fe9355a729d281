"""Streams of small blocks, like those of large published archives."""

from __future__ import annotations

import bz2
import lzma
from pathlib import Path
from typing import Any

import py7zr
import pytest
from py7zr import compressor

DICTIONARY = 1 << 16
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 1, "dict_size": DICTIONARY}]


def pack_lzma2(parts: list[bytes]) -> bytes:
    """Make a stream like those of 7-Zip with several threads: each part resets the dictionary."""
    streams = [lzma.compress(part, lzma.FORMAT_RAW, filters=FILTERS) for part in parts]
    return b"".join(stream[:-1] for stream in streams) + b"\0"


def seven_zip_of_lzma2(
    path: Path, patch: pytest.MonkeyPatch, files: dict[str, bytes], block_bytes: int
) -> Path:
    """Make a solid archive of LZMA2 in blocks."""

    class InBlocks:
        def __init__(self) -> None:
            self._data = b""

        def compress(self, data: bytes) -> bytes:
            self._data += data
            return b""

        def flush(self) -> bytes:
            starts = range(0, len(self._data), block_bytes)
            return pack_lzma2([self._data[start : start + block_bytes] for start in starts])

    original = lzma.LZMACompressor

    def new(*settings: Any, **of_content: Any) -> Any:
        return InBlocks() if of_content else original(*settings)

    with patch.context() as patched:
        patched.setattr(lzma, "LZMACompressor", new)
        return _write(path, files, FILTERS)


def seven_zip_of_bzip2(path: Path, patch: pytest.MonkeyPatch, files: dict[str, bytes]) -> Path:
    """Make a solid archive of bzip2 in blocks of 100 kB."""
    coders = lambda: bz2.BZ2Compressor(1), bz2.BZ2Decompressor
    with patch.context() as patched:
        patched.setitem(compressor.algorithm_class_map, py7zr.FILTER_BZIP2, coders)
        return _write(path, files, [{"id": py7zr.FILTER_BZIP2}])


def _write(path: Path, files: dict[str, bytes], filters: list[dict[str, Any]]) -> Path:
    with py7zr.SevenZipFile(path, "w", filters=filters) as archive:
        for name, data in files.items():
            archive.writestr(data, name)
    return path
