"""The pages of several sites together: which there are, and a search over all of them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import orjson
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from so2docs.serve.pages import Pages, Values, choice, page_number, plain, wants_json
from so2docs.serve.query import Query, parse
from so2docs.serve.store import PAGE, SEARCH_SORTS, Hit, ResultPage

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
        if wants_json(request):
            return Response(orjson.dumps(data), media_type="application/json")
        common = {"q": "", "base": "", "site": None, "several": True, "path": request.url.path}
        page = self._environment.get_template(template).render(common | values)
        return HTMLResponse(page, headers={"vary": "accept"})

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
