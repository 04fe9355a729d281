"""The web application: addresses -> pages or JSON, with headers that let nothing else in."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from so2docs.escape import for_terminal, without_turning
from so2docs.serve.bodies import marked
from so2docs.serve.pages import Pages
from so2docs.serve.rendering import Renderings
from so2docs.serve.store import Store

_STATIC = Path(__file__).parent / "static"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_LOCAL = ["localhost", "127.0.0.1"]


class Headers:
    """Adds the headers of every answer. No page may load anything but from here."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(
        self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]
    ) -> None:
        """As ASGI wants it."""
        state = scope.setdefault("state", {})

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                images = state.get("images", "'self'")
                more = {
                    "content-security-policy": _POLICY.format(images=images),
                    "x-content-type-options": "nosniff",
                    "referrer-policy": "no-referrer",
                    "cross-origin-opener-policy": "same-origin",
                }
                pairs = [(name.encode(), value.encode()) for name, value in more.items()]
                message = {**message, "headers": [*message["headers"], *pairs]}
            await send(message)

        await self.app(scope, receive, send_with_headers)


def application(stores: dict[str, Store], *, local: bool = True) -> Starlette:
    """The application.

    Args:
        stores: The sites, by the first part of their paths. One site alone has none.
        local: Answer only where this machine is asked under its own name, so that no page of
            another site can read this one through a name that leads here.
    """
    environment = _environment()
    renderings = Renderings()
    single = len(stores) == 1
    sites = {("" if single else f"/{slug}"): store for slug, store in stores.items()}
    routes: list[Any] = [
        Mount("/static", StaticFiles(directory=_STATIC), name="static"),
    ]
    for base, store in sites.items():
        pages = Pages(store, base, environment, renderings, several=not single)
        routes += [Mount(base, routes=pages.routes())] if base else pages.routes()
    if not single:
        routes.append(Route("/", _front_of_several(environment, sites)))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        renderings.close()
        for store in stores.values():
            store.close()

    return Starlette(
        routes=routes,
        middleware=[
            Middleware(Headers),
            Middleware(TrustedHostMiddleware, allowed_hosts=_LOCAL if local else ["*"]),
        ],
        exception_handlers={
            HTTPException: _error_page(environment),
            sqlite3.Error: _error_page(environment),
        },
        lifespan=lifespan,
    )


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("so2docs.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "day": _day, "marked": _marked}
    return environment


def _shown(value: object) -> object:
    """What a template shows: no text turns the order of what follows around."""
    return for_terminal(value) if type(value) is str else value


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _day(value: object) -> str:
    return str(value or "")[:10]


def _marked(text: str | None) -> Markup:
    return Markup(marked(without_turning(text or "")))


def _front_of_several(environment: Environment, sites: dict[str, Store]) -> Any:
    def front(request: Request) -> Response:
        listed = [{"base": base, "site": store.site} for base, store in sites.items()]
        page = environment.get_template("sites.html")
        return HTMLResponse(page.render(sites=listed, base="", title="Sites", site=None, q=""))

    return front


def _error_page(environment: Environment) -> Any:
    def handle(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPException):
            status, text = error.status_code, error.detail
        else:
            status, text = 500, f"The database cannot be read: {error}"
        if status in (301, 302, 307, 308):
            return RedirectResponse(error.headers["location"], status)  # type: ignore[attr-defined]
        page = environment.get_template("error.html")
        base = request.scope.get("root_path", "")
        content = page.render(title=text, status=status, base=base, site=None, q="")
        return HTMLResponse(content, status)

    return handle
