"""The pages of one site: a request -> what to show -> HTML, or the same as JSON."""

from __future__ import annotations

from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from jinja2 import Environment
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from so2docs.domain import rank_by_votes
from so2docs.serve.bodies import Renderer, mentioned
from so2docs.serve.plots import plots
from so2docs.serve.query import parse
from so2docs.serve.rendering import Renderings
from so2docs.serve.store import SORTS, Store
from so2docs.serve.thread import texts, thread

_MOST_PAGES = 500

Values = dict[str, Any]


class Pages:
    """Handles the requests for one site."""

    def __init__(
        self,
        store: Store,
        base: str,
        environment: Environment,
        renderings: Renderings,
        *,
        several: bool,
    ) -> None:
        """Make the pages.

        Args:
            store: Of the site.
            base: What the paths of this site start with.
            environment: Of the templates.
            renderings: What makes HTML of texts.
            several: Whether there are other sites beside it.
        """
        self.store, self.base, self.several = store, base, several
        self._environment = environment
        self._renderings = renderings

    def routes(self) -> list[Route]:
        """The addresses of this site; each list also ends in `.json`."""
        found = []
        lists = {"/questions": self.questions, "/tags": self.tags, "/search": self.search}
        for path, handler in lists.items():
            found += [Route(path, handler), Route(f"{path}.json", handler)]
        return [
            Route("/", self.front),
            Route("/index.json", self.front),
            *found,
            Route("/questions/tagged/{tag}", self.questions),
            Route("/questions/{id:int}.json", partial(self.question, as_json=True)),
            Route("/questions/{id:int}", self.question),
            Route("/questions/{id:int}/{title}", self.question),
            Route("/q/{id:int}", self.post),
            Route("/a/{id:int}", self.post),
        ]

    def _answer(self, request: Request, template: str, shown: Values, data: Values) -> Response:
        """A page, or JSON where that is asked for."""
        if _wants_json(request):
            return Response(orjson.dumps(data), media_type="application/json")
        shown = {"q": "", "base": self.base, "site": self.store.site, **shown}
        shown |= {"several": self.several, "path": request.url.path, "about": self.store.about}
        page = self._environment.get_template(template).render(shown)
        return HTMLResponse(page, headers={"vary": "accept"})

    def front(self, request: Request) -> Response:
        """Counts, plots, and the latest and the best questions."""
        overview = self.store.site.overview
        latest = self.store.questions(sort="newest").rows[:6]
        best = self.store.questions(sort="score").rows[:6]
        shown = {
            "title": self.store.site.title,
            "overview": overview,
            "plots": plots(overview),
            "latest": _with_tags(latest),
            "best": _with_tags(best),
        }
        data = {"overview": overview, "latest": latest, "best": best}
        return self._answer(request, "front.html", shown, data)

    def questions(self, request: Request) -> Response:
        """A list of questions."""
        values = request.query_params
        tag = request.path_params.get("tag") or values.get("tag") or None
        sort = values.get("sort", "newest")
        if sort not in SORTS:
            raise HTTPException(400, f"There is no order {sort!r}; choose of {', '.join(SORTS)}.")
        unanswered = values.get("unanswered", "") not in ("", "0")
        page = _page(request)
        found = self.store.questions(sort=sort, tag=tag, unanswered=unanswered, page=page)
        chosen = {"tag": tag, "sort": sort, "unanswered": "1" if unanswered else None}
        shown = {
            "title": "Unanswered questions" if unanswered else "Questions",
            "rows": _with_tags(found.rows),
            "count": self.store.tag(tag) if tag else None,
            "sorts": list(SORTS),
            **chosen,
            **self._paging("/questions", chosen, page, has_more=found.has_more),
        }
        if tag is not None:
            shown["title"] += f" tagged {tag}"
        data = {"questions": found.rows, "page": page, "more": found.has_more}
        return self._answer(request, "questions.html", shown, data)

    def tags(self, request: Request) -> Response:
        """All tags, or those with some letters."""
        like, page = request.query_params.get("like", "").strip(), _page(request)
        found = self.store.tags(like, page)
        shown = {"title": "Tags", "rows": found.rows, "like": like}
        shown |= self._paging("/tags", {"like": like or None}, page, has_more=found.has_more)
        data = {"tags": found.rows, "page": page, "more": found.has_more}
        return self._answer(request, "tags.html", shown, data)

    def search(self, request: Request) -> Response:
        """Posts that hold words and pass filters."""
        text = request.query_params.get("q", "").strip()[:500]
        query, page = parse(text), _page(request)
        if query.match and self.store.about.search == "none":
            raise HTTPException(
                404, "This database has no full text; make it again with --search all or titles."
            )
        found = None if query.is_empty else self.store.search(query, page)
        rows = [] if found is None else found.rows
        shown = {
            "title": f"Search: {text}" if text else "Search",
            "q": text,
            "query": query,
            "found": found,
            "rows": _with_tags(rows),
            **self._paging("/search", {"q": text}, page, has_more=bool(found and found.has_more)),
        }
        data = {"query": text, "page": page, "problems": query.problems}
        clean = [{k: _unmarked(v) for k, v in row.items() if k != "tags"} for row in rows]
        return self._answer(request, "search.html", shown, data | {"posts": clean})

    def question(self, request: Request, *, as_json: bool = False) -> Response:
        """A question with its answers."""
        question_id = request.path_params["id"]
        document = self.store.document(question_id) if question_id < 1 << 63 else None
        if document is None:
            return self.post(request)
        if as_json or _wants_json(request):
            return Response(orjson.dumps(document), media_type="application/json")
        images = request.query_params.get("images", "") not in ("", "0")
        if images:
            request.state.images = "'self' https: http:"
        accepted = document.get("AcceptedAnswerId")
        document["Answers"] = sorted(
            document.get("Answers", ()), key=lambda answer: _place(answer, accepted)
        )
        wanted = texts(document)
        renderer = Renderer(
            self.store.site.host,
            self.base,
            self.store.questions_of(mentioned(text for _, text in wanted)),
            images,
            tuple(tag for tag in document.get("Tags", ()) if isinstance(tag, str)),
        )
        rendered = dict(zip(wanted, self._renderings.render(renderer, wanted), strict=True))
        shown = thread(document, rendered, self.store.site.host) | {
            "images": images,
            "links": self._links(document),
        }
        return self._answer(request, "question.html", shown, document)

    def _links(self, document: Values) -> list[Values]:
        """Questions that this one is linked with, if they are here."""
        ids = {
            link["RelatedPostId"]: link.get("LinkType", "linked")
            for link in document.get("Links", ())
            if isinstance(link.get("RelatedPostId"), int)
        }
        titles = self.store.titles(list(ids))
        return [
            {"id": post_id, "kind": kind, "title": titles[post_id] or f"Question {post_id}"}
            for post_id, kind in ids.items()
            if post_id in titles
        ]

    def post(self, request: Request) -> Response:
        """Lead to where a post is shown."""
        post_id = request.path_params["id"]
        question_id = self.store.question_of(post_id) if post_id < 1 << 63 else None
        if question_id is None:
            raise HTTPException(404, f"There is no post {post_id} here.")
        end = "" if question_id == post_id else f"#answer-{post_id}"
        return RedirectResponse(f"{self.base}/questions/{question_id}{end}", 302)

    def _paging(self, path: str, chosen: Values, page: int, *, has_more: bool) -> Values:
        def address(number: int) -> str:
            values = {name: value for name, value in chosen.items() if value is not None}
            pairs = urlencode(values | ({"page": number} if number > 1 else {}), quote_via=quote)
            return f"{self.base}{path}" + (f"?{pairs}" if pairs else "")

        return {
            "page": page,
            "previous": address(page - 1) if page > 1 else None,
            "next": address(page + 1) if has_more and page < _MOST_PAGES else None,
        }


def _place(answer: Values, accepted: Any) -> tuple[bool, int, int]:
    score = answer.get("Score")
    rank = rank_by_votes(answer["Id"], score if isinstance(score, int) else 0, accepted)
    return *rank, answer["Id"]


def _wants_json(request: Request) -> bool:
    accepted = request.headers.get("accept", "")
    return request.url.path.endswith(".json") or accepted.startswith("application/json")


def _page(request: Request) -> int:
    text = request.query_params.get("page", "1")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 1
    return min(max(number, 1), _MOST_PAGES)


def _with_tags(rows: list[Values]) -> list[Values]:
    """Rows with their tags as a list, too."""
    return [{**row, "tags": orjson.loads(row["Tags"] or "[]")} for row in rows]


def _unmarked(value: Any) -> Any:
    return value.replace("\x02", "").replace("\x03", "") if isinstance(value, str) else value
