"""Archives: streams of small blocks, like those of large published ones, and odd headers."""

from __future__ import annotations

import base64
import io
import lzma
import random
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import py7zr
import pytest

from so2docs.dump.layers import Stream
from so2docs.dump.seven_zip import SevenZip
from support.lzma2_samples import FILTERS, pack_lzma2

LZMA2 = [{"id": lzma.FILTER_LZMA2, "preset": 1}]
"""Filters of archives as published; by default, py7zr adds the filter for programs."""
BZIP2 = [{"id": py7zr.FILTER_BZIP2}]


Files = Mapping[str, bytes] | Iterable[Path]
"""Contents by name, or the paths of files."""


def seven_zip(path: Path, files: Files, filters: list[dict[str, Any]] = LZMA2) -> Path:
    """Make an archive with one solid block, in the given order."""
    with py7zr.SevenZipFile(path, "w", filters=filters) as archive:
        for name, data in _contents(files).items():
            archive.writestr(data, name)
    return path


def zipped(path: Path, files: Files, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in _contents(files).items():
            archive.writestr(name, data)
    return path


def _contents(files: Files) -> Mapping[str, bytes]:
    if isinstance(files, Mapping):
        return files
    return {path.name: path.read_bytes() for path in files}


def with_noise(tables: Iterable[Path]) -> dict[str, bytes]:
    """Return the contents of tables with noise before the first row, to make reading them long."""
    rng, contents = random.Random(1), {}
    for name, data in _contents(tables).items():
        head, row, rows = data.partition(b"\n  <row")
        noise = b"<!--" + base64.b64encode(rng.randbytes(300_000)) + b"-->" if row else b""
        contents[name] = head + noise + row + rows
    return contents


class Counting(io.FileIO):
    """A file that counts the bytes read from all files of its name."""

    counts: ClassVar[Counter[str]] = Counter()

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size) or b""
        self.counts[str(self.name)] += len(data)
        return data

    @classmethod
    def assert_read_once(cls, archive: Path) -> None:
        """Assert that samples, the list of members, and each block were read once."""
        assert archive.stat().st_size > 900_000
        assert cls.counts[str(archive)] < archive.stat().st_size + 100_000


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
        return seven_zip(path, files, FILTERS)


def seven_zip_with_header(header: bytes, packed: bytes = b"") -> bytes:
    """Make an archive with right checksums around any header."""
    place = struct.pack("<QQL", len(packed), len(header), zlib.crc32(header))
    start = b"7z\xbc\xaf\x27\x1c\x00\x04" + struct.pack("<L", zlib.crc32(place)) + place
    return start + packed + header


def read_seven_zip(data: bytes) -> dict[str, bytes]:
    """Read all files of an archive; any error but a `DumpError` is a fault."""
    archive = SevenZip("x.7z", io.BytesIO(data))
    return {
        entry.name: read_to_end(Stream(archive.read(entry, 1, None), "x.7z", "a 7z archive"))
        for entry in archive.entries
    }


def read_to_end(stream: Stream) -> bytes:
    return b"".join(iter(lambda: stream.read(1 << 20), b""))


def mutate_header(rng: random.Random, archive: bytes) -> bytes:
    """Change bytes of the header of an archive, which must not be compressed; checksums stay right.

    Bytes are replaced, inserted, left out, or copied from elsewhere.
    """
    offset, size = struct.unpack("<QQ", archive[12:28])
    header = bytearray(archive[32 + offset : 32 + offset + size])
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(header))
        new = rng.choice([rng.randbytes(1), b"\xff" * 9, b"\x00", b"", bytes([header[at] ^ 1])])
        if rng.random() < 0.2:
            new = bytes(header[rng.randrange(len(header)) :][: rng.randint(1, 12)])
        header[at : at + rng.randint(0, 1 + len(new))] = new
    return seven_zip_with_header(bytes(header), archive[32 : 32 + offset])
