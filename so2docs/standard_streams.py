"""The standard streams: some are closed, and a write to a pipe may write only a part."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import BinaryIO, TextIO, cast

from so2docs.errors import OutputError


class _Whole(io.RawIOBase):
    """A file by its descriptor, without a buffer.

    A raw file of Python may write only a part, on a disk that is nearly full and to pipes that do
    not block; the text stream on top of it does not notice (`PYTHONUNBUFFERED`).
    """

    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        size = len(view)
        while view:
            try:
                view = view[os.write(self._number, view) :]
            except BlockingIOError:
                select.select([], [self._number], [])
            except OSError as error:
                error.filename = "standard output"
                raise
        return size


class _Closed(io.TextIOWrapper):
    """A standard stream that was closed before the start: empty, and drops what is printed."""


def is_closed(stream: TextIO | None) -> bool:
    """Whether a standard stream was closed before the start."""
    return stream is None or isinstance(stream, _Closed)


def open_standard_output() -> BinaryIO:
    """Open standard output for bytes; what was printed before comes first.

    Raises:
        OutputError: It is closed, or takes only text, as in notebooks.
    """
    if is_closed(sys.stdout):
        raise OutputError("standard output is closed; name a file instead of -")
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:
        raise OutputError("standard output takes only text here; name a file instead of -")
    try:
        return cast(BinaryIO, _Whole(buffer.fileno()))
    except OSError:  # It is in memory.
        return cast(BinaryIO, buffer)


def prepare_standard_streams() -> None:
    """Let a program print without regard to how it was started.

    Closed streams (`2>&-`, services) become the null device, so that no file gets their number and
    then the messages of a library. Printing to it is no error, but `open_standard_output` is.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name, mode in (("stdin", "rb"), ("stdout", "wb"), ("stderr", "wb")):
        if getattr(sys, name) is None:
            setattr(sys, name, _Closed(open(os.devnull, mode), encoding="utf-8"))  # noqa: SIM115
    for name, stream in (("stdout", sys.stdout), ("stderr", sys.stderr)):
        # The console of Windows takes text, not bytes.
        if not is_closed(stream) and not (os.name == "nt" and stream.isatty()):
            whole = cast(BinaryIO, _Whole(stream.fileno()))
            made = io.TextIOWrapper(whole, stream.encoding, stream.errors, write_through=True)
            setattr(sys, name, made)
