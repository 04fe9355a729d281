"""A web server with one file, which sends ranges and misbehaves on request."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

_RANGE = re.compile(r"bytes=(\d+)-(\d+)")


class RangeServer(ThreadingHTTPServer):
    """The server.

    Attributes:
        content: Bytes of the file.
        etag: Version of the file; empty to send none.
        raw: Whole responses to send before all others, head and body.
        heads: The headers of each request so far.
        statuses: Statuses of the next responses; the last is repeated, and 206 means the file.
        drops: Number of responses to cut off in the middle.
        whole: Whether ranges are ignored.
        sent: Bytes of content sent so far.
        requests: Number of requests so far.
        change_after: Number of requests after which the file gets another version.
        later: Bytes of this other version, if they differ.
    """

    daemon_threads = True

    def __init__(self, content: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content, self.etag = content, '"1"'
        self.statuses = [206]
        self.raw: list[bytes] = []
        self.heads: list[dict[str, str]] = []
        self.drops = 0
        self.whole = False
        self.sent = self.requests = 0
        self.change_after: int | None = None
        self.later = b""

    def url(self, name: str) -> str:
        """Return the URL of the file under a name."""
        return f"http://127.0.0.1:{self.server_port}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # Without this, each response waits 40 ms.

    def do_GET(self) -> None:
        server = cast(RangeServer, self.server)
        server.requests += 1
        server.heads.append(dict(self.headers))
        if server.raw:
            self.wfile.write(server.raw.pop(0))
            self.close_connection = True
            return
        if server.change_after is not None and server.requests > server.change_after:
            server.etag = server.etag and '"2"'
            server.content = server.later or server.content
        status = server.statuses.pop(0) if len(server.statuses) > 1 else server.statuses[0]
        if status in (301, 302):
            self._head(status, 0, Location="/moved/" + self.path.lstrip("/"))
            return
        if status != 206:
            self._head(status, 0)
            return
        match, size = _RANGE.fullmatch(self.headers.get("Range", "")), len(server.content)
        if match is None or server.whole:
            self._head(200, size)
            self._send(server, server.content)
            return
        start, stop = int(match[1]), min(int(match[2]) + 1, size)
        if start >= size:
            self._head(416, 0, **{"Content-Range": f"bytes */{size}"})
            return
        self._head(206, stop - start, **{"Content-Range": f"bytes {start}-{stop - 1}/{size}"})
        if server.drops:
            server.drops -= 1
            self._send(server, server.content[start : (start + stop) // 2])
            self.close_connection = True
            return
        self._send(server, server.content[start:stop])

    def do_HEAD(self) -> None:
        self.do_GET()

    def _head(self, status: int, length: int, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        if etag := cast(RangeServer, self.server).etag:
            self.send_header("ETag", etag)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, server: RangeServer, data: bytes) -> None:
        try:
            self.wfile.write(data)
            server.sent += len(data)
        except OSError:  # The client closed the connection.
            self.close_connection = True

    def log_message(self, *arguments: object) -> None:
        pass


@contextmanager
def serving(content: bytes) -> Iterator[RangeServer]:
    """Run a server for a file."""
    with RangeServer(content) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
