"""Decompression in a thread of its own, while the pieces before are handed on and parsed.

The decompressors give up the interpreter's lock. A bounded queue makes a stream that outruns the
workers wait.
"""

from __future__ import annotations

import queue
import threading

from so2docs.sources.source import BLOCK_BYTES, Reader

_BLOCKS = 8
_PATIENCE = 0.2
_LONGEST_WAIT = 0.5


class ReadAhead:
    """A reader that reads another in a thread, some blocks ahead."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._blocks: queue.Queue[bytes | BaseException] = queue.Queue(_BLOCKS)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._held = b""
        self._ended = False

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end; raises what the other reader raises."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="so2docs-stream", daemon=True)
            self._thread.start()
        if not self._held and not self._ended:
            block = self._blocks.get()
            if isinstance(block, BaseException):
                self._ended = True
                raise block
            self._ended = not block
            self._held = block
        if len(self._held) <= size:
            given, self._held = self._held, b""
            return given
        given, self._held = self._held[:size], self._held[size:]
        return given

    def _run(self) -> None:
        block: bytes | BaseException = b"-"
        while block and not isinstance(block, BaseException):
            try:
                block = self._reader.read(BLOCK_BYTES)
            except BaseException as error:
                block = error
            while not self._stopped.is_set():
                try:
                    self._blocks.put(block, timeout=_PATIENCE)
                    break
                except queue.Full:
                    continue
            if self._stopped.is_set():
                return

    def close(self) -> None:
        """End the thread."""
        self._stopped.set()
        if self._thread is not None:
            # A pipe may keep it waiting for ever; it ends with the process.
            self._thread.join(_LONGEST_WAIT)
