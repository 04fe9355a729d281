"""Serve databases over HTTP, with strict security headers."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import re
import socket
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from so2docs.extensions.serve.pages import Pages, all_sites_routes
from so2docs.extensions.serve.store import Store
from so2docs.plugin import So2docsError, flag, for_terminal

_GRACE_SECONDS = 1
"""Seconds for pending requests to complete after the server is told to stop."""
_STATIC = Path(__file__).parent / "static"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
}
_HOST = re.compile(r"(?:\[([^\[\]]+)\]|([^:\[\]]+))(?::\d*)?")
_LOG = logging.getLogger("so2docs.serve")


def bind(host: str, port: int) -> socket.socket:
    """Open the socket on which the server listens.

    Args:
        host: Host name or IP address to listen on.
        port: Port to listen on; 0 for any free port.

    Raises:
        So2docsError: The address or the port cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Name the protocol, since asyncio otherwise leaves Nagle's algorithm on, which adds 40 ms to
    # every page.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen()  # Listen now, so that early connections wait until the server is ready.
    except OSError as error:
        bound.close()
        raise So2docsError(
            f"{host}:{port}: cannot listen ({error.strerror or error}); choose another "
            f"{flag('port' if error.errno in (errno.EADDRINUSE, errno.EACCES) else 'bind')}"
        ) from error
    return bound


def is_loopback(host: str) -> bool:
    """Whether a host name or IP address is reachable only from this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def is_own_name(host: str) -> bool:
    """Whether the `Host` header of a request is `localhost` or a loopback address.

    Args:
        host: Value of the header, such as `localhost:8765`, `127.0.0.1`, `[::1]:8765`.
    """
    match = _HOST.fullmatch(host)
    return match is not None and is_loopback(match[1] or match[2])


def make_server(app: Guard) -> uvicorn.Server:
    """Make a server for the application; it logs nothing, because the application logs errors."""
    config = uvicorn.Config(
        app,
        http="h11",
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    return uvicorn.Server(config)


class Guard:
    """Middleware that adds the security headers to every response.

    Pages may not load anything from other hosts, except pictures on request. With `local`, requests
    must name this machine as their `Host`, which prevents DNS rebinding.
    """

    def __init__(self, app: Starlette, *, local: bool) -> None:
        self.app, self.local = app, local

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request, as an ASGI application."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        is_begun = False

        async def send_with_headers(message: Any) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                images = state.get("images", "'self'")
                MutableHeaders(scope=message).update(
                    {"content-security-policy": _POLICY.format(images=images), **_HEADERS}
                )
            await send(message)

        async def refuse(status: int, text: str) -> None:
            if not is_begun:
                answer = Response(text, status, media_type="text/plain")
                await answer(scope, receive, send_with_headers)

        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        if self.local and not is_own_name(host):
            await refuse(400, "This host name is not allowed; use localhost or 127.0.0.1.")
            return
        try:
            await self.app(scope, receive, send_with_headers)
        except asyncio.CancelledError:
            # The server stops while the request is pending.
            await refuse(503, "The server is stopping.")
        except Exception as error:
            _LOG.error("%s: %s: %s", for_terminal(scope["path"]), type(error).__name__, error)
            await refuse(500, "The page failed.")


def application(stores: dict[str, Store], *, local: bool) -> Guard:
    """Make the ASGI application that serves the sites.

    Args:
        stores: The sites by name; if there are several, paths begin with the name of the site.
        local: Reject requests whose `Host` is not this machine.
    """
    environment = _environment()
    several = len(stores) > 1
    sites = {
        base: Pages(store, base, environment)
        for base, store in ((f"/{slug}" if several else "", stores[slug]) for slug in stores)
    }
    hosts = {pages.store.about.host: pages for pages in sites.values() if pages.store.about.host}
    for pages in sites.values():
        pages.sites = hosts | pages.sites  # Of itself also if its database names no host.

    routes: list[Any] = [Mount("/static", StaticFiles(directory=_STATIC), name="static")]
    for base, pages in sites.items():
        routes += [Mount(base, routes=pages.routes())] if base else pages.routes()
    if several:
        routes += all_sites_routes(list(sites.values()), environment)

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        for store in stores.values():
            store.close()

    def handle_error(request: Request, error: Exception) -> Response:
        is_http = isinstance(error, HTTPException)
        status, text = _describe_error(error)
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        values = {"title": text, "status": status, "site": None, "base": "", "q": ""}
        pages = sites.get("/" + request.url.path.split("/")[1] if several else "")
        # If the database cannot be read, the page has no navigation.
        if pages is not None and is_http:
            with contextlib.suppress(So2docsError, sqlite3.Error):
                values = pages.common() | {"title": text, "status": status}
        page = environment.get_template("error.html")
        return HTMLResponse(page.render(values), status, headers)

    handled = (HTTPException, sqlite3.Error, So2docsError, Exception)
    handlers: Any = dict.fromkeys(handled, handle_error)
    app = Starlette(routes=routes, exception_handlers=handlers, lifespan=lifespan)
    return Guard(app, local=local)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("so2docs.extensions.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        # Isolate each text, so that its direction does not affect the text after it.
        finalize=lambda value: for_terminal(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": lambda value: f"{value:,}" if isinstance(value, int) else str(value),
        "day": lambda value: Markup('<span class="day">{}</span>').format(
            for_terminal(str(value or "")[:10])
        ),
        # Allow line breaks in host names only after dots.
        "breakable": lambda name: Markup(".<wbr>").join(name.split(".")),
    }
    return environment


def _describe_error(error: Exception) -> tuple[int, str]:
    """Return the HTTP status and the message for an error."""
    if isinstance(error, HTTPException):
        is_plain = error.status_code == 404 and error.detail == "Not Found"
        text = "Page not found." if is_plain else error.detail
        return error.status_code, text
    if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
        return 503, "This request takes too long; narrow it down."
    if isinstance(error, sqlite3.Error | So2docsError):
        return 500, f"The database cannot be read: {error}"
    return 500, "This page could not be made; see the server's output for the reason."
