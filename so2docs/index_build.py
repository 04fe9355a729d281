"""Making the index of an output that has none: one pass over the file.

The pieces of a gzip output are found where the compressor flushed: such a place ends in the bytes
00 00 FF FF, what stands before it inflates on its own into whole lines, and a final block fits
exactly there. The CRC-32 of all pieces joined has to be that at the end of the file, so that no
wrong cut goes unnoticed; and since the cuts are those of the conversion, so is the index, byte for
byte. A stream of another program has no such places: its file has to be unpacked first.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson
from isal import isal_zlib

from so2docs.compression import GZIP_HEADER, LAST_BLOCK, PIECE_BYTES
from so2docs.errors import OutputError
from so2docs.index import HEADER, Builder
from so2docs.progress import Bar, bar

_MARK = b"\x00\x00\xff\xff"
_EMPTY_LAST_BLOCK = b"\x01\x00\x00\xff\xff"
_TRAILER = struct.Struct("<II")
_READ_BYTES = 1024 * 1024
_LARGEST_PIECE = 16 * 1024 * 1024

# Typed as an instance by the stubs of isal.
_INFLATE_ERROR: Any = isal_zlib.error


class _Cut(NamedTuple):
    """A piece of the file: its place, and its bytes before compression."""

    offset: int
    end: int
    raw: bytes


def build(name: str, file: BinaryIO, *, progress: bool = False) -> bytes:
    """Read a whole output and make its index.

    Args:
        name: Of the output, for messages.
        file: The output, open.
        progress: Show a progress bar.

    Raises:
        OutputError: It is damaged, is not in ascending order of `Id`, or is a gzip file that
            so2docs did not write.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    is_gzip = file.read(2) == GZIP_HEADER[:2]
    builder, entries, total = Builder(), bytearray(HEADER), 0
    last_id: int | None = None
    end = len(GZIP_HEADER) if is_gzip else 0
    with bar("indexing", size, shown=progress) as shown:
        cuts = _gzip_cuts(name, file, size, shown) if is_gzip else _plain_cuts(file, shown)
        for cut in cuts:
            first_id = _id(name, cut.raw, 0, cut.offset)
            if last_id is not None and first_id <= last_id:
                raise OutputError(
                    f"{name}: question {first_id} comes after question {last_id}; "
                    "only documents in ascending Id can be looked up"
                )
            last_id = _id(name, cut.raw, cut.raw.rfind(b"\n", 0, -1) + 1, cut.offset)
            documents = cut.raw.count(b"\n") + (not cut.raw.endswith(b"\n"))
            crc = isal_zlib.crc32(cut.raw)
            total = isal_zlib.crc32_combine(total, crc, len(cut.raw))
            entries += builder.add(first_id, cut.offset, len(cut.raw), documents, crc)
            end = cut.end
    if is_gzip:
        _check_trailer(name, file, size, total)
    return bytes(entries) + builder.end(end, file, size)


def _id(name: str, raw: bytes, start: int, offset: int) -> int:
    """`Id` of the document that starts there."""
    end = raw.find(b"\n", start)
    try:
        question_id = orjson.loads(raw[start : end if end >= 0 else len(raw)])["Id"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        question_id = None
    if not isinstance(question_id, int):
        raise OutputError(
            f"{name}: what stands at byte {offset:,} is no JSON line with an Id; "
            "only the documents of so2docs can be looked up"
        )
    return question_id


def _plain_cuts(file: BinaryIO, shown: Bar) -> Iterator[_Cut]:
    """Whole lines, about a megabyte a time."""
    offset = 0
    file.seek(0)
    while lines := file.readlines(PIECE_BYTES):
        raw = b"".join(lines)
        yield _Cut(offset, offset + len(raw), raw)
        offset += len(raw)
        shown.update(len(raw))


def _gzip_cuts(name: str, file: BinaryIO, size: int, shown: Bar) -> Iterator[_Cut]:
    """The pieces of a gzip output."""
    before: _Cut | None = None
    for cut in _flushed(name, file, size):
        shown.update(cut.end - cut.offset)
        if before is not None and not cut.raw:
            # Now and then ISA-L flushes twice; the second one still belongs to the piece.
            before = before._replace(end=cut.end)
            continue
        if before is not None:
            yield before
        before = cut
    if before is not None:
        yield before


def _flushed(name: str, file: BinaryIO, size: int) -> Iterator[_Cut]:
    """What stands between the places where the compressor flushed."""
    file.seek(0)
    if file.read(len(GZIP_HEADER)) != GZIP_HEADER:
        raise _foreign(name)
    offset, searched, held = len(GZIP_HEADER), 0, bytearray()
    left = size - len(LAST_BLOCK) - _TRAILER.size - offset
    while len(held) <= _LARGEST_PIECE:
        at = held.find(_MARK, searched)
        if at < 0:
            searched = max(0, len(held) - len(_MARK) + 1)
            more = file.read(min(_READ_BYTES, max(0, left)))
            if not more:
                break
            held += more
            left -= len(more)
            continue
        end = at + len(_MARK)
        raw = _inflated(bytes(held[:end]))
        if raw is None:
            searched = at + 1
            continue
        yield _Cut(offset, offset + end, raw)
        offset += end
        searched = 0
        del held[:end]
    if len(held) > _LARGEST_PIECE and offset == len(GZIP_HEADER):
        raise _foreign(name)
    if held or left:
        raise _damaged(name, f"after byte {offset:,}")


def _inflated(data: bytes) -> bytes | None:
    """What a piece holds, which may be nothing; None if the bytes are no whole piece."""
    stream = isal_zlib.decompressobj(-15)
    try:
        raw = stream.decompress(data + _EMPTY_LAST_BLOCK)
    except _INFLATE_ERROR:
        return None
    is_whole = stream.eof and not stream.unused_data and raw[-1:] in b"\n"
    return raw if is_whole else None


def _check_trailer(name: str, file: BinaryIO, size: int, crc: int) -> None:
    file.seek(max(0, size - len(LAST_BLOCK) - _TRAILER.size))
    end = file.read()
    if end[: len(LAST_BLOCK)] != LAST_BLOCK or end[2:6] != struct.pack("<I", crc):
        raise _damaged(name, "at its end")


def _foreign(name: str) -> OutputError:
    return OutputError(
        f"{name}: was not compressed by so2docs, so that nothing in it can be reached without "
        "reading all before; unpack it (gunzip -k) and open the .jsonl, or stream it with "
        "so2docs.read"
    )


def _damaged(name: str, where: str) -> OutputError:
    return OutputError(f"{name}: is damaged or cut off {where}; convert the dump again")
