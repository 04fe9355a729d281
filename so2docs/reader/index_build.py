"""Making the index of an output that has none: one pass over the file.

`index_cuts` finds the segments; since they are those of the conversion, so is the index, byte for
byte.
"""

from __future__ import annotations

import os
from typing import BinaryIO

import orjson
from isal import isal_zlib

from so2docs.dump.kinds import detect_kind
from so2docs.errors import OutputError, flag
from so2docs.output.compression import GZIP_HEADER
from so2docs.output.index import Builder
from so2docs.progress import bar, log
from so2docs.reader.file_kinds import BLANK, not_read_back
from so2docs.reader.index_cuts import cuts, start_of_segments

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
    with bar("indexing", size, shown=progress) as shown:
        for cut in cuts(name, file, size):
            shown.update(cut.end - cut.offset)
            first_id = _id(name, cut.raw, 0, cut.offset)
            if last_id is None:
                log.warning("%s: %s; making one takes one pass over the file", name, reason)
            elif first_id <= last_id:
                raise OutputError(
                    f"{name}: question {first_id} comes after question {last_id}; "
                    "only documents in ascending Id can be looked up"
                )
            last_id = _id(name, cut.raw, cut.raw.rfind(b"\n", 0, -1) + 1, cut.offset)
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
    if (not offset or offset == len(GZIP_HEADER)) and (found := not_read_back(raw)):
        what, reader = found
        return f"is {what}, and only JSON lines can be looked up; read it with {reader}"
    kind = None if offset else detect_kind(raw)
    if kind is not None or raw.lstrip(BLANK).startswith(b"<"):
        what = "XML" if kind is None else kind.name
        return f"is {what}, and only outputs can be looked up; give it to so2docs convert first"
    line = raw.partition(b"\n")[0]
    if line.startswith(b"{") and b'"Title":' in line and not line.startswith(b'{"Id":'):
        return f"its documents have no Id; {NO_ID}"
    return (
        f"at byte {offset:,} is no JSON line with an Id; only the documents of so2docs can be "
        "looked up"
    )
