"""Making the index of an output that has none: one pass over the file.

`index_cuts` finds the segments; since they are those of the conversion, so is the index, byte for
byte.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import orjson
import zstandard
from isal import isal_zlib

from so2docs.dump.compressed import is_damage
from so2docs.dump.kinds import detect_kind
from so2docs.errors import OutputError, flag
from so2docs.output import seekable
from so2docs.output.compression import (
    GZIP_HEADER,
    LAST_BLOCK,
    SEGMENT_BYTES,
    ZSTD_MAGIC,
    detect_compression,
)
from so2docs.output.index import Builder
from so2docs.progress import bar, log
from so2docs.reader.file_kinds import BLANK, not_read_back
from so2docs.reader.reading import MOST_LINE_BYTES

# The segments of an output that has no index.

_MARK = b"\x00\x00\xff\xff"
_EMPTY_LAST_BLOCK = b"\x01\x00\x00\xff\xff"
_TRAILER = struct.Struct("<II")
_READ_BYTES = 1024 * 1024
_LARGEST_PIECE = 16 * 1024 * 1024
_HEADER_BYTES = 18  # of a zstd frame, at most


class Cut(NamedTuple):
    """A segment of the file: its place, and its bytes before compression."""

    offset: int
    end: int
    raw: bytes


def start_of_segments(file: BinaryIO) -> int:
    """Where the first segment starts, if there is any."""
    file.seek(0)
    return len(GZIP_HEADER) if detect_compression(file.read(2)) == "gzip" else 0


def cuts(name: str, file: BinaryIO, size: int) -> Iterator[Cut]:
    """The segments of an output, in order.

    Args:
        name: Of the output, for messages.
        file: The output, open.
        size: Its bytes.

    Raises:
        OutputError: It is damaged, or is a compressed file that so2docs did not write.
    """
    file.seek(0)
    compression = detect_compression(file.read(2))
    if compression == "gzip":
        yield from _gzip_cuts(name, file, size)
    elif compression == "zstd":
        yield from _zstd_cuts(name, file, size)
    else:
        yield from _plain_cuts(file)


def _plain_cuts(file: BinaryIO) -> Iterator[Cut]:
    """Whole lines, about a megabyte a time."""
    offset = 0
    file.seek(0)
    while lines := file.readlines(SEGMENT_BYTES):
        raw = b"".join(lines)
        yield Cut(offset, offset + len(raw), raw)
        offset += len(raw)


def _gzip_cuts(name: str, file: BinaryIO, size: int) -> Iterator[Cut]:
    """The segments of a gzip output."""
    before: Cut | None = None
    total = 0
    for cut in _find_flushes(name, file, size):
        total = isal_zlib.crc32_combine(total, isal_zlib.crc32(cut.raw), len(cut.raw))
        if before is not None and not cut.raw:
            # Now and then ISA-L flushes twice; the second one still belongs to the segment.
            before = before._replace(end=cut.end)
            continue
        if before is not None:
            yield before
        before = cut
    if before is not None:
        yield before
    _check_trailer(name, file, size, total)


def _find_flushes(name: str, file: BinaryIO, size: int) -> Iterator[Cut]:
    """The bytes between the places where the compressor flushed."""
    file.seek(0)
    if file.read(len(GZIP_HEADER)) != GZIP_HEADER:
        raise _foreign(name)
    offset, searched, buffer = len(GZIP_HEADER), 0, bytearray()
    remaining = size - len(LAST_BLOCK) - _TRAILER.size - offset
    while len(buffer) <= _LARGEST_PIECE:
        at = buffer.find(_MARK, searched)
        if at < 0:
            searched = max(0, len(buffer) - len(_MARK) + 1)
            more = file.read(min(_READ_BYTES, max(0, remaining)))
            if not more:
                break
            buffer += more
            remaining -= len(more)
            continue
        end = at + len(_MARK)
        raw = _inflate(name, bytes(buffer[:end]))
        if raw is None:
            searched = at + 1
            continue
        yield Cut(offset, offset + end, raw)
        offset += end
        searched = 0
        del buffer[:end]
    if len(buffer) > _LARGEST_PIECE and offset == len(GZIP_HEADER):
        raise _foreign(name)
    if buffer or remaining:
        raise _damage_error(name, f"after byte {offset:,}")


def _zstd_cuts(name: str, file: BinaryIO, size: int) -> Iterator[Cut]:
    """The frames of a zstd output, up to the table of them."""
    offset, frames, buffer = 0, 0, b""
    file.seek(0)
    while True:
        buffer += file.read(_READ_BYTES) if len(buffer) < len(ZSTD_MAGIC) else b""
        if seekable.is_table(buffer):
            break
        try:
            raw, rest = _frame(name, file, buffer)
        except Exception as error:
            if not is_damage(error):
                raise
            raise _damage_error(name, f"after byte {offset:,}") from None
        end = file.tell() - len(rest)
        yield Cut(offset, end, raw)
        offset, frames, buffer = end, frames + 1, rest
    if size != offset + seekable.table_bytes(frames):
        raise _damage_error(name, f"after byte {offset:,}")


def _frame(name: str, file: BinaryIO, buffer: bytes) -> tuple[bytes, bytes]:
    """What the next frame holds, and the bytes after it that were read."""
    buffer += file.read(_READ_BYTES) if len(buffer) < _HEADER_BYTES else b""
    # Frames of so2docs say how much is in them.
    if not 0 <= zstandard.frame_content_size(buffer) <= MOST_LINE_BYTES:
        raise _foreign(name)
    frame = zstandard.ZstdDecompressor().decompressobj()
    raw = frame.decompress(buffer)
    while not frame.eof:
        if len(raw) > _LARGEST_PIECE:
            raise _foreign(name)
        if not (more := file.read(_READ_BYTES)):
            raise EOFError
        raw += frame.decompress(more)
    if not raw.endswith(b"\n"):
        raise _foreign(name)
    return raw, frame.unused_data


def _inflate(name: str, data: bytes) -> bytes | None:
    """What a segment holds, which may be nothing; None if the bytes are no whole segment."""
    stream = isal_zlib.decompressobj(-15)
    try:
        raw = stream.decompress(data + _EMPTY_LAST_BLOCK, MOST_LINE_BYTES)
    except Exception as error:
        if not is_damage(error):
            raise
        return None
    if len(raw) >= MOST_LINE_BYTES:
        raise _foreign(name)
    is_whole = stream.eof and not stream.unused_data and raw[-1:] in b"\n"
    return raw if is_whole else None


def _check_trailer(name: str, file: BinaryIO, size: int, crc: int) -> None:
    file.seek(max(0, size - len(LAST_BLOCK) - _TRAILER.size))
    end = file.read()
    if end[: len(LAST_BLOCK)] != LAST_BLOCK or end[2:6] != struct.pack("<I", crc):
        raise _damage_error(name, "at its end")


def _foreign(name: str) -> OutputError:
    return OutputError(
        f"{name}: was not compressed by so2docs, so single documents cannot be looked up; "
        "unpack it (gunzip -k, zstd -d) and open the .jsonl, or read all of it with so2docs.read"
    )


def _damage_error(name: str, where: str) -> OutputError:
    return OutputError(f"{name}: is damaged or cut off {where}; convert the dump again")


NO_ID = f"if {flag('fields')} or {flag('without')} left it out, convert with it"


def build(name: str, file: BinaryIO, reason: str, *, progress: bool = False) -> bytes:
    """Read a whole output and make its index.

    Args:
        name: Of the output, for messages.
        file: The output, open.
        reason: Why it is made, for a message once the file has turned out to be an output.
        progress: Show a progress bar.

    Raises:
        OutputError: It is damaged, is not in ascending order of `Id`, or is a compressed file that
            so2docs did not write.
    """
    size = file.seek(0, os.SEEK_END)
    builder = Builder()
    last_id: int | None = None
    end = start_of_segments(file)
    with bar("indexing", size, shown=progress) as progress_bar:
        for cut in cuts(name, file, size):
            progress_bar.update(cut.end - cut.offset)
            first_id = _id(name, cut.raw, 0, cut.offset)
            if last_id is None:
                log.warning("%s: %s; building an index in one pass over the file", name, reason)
            elif first_id <= last_id:
                raise _not_ascending(name, first_id, last_id)
            last_id = _id(name, cut.raw, cut.raw.rfind(b"\n", 0, -1) + 1, cut.offset)
            if last_id < first_id:
                raise _not_ascending(name, last_id, first_id)
            documents = cut.raw.count(b"\n") + (not cut.raw.endswith(b"\n"))
            crc = isal_zlib.crc32(cut.raw)
            builder.add(first_id, cut.offset, len(cut.raw), documents, crc)
            end = cut.end
    return builder.finish(end, file, size)


def _id(name: str, raw: bytes, start: int, offset: int) -> int:
    """`Id` of the document that starts there."""
    end = raw.find(b"\n", start)
    try:
        question_id = orjson.loads(raw[start : end if end >= 0 else len(raw)])["Id"]
    except (orjson.JSONDecodeError, TypeError, KeyError):
        question_id = None
    if not isinstance(question_id, int):
        raise OutputError(f"{name}: {_problem(raw, offset)}")
    return question_id


def _problem(raw: bytes, offset: int) -> str:
    """Why documents cannot be looked up in a file that starts with such bytes."""
    if (not offset or offset == len(GZIP_HEADER)) and (reading := not_read_back(raw)):
        what, reader = reading
        return f"is {what}, and only JSON lines can be looked up; read it with {reader}"
    kind = None if offset else detect_kind(raw)
    if kind is not None or raw.lstrip(BLANK).startswith(b"<"):
        what = "XML" if kind is None else kind.name
        return f"is {what}, and only outputs can be looked up; give it to so2docs convert first"
    line = raw.partition(b"\n")[0]
    if line.startswith(b"{") and b'"Title":' in line and not line.startswith(b'{"Id":'):
        return f"its documents have no Id; {NO_ID}"
    return (
        f"after byte {offset:,}, a line is not JSON with an Id; only the documents of so2docs can "
        "be looked up"
    )


def _not_ascending(name: str, question_id: int, before: int) -> OutputError:
    return OutputError(
        f"{name}: question {question_id} comes after question {before}; "
        "only documents in ascending Id can be looked up; convert the dump again"
    )
