"""Remote files, read in ranges.

A read at a new position fetches only the requested bytes, so samples and lists of members cost
little. Sequential reads fetch ahead, up to 1 MiB at a time. `RemoteFile` implements this for every
store; `open_http` reads ranges of a file on a web server with urllib3.

Format of ranges: RFC 9110, section 14.
"""

from __future__ import annotations

import errno
import io
import re
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from so2docs._version import __version__
from so2docs.errors import ChangedDumpError, DumpError, DumpNotFoundError, OptionError
from so2docs.progress import fetched

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

_MOST_AHEAD = 1024 * 1024
_HEAD_BYTES = 4096
_PART_BYTES = 64 * 1024
_SECONDS_TO_CONNECT, _SECONDS_TO_READ = 15, 60
_TRIES = 5
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")

backoff_seconds = 0.5
"""Seconds to wait before the third attempt of a request; doubled before each later attempt."""


class RemoteFile(io.RawIOBase):
    """A file that is read in ranges; reads return fewer bytes than requested only at the end.

    Attributes:
        end: Offset up to which reads fetch ahead, such as the end of a block of an archive.
    """

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
        self.size = self.end = size
        self.identity = identity
        self._fetch, self._close = fetch, close
        self._held, self._start = head, 0
        self._at = self._ahead = 0

    def readable(self) -> bool:
        """Whether the file can be read."""
        return True

    def seekable(self) -> bool:
        """Whether the file can be read at any position."""
        return True

    def tell(self) -> int:
        """Return the offset of the next read."""
        return self._at

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
        end = self.end if self._at < self.end else self.size
        stop = min(max(self._at + needed, min(self._at + self._ahead, end)), self.size)
        self._held = self._fetch(self._at, stop)
        self._start = self._at

    def close(self) -> None:
        """Close the connection."""
        if not self.closed:
            super().close()
            self._close()


def open_store_file(file: Any) -> RemoteFile:
    """Wrap a file that fsspec opened without a cache."""

    def fetch(start: int, stop: int) -> bytes:
        file.seek(start)
        data: bytes = file.read(stop - start)
        if not data:
            raise EOFError
        return data

    return RemoteFile(fetch, file.seek(0, io.SEEK_END), close=file.close)


def is_http(path: str) -> bool:
    """Whether a path is the URL of a file on a web server."""
    return path.startswith(("http://", "https://"))


def open_http(url: str) -> RemoteFile:
    """Open a file on a web server, and fetch its first 4 KiB.

    Raises:
        OptionError: urllib3 is not installed.
        DumpNotFoundError: The server does not have the file.
        DumpError: The server cannot be reached, refuses access, or does not support range requests.
    """
    server = _Server(url)
    head = server.fetch(0, _HEAD_BYTES)
    state = server.state
    assert state is not None
    mark = zlib.crc32(f"{state.etag}|{state.modified}".encode())
    return RemoteFile(server.fetch, state.size, head, close=server.close, identity=mark)


class _State(NamedTuple):
    size: int
    etag: str
    modified: str


