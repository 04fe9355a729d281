"""Files on web servers, read in ranges with urllib3.

Format of ranges: RFC 9110, section 14.
"""

from __future__ import annotations

import re
import time
import zlib
from base64 import b64encode
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple, NoReturn
from urllib.parse import unquote, urljoin

from so2docs import __version__
from so2docs.errors import ChangedDumpError, DumpNotFoundError, advise_extra
from so2docs.extensions.remote.remote_file import RemoteFile
from so2docs.plugin import DumpError, OptionError, log, without_secrets

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

_HEAD_BYTES = 4096
_PART_BYTES = 64 * 1024
_SECONDS_TO_CONNECT, _SECONDS_TO_READ = 15, 60
_TRIES, _TRIES_OF_REDIRECTS = 5, 3
_LONGEST_WAIT = 300
"""Seconds to wait at most because a server asks for it."""

_PASSING = (408, 429, 500, 502, 503, 504)
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18})")
# A proxy may join repeated headers (RFC 9110, section 8.6).
_CONTENT_LENGTH = re.compile(r"(\d{1,18})(?:, *\1)*")

backoff_seconds = 1.0
"""Seconds to wait before the third attempt of a request; doubled before each later attempt."""


def open_http(url: str) -> RemoteFile:
    """Open a file on a web server, and fetch its first 4 KiB.

    Raises:
        OptionError: urllib3 is not installed.
        DumpNotFoundError: The server does not have the file.
        DumpError: The server cannot be reached, refuses access, or does not support range requests.
    """
    server = _Server(url)
    try:
        head = server.fetch(0, _HEAD_BYTES)
    except BaseException:
        server.close()
        raise
    state = server.state
    assert state is not None
    version = f"{state.etag}|{state.modified}"
    mark = 0 if version == "|" else zlib.crc32(version.encode())
    return RemoteFile(server.fetch, state.size, head, close=server.close, identity=mark)


class _State(NamedTuple):
    size: int
    etag: str
    modified: str


