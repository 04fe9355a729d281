"""The web application: addresses -> pages or JSON, with headers that let nothing else in.

Where there are several sites, a page lists them, and a search covers all of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from so2docs.errors import So2docsError
from so2docs.escape import for_terminal
from so2docs.serve.pages import Pages, Values, answer, choice, page_number, plain, wants_json
from so2docs.serve.query import Query, parse
from so2docs.serve.rendering import Renderings
from so2docs.serve.store import PAGE, SEARCH_SORTS, Hit, ResultPage, Store

_MOST_PAGES = 25


class Across:
    """Handles the requests for all sites."""

    def __init__(self, sites: list[Pages], environment: Environment) -> None:
        self._sites, self._environment = sites, environment

    def routes(self) -> list[Route]:
        """The addresses."""
        return [
            Route("/", self.front),
            Route("/index.json", self.front),
            Route("/search", self.search),
            Route("/search.json", self.search),
        ]

    def _answer(self, request: Request, template: str, values: Values, data: Any) -> Response:
        common = {"q": "", "base": "", "site": None, "several": True, "path": request.url.path}
        return answer(request, self._environment, template, common | values, data)

    def front(self, request: Request) -> Response:
        """The sites."""
        listed = [(pages.base, pages.store.site) for pages in self._sites]
        sites = [{"base": base, "site": site} for base, site in listed]
        data = [{"path": f"{base}/", "overview": site.overview} for base, site in listed]
        return self._answer(request, "sites.html", {"title": "Sites", "sites": sites}, data)

    def search(self, request: Request) -> Response:
        """Posts of all sites that hold words and pass filters."""
        text = request.query_params.get("q", "").strip()[:500]
        sort = choice(request, "sort", SEARCH_SORTS)
        query, page = parse(text), min(page_number(request), _MOST_PAGES)
        if sort == "relevance" and not query.match:
            sort = "newest"
        results = ResultPage([]) if query.is_empty else self._found(query, sort, page)
        filters = [(part, self._address(text.replace(part, " ", 1))) for part in query.filters]
        values = {
            "title": f"Search: {text}" if text else "Search",
            "q": text,
            "query": query,
            "found": results,
            "sort": sort,
            "sorts": [name for name in SEARCH_SORTS if query.match or name != "relevance"],
            "filters": filters,
            "rows": results.rows,
            "page": page,
            "pages": None,
            "previous": self._address(text, sort, page - 1) if page > 1 else None,
            "next": self._address(text, sort, page + 1) if results.has_more else None,
        }
        names = ("title", "snippet", "tags", "base")
        posts = [{n: v for n, v in row.items() if n not in names} for row in results.rows]
        data = {"query": text, "page": page, "problems": query.problems, "count": results.count}
        return self._answer(request, "search.html", values, data | {"posts": plain(posts)})

    def _found(self, query: Query, sort: str, page: int) -> ResultPage:
        """A page of results: the first ones of each site, put together."""
        merged: list[tuple[Any, Pages, Hit]] = []
        count, is_cut = 0, False
        for pages in self._sites:
            store = pages.store
            if query.match and store.about.search == "none":
                continue
            hits, is_part = store.hits(query, sort)
            count, is_cut = count + len(hits), is_cut or is_part
            first = hits[: PAGE * page]
            # How well a post matches depends on how rare a word is on its site, so that the best
            # of one site says little about those of another: they take turns.
            keys: list[Any] = list(range(len(first)))
            if sort == "newest":
                keys = store.dates(first)
            elif sort == "score":
                keys = [-score for _, _, score in first]
            merged += [(key, pages, hit) for key, hit in zip(keys, first, strict=True)]
        merged.sort(key=lambda entry: entry[0], reverse=sort == "newest")
        rows = []
        for _, pages, hit in merged[PAGE * (page - 1) : PAGE * page]:
            for row in pages.with_titles(pages.store.with_excerpts(query, [hit])):
                rows.append(row | {"base": pages.base, "Site": pages.store.site.title})
        return ResultPage(rows, count, count > PAGE * page and page < _MOST_PAGES, is_cut)

    @staticmethod
    def _address(text: str, sort: str = "", page: int = 1) -> str:
        values: dict[str, str | int] = {"q": " ".join(text.split())}
        values |= {"sort": sort} if sort else {}
        values |= {"page": page} if page > 1 else {}
        return f"/search?{urlencode(values, quote_via=quote)}"


_STATIC = Path(__file__).parent / "static"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_LOG = logging.getLogger("so2docs.serve")

Send = Callable[[Any], Awaitable[None]]


class _PostId(Convertor[int]):
    """The id of a post in an address: one that fits into 63 bits."""

    regex = "[0-9]{1,18}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


class _UserId(_PostId):
    """The id of a user, which may be -1."""

    regex = "-?[0-9]{1,18}"


register_url_convertor("post", _PostId())
register_url_convertor("user", _UserId())


class Guard:
    """Stands before the application: its headers are in every answer, whatever happens behind it.

    No page may load anything but from here, and if `local`, only this machine is answered where it
    is asked under its own name: no page of another site can read this one through a name that leads
    here.
    """

    def __init__(self, app: Starlette, *, local: bool) -> None:
        self.app, self.local = app, local

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        """As ASGI wants it."""
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
                more = {
                    "content-security-policy": _POLICY.format(images=images),
                    "x-content-type-options": "nosniff",
                    "referrer-policy": "no-referrer",
                    "cross-origin-opener-policy": "same-origin",
                }
                pairs = [(name.encode(), value.encode()) for name, value in more.items()]
                message = {**message, "headers": [*message["headers"], *pairs]}
            await send(message)

        if self.local and not is_own_name(
            dict(scope["headers"]).get(b"host", b"").decode("latin-1")
        ):
            answer = Response("Asked under a foreign name.", 400, media_type="text/plain")
            await answer(scope, receive, send_with_headers)
            return
        try:
            await self.app(scope, receive, send_with_headers)
        except asyncio.CancelledError:
            # The server ends, and somebody was still waiting.
            if not is_begun:
                answer = Response("The server ends.", 503, media_type="text/plain")
                await answer(scope, receive, send_with_headers)
        except Exception as error:
            _LOG.error("%s: %s: %s", for_terminal(scope["path"]), type(error).__name__, error)
            if not is_begun:
                answer = Response("That did not work.", 500, media_type="text/plain")
                await answer(scope, receive, send_with_headers)


def is_own_name(host: str) -> bool:
    """Whether the `Host` of a request is this machine's name for itself, with a port or without.

    Args:
        host: Such as `localhost:8765`, `127.0.0.1`, `[::1]:8765`.
    """
    name, _, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    if not name and port:
        name = port
    elif port and not port.isdigit():
        name = host
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    if name.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def application(stores: dict[str, Store], *, local: bool = True) -> Guard:
    """The application.

    Args:
        stores: The sites, by the first part of their paths. One site alone has none.
        local: Answer only where this machine is asked under its own name.
    """
    environment = _environment()
    renderings = Renderings()
    single = len(stores) == 1
    sites = {
        base: Pages(store, base, environment, renderings, several=not single)
        for slug, store in stores.items()
        for base in ["" if single else f"/{slug}"]
    }
    routes: list[Any] = [
        Mount("/static", StaticFiles(directory=_STATIC), name="static"),
    ]
    for base, pages in sites.items():
        routes += [Mount(base, routes=pages.routes())] if base else pages.routes()
    if not single:
        routes += Across(list(sites.values()), environment).routes()

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        renderings.close()
        for store in stores.values():
            store.close()

    handle = _error_page(environment, sites)
    app = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: handle,
            sqlite3.Error: handle,
            So2docsError: handle,
            Exception: handle,
        },
        lifespan=lifespan,
    )
    return Guard(app, local=local)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("so2docs.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _number, "day": _day, "breakable": _breakable}
    environment.filters["day_of_file"] = _day_of_file
    return environment


def _finalize(value: object) -> object:
    """Finalize a value in a template: no text changes the direction of the text after it."""
    return for_terminal(value) if type(value) is str else value


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _day(value: object) -> str:
    return str(value or "")[:10]


def _day_of_file(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).date().isoformat()


def _breakable(name: str) -> Markup:
    """A host name that may be broken after its dots, and nowhere else."""
    return Markup("<wbr>").join(
        Markup.escape(part + "." * (n < name.count("."))) for n, part in enumerate(name.split("."))
    )


def _error_page(environment: Environment, sites: dict[str, Pages]) -> Any:
    def handle(request: Request, error: Exception) -> Response:
        status, text = _describe_error(error)
        if isinstance(error, HTTPException) and status in (301, 302, 307, 308):
            return RedirectResponse((error.headers or {})["location"], status)
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        if wants_json(request):
            content = orjson.dumps({"status": status, "error": text})
            return Response(content, status, headers, media_type="application/json")
        values = {"title": text, "status": status, "site": None, "base": "", "q": ""}
        pages = sites.get("" if "" in sites else "/" + request.url.path.split("/")[1])
        # The page of a database that is broken has no navigation to go on with.
        if pages is not None and isinstance(error, HTTPException):
            with contextlib.suppress(So2docsError, sqlite3.Error):
                values = pages.common(request) | {"title": text, "status": status}
        page = environment.get_template("error.html")
        return HTMLResponse(page.render(values), status, headers)

    return handle


def _describe_error(error: Exception) -> tuple[int, str]:
    """Status and text of an error."""
    if isinstance(error, HTTPException):
        is_plain = error.status_code == 404 and error.detail == "Not Found"
        text = "There is nothing at this address." if is_plain else error.detail
        return error.status_code, text
    if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
        return 503, "That takes too long; ask for less."
    if isinstance(error, sqlite3.Error | So2docsError):
        return 500, f"The database cannot be read: {error}"
    return 500, "This page cannot be made; what the server says tells why."
