"""Answer requests for the pages of one or more sites."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from jinja2 import Environment
from markupsafe import Markup
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from so2docs.extensions.formulas import without_cut_formula
from so2docs.extensions.serve import thread
from so2docs.extensions.serve.bodies import Renderer
from so2docs.extensions.serve.links import Link
from so2docs.extensions.serve.query import Query, parse
from so2docs.extensions.serve.store import (
    ANSWER_SORTS,
    ANSWERS_PAGE,
    LIST_SORTS,
    PAGE,
    SEARCH_SORTS,
    TAGS_PAGE,
    USER_SORTS,
    USERS_PAGE,
    Store,
    search,
)
from so2docs.extensions.site_facts import LICENSES

_TAGS = 12
MOST_PAGES = 500
_MOST_PAGES_OF_ALL_SITES = 25
_ON_FRONT = 6
_ON_PROFILE = 10
_TABLES = {
    "comments": "comments",
    "links": "links between questions",
    "votes": "votes",
    "users": "users",
    "badges": "badges",
    "tags": "descriptions of tags",
}
"""Tables, with the names by which the page `about` lists missing ones."""

Values = dict[str, Any]
Paging = tuple[int, int, int]
"""Number of a page of a list, number of rows on all pages, and number of rows on a page."""


class _Id(IntegerConvertor):
    """An id in a URL, which must fit into 63 bits; that of a user may be -1."""

    regex = "-?[0-9]{1,18}"


register_url_convertor("id", _Id())


class Pages:
    """Handles the requests for one site."""

    def __init__(self, store: Store, base: str, environment: Environment) -> None:
        """Make the request handlers of a site.

        Args:
            store: The database of the site.
            base: Prefix of the paths of this site; empty if the server has no other site.
            environment: The Jinja environment with the templates.
        """
        self.store, self.base = store, base
        self.sites = {store.about.host or "": self}
        self._environment = environment

    def routes(self) -> list[Route]:
        """List the routes of this site."""
        table = {
            "/": self.front,
            "/questions": self.questions,
            "/questions/tagged/{tag}": self.questions,
            "/unanswered": self.unanswered,
            "/questions/{id:id}": self.question,
            "/questions/{id:id}/{title}": self.question,
            "/questions/{question:id}/{title}/{id:id}": self.post,
            "/q/{id:id}": self.post,
            "/q/{id:id}/{user:id}": self.post,
            "/a/{id:id}": self.post,
            "/a/{id:id}/{user:id}": self.post,
            "/posts/{id:id}": self.post,
            "/tags": self.tags,
            "/tags/{tag}/info": self.questions,
            "/users": self.users,
            "/users/{id:id}": self.user,
            "/users/{id:id}/{name}": self.user,
            "/search": self.search,
            "/about": self.about,
        }
        return [Route(path, handler) for path, handler in table.items()]

    def _answer(self, template: str, values: Values) -> Response:
        page = self._environment.get_template(template)
        return HTMLResponse(page.render(self.common() | values))

    def _list(
        self, name: str, rows: list[Values], paging: Paging, query: Values, **values: Any
    ) -> Response:
        """Make the response for one page of a list.

        Args:
            name: Name of the list, of its template and its path.
            rows: The rows of the page.
            paging: The page and the list.
            query: URL parameters to keep in links to other pages.
            values: Other values for the template.
        """
        links = page_links(f"{self.base}/{name}", query, paging)
        return self._answer(f"{name}.html", {"rows": rows, **query, **values, **links})

    def common(self) -> Values:
        """Return the template values that every page of the site needs."""
        return {
            "q": "",
            "base": self.base,
            "site": self.store.about,
            "several": bool(self.base),
            "has_users": self.store.has("users"),
        }

    def with_titles(self, rows: Iterable[Values]) -> list[Values]:
        """Copy rows, with titles and snippets as HTML, and tags as lists."""
        sign = self.store.sign
        renderer = Renderer(sign=sign)

        def as_html(text: str) -> Markup:
            return renderer.render("title", without_cut_formula(text, sign) if sign else text)

        return [
            {
                **row,
                "title": renderer.render("title", row["Title"] or ""),
                "snippet": as_html(row.get("Snippet") or ""),
                "tags": orjson.loads(row["Tags"] or "[]") if "Tags" in row else [],
            }
            for row in rows
        ]

    def find_page(self, link: Link) -> str | None:
        """Return the path of the page in this reader that a link leads to; None if it has none."""
        site = self.sites.get(link.host)
        found = None if site is None else site.store.find_first(link.posts)
        if site is None or found is None:
            return None
        post_id, question_id = found
        return f"{site.base}/{'questions' if question_id == post_id else 'a'}/{post_id}"

    def front(self, request: Request) -> Response:
        """Show counts, plots, and the latest and best questions."""
        overview = self.store.about.overview
        questions = Query(kinds=frozenset({"question"}))
        latest, best = (
            self.store.summaries(self.store.hits(questions, sort).hits[:_ON_FRONT])
            for sort in ("newest", "score")
        )
        values = {
            "title": self.store.about.title,
            "overview": overview,
            "plots": {
                "Questions by year": sorted(overview["questions_by_year"].items()),
                "Most frequent tags": overview["top_tags"][:_TAGS],
            },
            "latest": self.with_titles(latest),
            "best": self.with_titles(best),
        }
        return self._answer("front.html", values)

    def questions(self, request: Request) -> Response:
        """Show a list of questions: all, or those with all of some tags."""
        sort, page = _choice(request, "sort", LIST_SORTS), page_number(request)
        tags = self.store.tag_names(
            request.path_params.get("tag", request.query_params.get("tag", ""))
        )
        unanswered = _is_set(request, "unanswered")
        query = Query(kinds=frozenset({"question"}))
        for tag in tags:
            query.add_tags(tag)
        if unanswered:
            query.add("{q}.AnswerCount = 0")
        found = self.store.hits(query, sort)
        rows = self.store.summaries(found.hits[PAGE * (page - 1) : PAGE * page])
        heading = "Unanswered questions" if unanswered else "Questions"
        of_what = f" tagged {', '.join(tags)}" if tags else ""
        described = self.store.tag_texts(tags[0]) if len(tags) == 1 else {}
        wiki = described.get("Wiki") or ""
        return self._list(
            "questions",
            self.with_titles(rows),
            (page, found.total, PAGE),
            {"tag": " ".join(tags), "sort": sort, "unanswered": "1" if unanswered else None},
            title=heading + of_what,
            heading=heading,
            sorts=LIST_SORTS,
            tags=tags,
            excerpt=described.get("Excerpt"),
            wiki=self._renderer().render("body", wiki),
        )

    def unanswered(self, request: Request) -> Response:
        """Redirect to the questions without an answer."""
        return RedirectResponse(f"{self.base}/questions?unanswered=1", 302)

    def _renderer(self, **settings: Any) -> Renderer:
        """Make a renderer of texts, in which links to pages of this reader become local."""
        return Renderer(self.store.about.host, self.find_page, sign=self.store.sign, **settings)

    def tags(self, request: Request) -> Response:
        """Show all tags, or those whose names contain a string."""
        like = request.query_params.get("like", "").strip()
        page = page_number(request)
        rows, count = self.store.tags(like, page)
        return self._list("tags", rows, (page, count, TAGS_PAGE), {"like": like}, title="Tags")

    def users(self, request: Request) -> Response:
        """Show all users, or those whose names contain a string."""
        if not self.store.has("users"):
            problem = "This database has no users; make it of a dump with Users.xml."
            raise HTTPException(404, problem)
        like = request.query_params.get("like", "").strip()
        sort = _choice(request, "sort", tuple(USER_SORTS))
        page = page_number(request)
        rows, count = self.store.users(like, sort, page)
        paging, query = (page, count, USERS_PAGE), {"like": like, "sort": sort}
        return self._list("users", rows, paging, query, title="Users", sorts=list(USER_SORTS))

    def user(self, request: Request) -> Response:
        """Show a user with their best or latest questions and answers."""
        user_id = request.path_params["id"]
        user = self.store.user(user_id)
        if user is None:
            raise HTTPException(404, f"There is no user {user_id} here.")
        sort = _choice(request, "sort", ("score", "newest"))
        posts: dict[str, list[Values]] = {}
        for kind in ("question", "answer"):
            query = parse(f"user:{user_id} is:{kind}")
            hits = self.store.hits(query, sort).hits[:_ON_PROFILE]
            posts[f"{kind}s"] = self.store.summaries(hits)
        name = user["DisplayName"] or f"user {user_id}"
        about, website = user["AboutMe"] or "", user["WebsiteUrl"] or ""
        renderer = self._renderer()
        address = renderer.address(website) or ""
        host = self.store.about.host
        values = {
            "title": name,
            "user": user,
            "name": name,
            "self_description": renderer.render("body", about),
            "website": address if address.lower().startswith(("http:", "https:", "/")) else None,
            "sort": sort,
            "source": f"https://{host}/users/{user_id}" if host else None,
            **{kind: self.with_titles(rows) for kind, rows in posts.items()},
        }
        return self._answer("user.html", values)

    def about(self, request: Request) -> Response:
        """Show the page about the site: content, source and licences."""
        about = self.store.about
        values = {
            "title": "About",
            "sources": {file.name: file for file in about.record.input if file.name}.values(),
            "overview": about.overview,
            "rows": about.rows,
            "missing": [name for table, name in _TABLES.items() if not self.store.has(table)],
            "so2docs": about.record.version,
            "licenses": LICENSES.items(),
        }
        return self._answer("about.html", values)

    def search(self, request: Request) -> Response:
        """Show the posts that match a search."""
        return self._answer("search.html", _search(request, [self], self.base))

    def question(self, request: Request) -> Response:
        """Show a question with a page of its answers."""
        question_id = request.path_params["id"]
        sort = _choice(request, "sort", tuple(ANSWER_SORTS))
        answer_ids = self.store.answer_ids(question_id, sort)
        page = min(page_number(request), max(1, -(-len(answer_ids) // ANSWERS_PAGE)))
        some = answer_ids[ANSWERS_PAGE * (page - 1) : ANSWERS_PAGE * page]
        document = self.store.document(question_id, some)
        if document is None:
            return self.post(request)
        images = _is_set(request, "images")
        if images:
            request.state.images = "'self' https: http:"
        query = {"sort": None if sort == "votes" else sort, "images": "1" if images else None}
        path = f"{self.base}/questions/{question_id}"
        links, originals = self._links(question_id)
        renderer = self._renderer(images=images, tags=tuple(document["Tags"]))
        values = {
            "title": thread.question_title(document),
            "question": thread.complete(document, renderer),
            "originals": originals,
            "images": images,
            "sort": sort,
            "sorts": list(ANSWER_SORTS),
            "links": links,
            **page_links(path, query, (page, len(answer_ids), ANSWERS_PAGE)),
        }
        return self._answer("question.html", values)

    def _links(self, question_id: int) -> tuple[list[Values], list[Values]]:
        """Find the questions linked to or from a question, and those that it is a duplicate of."""
        rows: dict[int, Values] = {}
        # List a question with several links only once, as a duplicate if one of the links marks it
        # as a duplicate.
        links = self.store.linked_questions(question_id)
        for row in sorted(links, key=lambda row: not row["is_duplicate"]):
            label = "links here" if row["is_from"] else ""
            label = "duplicate of this" if row["is_duplicate"] else label
            rows.setdefault(row["Id"], row | {"label": label})
        named = self.with_titles(rows.values())
        originals = [row for row in named if row["is_duplicate"] and not row["is_from"]]
        return [row for row in named if row not in originals], originals

    def post(self, request: Request) -> Response:
        """Redirect to a post on the page of its question; answers may be on later pages.

        If an answer is missing, the request leads to the question that its URL names.
        """
        parameters = request.path_params
        post_id = parameters["id"]
        question_id = self.store.find_question(post_id)
        if question_id is None and "question" in parameters:
            post_id = parameters["question"]
            question_id = self.store.find_question(post_id)
        if question_id is None:
            raise HTTPException(404, f"There is no post {post_id} here.")
        address = f"{self.base}/questions/{question_id}"
        if question_id != post_id:
            place = self.store.answer_ids(question_id).index(post_id) // ANSWERS_PAGE
            address += f"?page={place + 1}" * bool(place) + f"#answer-{post_id}"
        return RedirectResponse(address, 302)


def all_sites_routes(sites: list[Pages], environment: Environment) -> list[Route]:
    """List the routes of the pages for all sites together: the list of sites, and the search."""

    def answer(template: str, values: Values) -> Response:
        common = {"q": "", "base": "", "site": None, "several": True}
        return HTMLResponse(environment.get_template(template).render(common | values))

    def front(request: Request) -> Response:
        listed = [{"base": pages.base, "site": pages.store.about} for pages in sites]
        return answer("sites.html", {"title": "Sites", "sites": listed})

    def search(request: Request) -> Response:
        return answer("search.html", _search(request, sites, ""))

    return [Route("/", front), Route("/search", search)]


def _search(request: Request, sites: Sequence[Pages], base: str) -> Values:
    """Run a search; return the values of its page for the template.

    Args:
        request: The request.
        sites: The sites to search.
        base: Prefix of the path of the search page.
    """
    text = request.query_params.get("q", "").strip()[:500]
    sort = _choice(request, "sort", SEARCH_SORTS)
    most_pages = MOST_PAGES if len(sites) == 1 else _MOST_PAGES_OF_ALL_SITES
    query, page = parse(text), min(page_number(request), most_pages)
    if sort == "relevance" and not query.has_words:
        sort = "newest"
    pages = {site.store: site for site in sites}
    stores = [] if query.is_empty else list(pages)
    found, count, is_cut = search(stores, query, sort, page, PAGE)
    rows = []
    for store, row in found:
        site = pages[store]
        named = {"base": site.base, "Site": store.about.title} if len(sites) > 1 else {}
        rows += [shown | named for shown in site.with_titles([row])]
    return {
        "title": f"Search: {text}" if text else "Search",
        "q": text,
        "query": query,
        "is_cut": is_cut,
        "sort": sort,
        "sorts": [name for name in SEARCH_SORTS if query.has_words or name != "relevance"],
        "rows": rows,
        **page_links(f"{base}/search", {"q": text, "sort": sort}, (page, count, PAGE), most_pages),
    }


def page_links(path: str, query: Values, paging: Paging, most: int = MOST_PAGES) -> Values:
    """Return what a page of a list shows of the others.

    Args:
        path: Path of the list.
        query: URL parameters to keep in links; those that are None or empty are left out.
        paging: The page and the list.
        most: Number of the last page that can be requested.

    Returns:
        The number of rows, the page number, the number of pages (None if it is above `most`), and
        the paths of the previous and the next page (None if there is none).
    """

    def address(number: int) -> str:
        parameters = query | {"page": number if number > 1 else None}
        given = {name: value for name, value in parameters.items() if value}
        return f"{path}?{urlencode(given, quote_via=quote)}" if given else path

    page, count, size = paging
    pages = max(1, -(-count // size))
    return {
        "count": count,
        "page": page,
        "pages": pages if pages <= most else None,
        "previous": address(page - 1) if page > 1 else None,
        "next": address(page + 1) if page < min(pages, most) else None,
    }


def page_number(request: Request) -> int:
    """Return the requested page number, limited to `MOST_PAGES`; 1 if it is missing or invalid."""
    text = request.query_params.get("page", "1")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 1
    return min(max(number, 1), MOST_PAGES)


def _is_set(request: Request, name: str) -> bool:
    return request.query_params.get(name, "") not in ("", "0")


def _choice(request: Request, name: str, choices: Sequence[str]) -> str:
    """Return the requested value of a parameter, or the first choice if there is none.

    Raises:
        HTTPException: The requested value is unknown.
    """
    chosen = request.query_params.get(name) or choices[0]
    if chosen not in choices:
        raise HTTPException(
            400, f"Unknown sort order {chosen!r}; choose one of {', '.join(choices)}."
        )
    return chosen