class _FailedRequestError(Exception):
    """A request failed, but may succeed if it is repeated.

    Attributes:
        error: The error for the user if no attempt succeeds.
        wait: Seconds to wait before the next attempt, as the server asks; 0 if it does not.
    """

    def __init__(self, error: DumpError, wait: float = 0) -> None:
        super().__init__(error)
        self.error, self.wait = error, wait


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
                f"{advise_extra('http')}, or download the file first"
            ) from None
        self._url, self._errors = url, urllib3.exceptions
        self._headers = {"User-Agent": f"so2docs/{__version__}", "Accept-Encoding": "identity"}
        # urllib3 follows redirects, and sends the password to no other host; `fetch` tries again.
        self._retries = urllib3.Retry(None, connect=0, read=0, status=0, other=0, redirect=10)
        self._redirects: list[str] = []
        self.state: _State | None = None
        try:
            parts = urllib3.util.parse_url(url)
            self._host, self._address = parts.host or "", parts._replace(auth=None).url
            if parts.auth is not None:
                user, _, password = unquote(parts.auth).partition(":")
                credentials = b64encode(f"{user}:{password}".encode()).decode()
                self._headers["Authorization"] = f"Basic {credentials}"
        except self._errors.LocationValueError:
            raise DumpError(
                url, "is not a valid URL", advice="write / ? # @ in a password as %2F %3F %23 %40"
            ) from None
        self._pool = _pool(parts.scheme or "", self._host)

    def fetch(self, start: int, stop: int) -> bytes:
        """Fetch a range of bytes; fewer at the end of the file.

        A failed request is repeated after a growing wait, to continue after the last byte received.
        """
        data, failures = bytearray(), 0
        self._redirects.clear()
        while start + len(data) < stop:
            try:
                stop = self._receive(data, start + len(data), stop)
            except _FailedRequestError as failure:
                failures += 1
                if failures == _TRIES:
                    raise failure.error from None
                pause = backoff_seconds * 2 ** (failures - 2) if failures > 1 else 0
                if failure.wait > pause:
                    log.warning(f"{self._url}: {self._host} asks to wait {failure.wait:.0f} s")
                time.sleep(max(pause, failure.wait))
        return bytes(data)

    def _receive(self, data: bytearray, at: int, stop: int) -> int:
        """Append the bytes from `at` to `stop` to `data`; return `stop`, or the size if smaller.

        Raises:
            DumpError: The server refuses the request, or the file has changed.
            _FailedRequestError: The request may succeed if it is repeated.
        """
        try:
            response = self._pool.request(
                "GET",
                self._address,
                headers=self._headers | {"Range": f"bytes={at}-{stop - 1}"},
                preload_content=False,
                retries=self._retries,
            )
            try:
                stop = min(stop, self._check(response, at, stop))
                end = len(data) + stop - at
                while len(data) < end:
                    part = response.read1(min(_PART_BYTES, end - len(data)), decode_content=False)
                    if not part:
                        raise self._errors.ProtocolError("the connection was closed early")
                    data += part
            finally:
                response.close() if response.status != 206 else response.release_conn()
        except (ValueError, self._errors.HTTPError) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, ValueError | self._errors.ResponseError):
                problem = f"cannot be read: {self._host} redirects endlessly, or to an invalid URL"
                raise DumpError(self._url, problem, advice="check the URL") from None
            if isinstance(reason, self._errors.InvalidHeader):
                problem = f"cannot be read: the answer of {self._host} is invalid ({reason})"
                raise DumpError(self._url, problem, advice="check the URL") from None
            raise _FailedRequestError(self._lost(at, reason)) from None
        return stop

    def _check(self, response: BaseHTTPResponse, at: int, stop: int) -> int:
        """Return the size of the file according to a response.

        Raises:
            DumpError: The server refuses the request, or the file has changed.
            _FailedRequestError: The server, or the one to which it redirects, may have it later.
        """
        status, headers = response.status, response.headers
        if status not in (200, 206, 416):
            self._refuse(response)
        encoding = headers.get("Content-Encoding", "identity")
        if encoding != "identity":
            raise self._no_ranges(
                f"or a proxy compresses its answers (Content-Encoding: {encoding})"
            )
        content_range = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
        length = _CONTENT_LENGTH.fullmatch(headers.get("Content-Length", ""))
        if status == 200 and at == 0 and length and int(length[1]) <= stop:
            size = int(length[1])
        elif status == 416 and content_range is None:
            self._refuse(response)
        elif content_range is None:
            kind = headers.get("Content-Type", "").partition(";")[0]
            raise self._no_ranges(f"sends {kind} without a range" if status == 206 else "")
        elif status == 206 and content_range[1] != str(at):
            raise self._no_ranges(f"sends another range than asked for ({content_range[0]})")
        else:
            size = int(content_range[2])
        self._compare(size, response)
        if status == 416 and at < (size := size or self._whole_size()):
            raise self._no_ranges(f"answers 416, although the file has {size:,} bytes")
        return size

    def _whole_size(self) -> int:
        """Return the size of the file according to the answer to a request without a range."""
        response = self._pool.request(
            "HEAD", self._address, headers=self._headers, retries=self._retries
        )
        length = _CONTENT_LENGTH.fullmatch(response.headers.get("Content-Length", ""))
        return int(length[1]) if response.status == 200 and length else 0

    def _compare(self, size: int, response: BaseHTTPResponse) -> None:
        """Raise `ChangedDumpError` if the file is not the same as in the first response."""
        headers = response.headers
        state = _State(size, headers.get("ETag", ""), headers.get("Last-Modified", ""))
        # The server refuses a range if the file is empty or has shrunk.
        if response.status == 416 and self.state is not None:
            state = self.state._replace(size=size)
        if self.state is None:
            self.state = state
        elif self.state != state:
            change = f"{self.state.size:,} bytes before, {size:,} now"
            if size == self.state.size:
                change = "same size, another ETag or Last-Modified"
            problem = f"changed on the server while being read ({change})"
            advice = "when the upload is complete, run the same command again"
            raise ChangedDumpError(self._url, problem, advice=advice)

    def _no_ranges(self, problem: str = "") -> DumpError:
        problem = problem or "ignores ranges and sends the whole file"
        return DumpError(
            self._url,
            f"cannot be read in parts: {self._host} {problem}",
            advice="download it, then give the file",
        )

    def _refuse(self, response: BaseHTTPResponse) -> NoReturn:
        """Raise the error for a status other than success."""
        status = response.status
        answer = f"{self._host} answers {status} {response.reason or ''}".rstrip()
        if status in _PASSING:
            problem, wait = f"cannot be read: {answer}", _retry_after(response)
            if wait > _LONGEST_WAIT:
                problem += f", and asks to wait {wait / 3600:,.1f} hours"
                raise DumpError(self._url, problem, advice="try again later")
            problem += f", {_TRIES} times in a row"
            raise _FailedRequestError(DumpError(self._url, problem, advice="try again later"), wait)
        locations = [
            step.redirect_location or ""
            for step in (response.retries.history if response.retries else ())
        ]
        if locations:
            # Redirects lead to one of several mirrors, and not all of them may have the file.
            self._redirects.append(without_secrets(reduce(urljoin, locations, self._address)))
            targets = " and ".join(dict.fromkeys(self._redirects))
            answer += f" after a redirect to {targets}, {len(self._redirects)} times in a row"
        problem, advice = f"cannot be read: {answer}", "check the URL"
        kind = DumpError
        if status in (404, 410):
            kind, problem = DumpNotFoundError, f"does not exist: {answer}"
            advice = "check the URL in a browser; file names differ between releases"
        elif status == 407:
            advice = "the proxy needs a login: write http://user:password@host into its variable"
        elif status in (401, 403):
            problem = f"may not be read: {answer}"
            advice = "check in a browser whether it needs a login; then download it there"
        error = kind(self._url, problem, advice=advice)
        if status in (403, 404) and 0 < len(self._redirects) < _TRIES_OF_REDIRECTS:
            raise _FailedRequestError(error)
        raise error

    def _lost(self, at: int, error: Exception) -> DumpError:
        # Strip the name of the connection, which urllib3 puts before the reason.
        cause = getattr(error, "original_error", error)
        reason = re.sub(r"^<?[^:>]*>?: |^\w+\([^)]*\): ", "", str(cause))
        if isinstance(error, self._errors.ProxyError):
            problem = f"cannot be read: the proxy on the way to {self._host} fails ({reason})"
            return DumpError(self._url, problem, advice="check the variable of the proxy")
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


