"""From what the user gave to a dump that the passes can read."""

from __future__ import annotations

import os

from so2docs.dump import identity, open_dump
from so2docs.errors import DumpError
from so2docs.sources.encodings import HEAD_BYTES, Decoded, encoding_of
from so2docs.sources.source import Peekable, Source
from so2docs.stream import AnyDump, StreamDump


def open_source(given: str) -> AnyDump:
    """Find out what a source is, and read the start of the dump in it.

    Raises:
        DumpError: It cannot be read, or there is no dump in it.
    """
    try:
        file = open(given, "rb", buffering=0)  # noqa: SIM115
    except OSError as error:
        raise DumpError(given, f"cannot be read: {error.strerror or error}") from error
    found = Peekable(file)
    encoding = encoding_of(given, found.peek(HEAD_BYTES))
    if encoding is None:
        file.close()
        return open_dump(given)
    status = identity(os.fstat(file.fileno()))
    decoded = Decoded(found, encoding)
    return StreamDump(
        Source(
            given,
            decoded,
            given,
            status,
            file.tell,
            status[0],
            status[0] // 2,
            lambda: decoded.repaired,
            [file.close],
        )
    )