class _Server:
    """A connection that fetches ranges of one file, and checks that the file stays the same.

    Attributes:
        state: Size and version of the file; None before the first response.
    """

    def __init__(self, url: str) -> None:
        try:
            import urllib3
        except ImportError:
            raise OptionError(
                f"{url}: reading a file from a web server needs urllib3: "
                "pip install urllib3, or download the file first"
            ) from None
        self._url, self._host = url, urlsplit(url).hostname
        self._errors = urllib3.exceptions
        self._retries = urllib3.Retry(
            None,
            connect=_TRIES - 1,
            read=_TRIES - 1,
            status=_TRIES - 1,
            other=0,
            redirect=10,
            status_forcelist=(408, 429, 500, 502, 503, 504),
            backoff_factor=backoff_seconds,
            raise_on_status=False,
        )
        self._pool = _pool(url)
        self.state: _State | None = None

    def fetch(self, start: int, stop: int) -> bytes:
        """Fetch a range of bytes; fewer at the end of the file.

        A broken connection is reopened after a growing wait, to continue after the last byte
        received.
        """
        data, retries = bytearray(), self._retries
        try:
            while start + len(data) < stop:
                at = start + len(data)
                response = self._pool.request(
                    "GET",
                    self._url,
                    headers={"Range": f"bytes={at}-{stop - 1}"},
                    preload_content=False,
                    retries=retries,
                )
                try:
                    stop = min(stop, self._check(response, at, stop))
                    if at < stop:
                        self._read(response, data, stop - at)
                except self._errors.HTTPError as error:
                    retries = (response.retries or retries).increment("GET", self._url, error=error)
                    retries.sleep()
                finally:
                    response.close() if response.status != 206 else response.release_conn()
        except self._errors.MaxRetryError as error:
            raise self._lost(start + len(data), error.reason or error) from None
        except self._errors.HTTPError as error:
            raise self._lost(start + len(data), error) from None
        return bytes(data)

    def _read(self, response: BaseHTTPResponse, data: bytearray, size: int) -> None:
        end = len(data) + size
        while len(data) < end:
            part = response.read1(min(_PART_BYTES, end - len(data)), decode_content=False)
            if not part:
                raise self._errors.ProtocolError("the connection was closed early")
            fetched[self._url] += len(part)
            data += part

    def _check(self, response: BaseHTTPResponse, at: int, stop: int) -> int:
        """Return the size of the file, according to the headers of a response.

        Raises:
            DumpError: The server refuses the request, or the file has changed.
        """
        status, headers = response.status, response.headers
        if status not in (200, 206, 416):
            raise self._refusal(status, response.reason or "")
        content_range = _CONTENT_RANGE.match(headers.get("Content-Range", ""))
        is_whole = (
            status == 200 and at == 0 and int(headers.get("Content-Length", stop + 1)) <= stop
        )
        if is_whole:
            size = int(headers["Content-Length"])
        elif content_range is None or (status == 206 and content_range[1] != str(at)):
            raise self._no_ranges() if status != 416 else self._refusal(status, "range refused")
        else:
            size = int(content_range[2])
        etag, modified = headers.get("ETag", ""), headers.get("Last-Modified", "")
        # The server refuses a range if the file is empty or has shrunk.
        state = _State(size, etag, modified)
        if status == 416 and self.state is not None:
            state = state._replace(etag=self.state.etag, modified=self.state.modified)
        if self.state is None:
            self.state = state
        elif self.state != state:
            change = f"{self.state.size:,} bytes before, {size:,} now"
            if size == self.state.size:
                change = "same size, another ETag or Last-Modified"
            problem = f"changed on the server while being read ({change})"
            advice = "when the upload is complete, run the same command again"
            raise ChangedDumpError(self._url, problem, advice=advice)
        return size

    def _no_ranges(self) -> DumpError:
        return DumpError(
            self._url,
            f"cannot be read in parts: {self._host} ignores ranges and sends the whole file",
            advice="download it, then give the file",
        )

    def _refusal(self, status: int, reason: str) -> DumpError:
        answer = f"{self._host} answers {status} {reason}".rstrip()
        if status in (404, 410):
            advice = "check the URL in a browser; file names differ between releases"
            return DumpNotFoundError(self._url, f"does not exist: {answer}", advice=advice)
        if status in (401, 403):
            advice = "check in a browser whether it needs a login; then download it there"
            return DumpError(self._url, f"may not be read: {answer}", advice=advice)
        problem = f"cannot be read: {answer}"
        is_passing = status in self._retries.status_forcelist
        if is_passing:
            problem += f", {_TRIES} times in a row"
        return DumpError(
            self._url, problem, advice="try again later" if is_passing else "check the URL"
        )

    def _lost(self, at: int, error: Exception) -> DumpError:
        # Strip the name of the connection, which urllib3 puts before the reason.
        reason = re.sub(r"^<?[^:>]*>?: |^\w+\([^)]*\): ", "", str(error))
        if self.state is None:
            problem = f"cannot be read: no answer from {self._host} ({reason})"
            return DumpError(self._url, problem, advice="check the URL and your connection")
        return DumpError(
            self._url,
            f"the connection to {self._host} was lost at byte {at:,}, {_TRIES} times in a row"
            + ("" if isinstance(error, self._errors.ProtocolError) else f" ({reason})"),
            advice="check your connection, then run the same command again",
        )

    def close(self) -> None:
        """Close the connection."""
        self._pool.clear()


def _pool(url: str) -> PoolManager:
    """Make a pool of connections to a server, through the proxy set in the environment, if any."""
    from urllib.request import getproxies, proxy_bypass

    import urllib3

    parts = urlsplit(url)
    options: dict[str, Any] = {
        "headers": {"User-Agent": f"so2docs/{__version__}", "Accept-Encoding": "identity"},
        "timeout": urllib3.Timeout(connect=_SECONDS_TO_CONNECT, read=_SECONDS_TO_READ),
    }
    proxy = getproxies().get(parts.scheme)
    if proxy is None or proxy_bypass(parts.hostname or ""):
        return urllib3.PoolManager(**options)
    return urllib3.ProxyManager(proxy, **options)