def _retry_after(response: BaseHTTPResponse) -> float:
    """Return the seconds to wait, from the header `Retry-After`; 0 if it is missing or invalid."""
    text = response.headers.get("Retry-After", "")
    if re.fullmatch(r"\d{1,9}", text):
        return int(text)
    try:
        from email.utils import parsedate_to_datetime

        return max(0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0


def _pool(scheme: str, host: str) -> PoolManager:
    """Make a pool of connections to a server, through the proxy set in the environment, if any."""
    from urllib.request import getproxies, proxy_bypass

    import urllib3

    timeout = urllib3.Timeout(connect=_SECONDS_TO_CONNECT, read=_SECONDS_TO_READ)
    proxy = getproxies().get(scheme)
    if proxy is None or proxy_bypass(host):
        return urllib3.PoolManager(timeout=timeout)
    address = proxy if "://" in proxy else f"http://{proxy}"  # As curl takes it.
    try:
        return urllib3.ProxyManager(address, timeout=timeout)
    except (urllib3.exceptions.ProxySchemeUnknown, urllib3.exceptions.LocationValueError):
        raise OptionError(
            f"{scheme}_proxy is {without_secrets(address)}, but only proxies with http:// or "
            f"https:// are used; change the variable, or unset it for {host} with no_proxy"
        ) from None
