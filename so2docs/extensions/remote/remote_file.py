"""A remote file, read in ranges.

A read at a new position fetches only the requested bytes, so samples and lists of members cost
little. Sequential reads fetch ahead, up to 1 MiB at a time.
"""

from __future__ import annotations

import errno
import io
from collections.abc import Callable
from typing import Any

_MOST_AHEAD = 1024 * 1024


class RemoteFile(io.RawIOBase):
    """A file that is read in ranges; reads return fewer bytes than requested only at the end."""

    def __init__(
        self,
        fetch: Callable[[int, int], bytes],
        size: int,
        head: bytes = b"",
        *,
        close: Callable[[], object],
        identity: int = 0,
    ) -> None:
        super().__init__()
        self.size, self.identity = size, identity
        self._fetch, self._close = fetch, close
        self._held, self._start = head, 0
        self._at = self._ahead = 0

    def readable(self) -> bool:
        """Whether the file can be read."""
        return True

    def seekable(self) -> bool:
        """Whether the file can be read at any position."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Set the offset of the next read."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, "negative seek position")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer, up to the end of the file; return the number of bytes read."""
        view, count = memoryview(buffer).cast("B"), 0
        while count < len(view) and self._at < self.size:
            index = self._at - self._start
            if not 0 <= index < len(self._held):
                self._hold(len(view) - count)
                index = 0
            part = self._held[index : index + len(view) - count]
            view[count : count + len(part)] = part
            count += len(part)
            self._at += len(part)
        return count

    def _hold(self, needed: int) -> None:
        """Fetch the bytes needed, and read ahead if the file is read sequentially."""
        is_in_order = self._at == self._start + len(self._held)
        self._ahead = min(_MOST_AHEAD, 2 * max(self._ahead, needed)) if is_in_order else 0
        stop = min(self._at + max(needed, self._ahead), self.size)
        self._held = self._fetch(self._at, stop)
        self._start = self._at

    def close(self) -> None:
        """Close the connection."""
        if not self.closed:
            super().close()
            self._close()
