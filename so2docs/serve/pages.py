"""The pages of one site: a request -> what to show -> HTML, or the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import quote, urlencode

import orjson
from jinja2 import Environment
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from so2docs.domain import licenses
from so2docs.escape import remove_bidi_controls
from so2docs.serve import history
from so2docs.serve.bodies import Renderer, linked_ids, mark_words, remove_marks
from so2docs.serve.formulas import without_cut_formula
from so2docs.serve.query import parse
from so2docs.serve.rendering import Renderings, Text
from so2docs.serve.store import (
    ANSWER_SORTS,
    ANSWERS_PAGE,
    PAGE,
    REVISIONS_PAGE,
    SEARCH_SORTS,
    SORTS,
    TAGS_PAGE,
    USER_SORTS,
    USERS_PAGE,
    ResultPage,
    Store,
)
from so2docs.serve.thread import question_title, texts, thread
from so2docs.statistics import svg

# The plots of the front page, drawn as those of `so2docs stats`.

_BOTH = ("questions", "answers")
_TAGS = 12


def plots(overview: dict[str, Any]) -> list[dict[str, Any]]:
    """Title, plot and legend of each plot; of what there is."""
    charts = []
    years = sorted({*overview["questions_by_year"], *overview["answers_by_year"]})[-24:]
    if len(years) > 1:
        labels = [f"'{year[2:]}" for year in years]
        charts.append(_columns("Questions and answers by year", labels, overview, "by_year", years))
    bins = list(overview["question_scores"])
    labels = [label.replace("below ", "<") for label in bins]
    charts.append(_columns("Scores", labels, overview, "scores", bins))
    tags = [(name, count) for name, count in overview["top_tags"][:_TAGS]]
    if tags:
        plot = Markup(svg.rows(tags, tags[0][1], svg.widest(name for name, _ in tags)))
        charts.append({"title": "Most frequent tags", "plot": plot, "legend": ()})
    return charts


def _columns(
    title: str, labels: list[str], overview: dict[str, Any], what: str, names: list[str]
) -> dict[str, Any]:
    keys = [f"questions_{what}", f"answers_{what}"]
    if what == "scores":
        keys = ["question_scores", "answer_scores"]
    values = [[overview[key].get(name, 0) for name in names] for key in keys]
    plot = Markup(svg.columns(labels, values, _BOTH))
    return {"title": title, "plot": plot, "legend": list(zip(_BOTH, svg.COLOURS, strict=True))}


MOST_PAGES = 500
_ON_FRONT = 6
_ON_QUESTION = 5
_ON_PROFILE = 10
_LINKED = {
    (False, False): "linked",
    (False, True): "linked from",
    (True, False): "duplicate of",
    (True, True): "duplicates",
}
"""How a question is linked: by whether one is a duplicate, and whether the link leads here."""

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
            several: Whether there are other sites, too.
        """
        self.store, self.base, self.several = store, base, several
        self._environment = environment
        self._renderings = renderings

    def routes(self) -> list[Route]:
        """The addresses of this site; each list also ends in `.json`."""
        lists = {
            "/questions": self.questions,
            "/tags": self.tags,
            "/users": self.users,
            "/search": self.search,
            "/about": self.about,
        }
        return [
            Route("/", self.front),
            Route("/index.json", self.front),
            *(
                Route(path + end, handler)
                for path, handler in lists.items()
                for end in ("", ".json")
            ),
            Route("/questions/tagged/{tag}", self.questions),
            Route("/questions/{id:post}.json", partial(self.question, as_json=True)),
            Route("/questions/{id:post}", self.question),
            Route("/questions/{id:post}/{title}", self.question),
            Route("/users/{id:user}.json", self.user),
            Route("/users/{id:user}", self.user),
            Route("/users/{id:user}/{name}", self.user),
            Route("/posts/{id:post}/revisions.json", self.revisions),
            Route("/posts/{id:post}/revisions", self.revisions),
            Route("/q/{id:post}", self.post),
            Route("/a/{id:post}", self.post),
        ]

    def _answer(self, request: Request, template: str, values: Values, data: Values) -> Response:
        return answer(request, self._environment, template, self.common(request) | values, data)

    def common(self, request: Request) -> Values:
        """The values that every page of the site shows."""
        return {
            "q": "",
            "base": self.base,
            "site": self.store.site,
            "several": self.several,
            "has_users": self.store.has_users,
            "about": self.store.about,
            "path": request.url.path,
        }

    def with_titles(self, rows: Sequence[Values]) -> list[Values]:
        """Rows with their titles and excerpts as HTML, and their tags as a list."""
        names = ("Title", "Excerpt", "Snippet")
        if sign := self.store.sign:
            rows = [
                {**row, **{n: without_cut_formula(row[n], sign) for n in names[1:] if row.get(n)}}
                for row in rows
            ]
        texts = dict.fromkeys(row[name] for row in rows for name in names if row.get(name))
        titles = self._titles(list(texts))
        results = []
        for row in rows:
            replaced = {name.lower(): titles.get(row.get(name) or "") for name in names}
            tags = orjson.loads(row["Tags"] or "[]") if "Tags" in row else []
            results.append({**row, **replaced, "tags": tags})
        return results

    def _titles(self, texts: list[str]) -> dict[str, Markup]:
        """Titles as HTML, in which marked words are marked."""
        sign = self.store.sign
        titles = {text: Markup(mark_words(remove_bidi_controls(text))) for text in texts}
        formulas: list[Text] = [
            ("title", text) for text in texts if sign and ("$" in text or "\\" in text)
        ]
        if formulas:
            rendered = self._renderings.render(Renderer(sign=sign), formulas)
            titles |= {text: title for (_, text), title in zip(formulas, rendered, strict=True)}
        return titles

    def front(self, request: Request) -> Response:
        """Counts, plots, and the latest and the best questions."""
        overview = self.store.site.overview
        latest = self.store.questions(sort="newest").rows[:_ON_FRONT]
        best = self.store.questions(sort="score").rows[:_ON_FRONT]
        values = {
            "title": self.store.site.title,
            "overview": overview,
            "plots": plots(overview),
            "latest": self.with_titles(latest),
            "best": self.with_titles(best),
        }
        data = {"overview": overview, "latest": latest, "best": best}
        return self._answer(request, "front.html", values, data)

    def questions(self, request: Request) -> Response:
        """A list of questions."""
        values = request.query_params
        tag = request.path_params.get("tag") or values.get("tag") or None
        tag = None if tag is None else self.store.tag_name(tag)
        sort = choice(request, "sort", tuple(SORTS))
        unanswered = values.get("unanswered", "") not in ("", "0")
        page = page_number(request)
        results = self.store.questions(sort=sort, tag=tag, unanswered=unanswered, page=page)
        query = {"tag": tag, "sort": sort, "unanswered": "1" if unanswered else None}
        title = "Unanswered questions" if unanswered else "Questions"
        template_values = {
            "title": title if tag is None else f"{title} tagged {tag}",
            "rows": self.with_titles(results.rows),
            "count": results.count,
            "sorts": list(SORTS),
            "related": self.store.related_tags(tag) if tag else [],
            **self._described(tag),
            **query,
            **self.page_links("/questions", query, page, results, PAGE),
        }
        data = _page_as_json("questions", results.rows, page, results)
        return self._answer(request, "questions.html", template_values, data)

    def _described(self, tag: str | None) -> Values:
        """The description of a tag, as HTML that is safe to show."""
        described = {} if tag is None else self.store.tag_texts(tag)
        excerpt, wiki = described.get("Excerpt"), described.get("Wiki")
        if not wiki:
            return {"excerpt": excerpt, "wiki": None}
        host = self.store.site.host
        questions = self.store.find_questions(linked_ids([wiki]))
        renderer = Renderer(host, self.base, questions, sign=self.store.sign)
        [html] = self._renderings.render(renderer, [("body", wiki)])
        return {"excerpt": excerpt, "wiki": html}

    def tags(self, request: Request) -> Response:
        """All tags, or those with some letters."""
        like, page = request.query_params.get("like", "").strip(), page_number(request)
        results = self.store.tags(like, page)
        values = {"title": "Tags", "rows": results.rows, "like": like, "count": results.count}
        values |= self.page_links("/tags", {"like": like or None}, page, results, TAGS_PAGE)
        data = _page_as_json("tags", results.rows, page, results)
        return self._answer(request, "tags.html", values, data)

    def users(self, request: Request) -> Response:
        """All users, or those with some letters in their names."""
        self._require_users()
        like, page = request.query_params.get("like", "").strip(), page_number(request)
        sort = choice(request, "sort", tuple(USER_SORTS))
        results = self.store.users(like, sort, page)
        query = {"like": like or None, "sort": sort}
        values: Values = {
            "title": "Users",
            "rows": results.rows,
            "like": like,
            "count": results.count,
        }
        values |= {"sort": sort, "sorts": list(USER_SORTS)}
        values |= self.page_links("/users", query, page, results, USERS_PAGE)
        data = _page_as_json("users", results.rows, page, results)
        return self._answer(request, "users.html", values, data)

    def _require_users(self) -> None:
        if not self.store.has_users:
            raise HTTPException(
                404, "This database has no users; make it of documents with users: --with users."
            )

    def user(self, request: Request) -> Response:
        """A user: who it is, and their best or latest questions and answers."""
        user_id = request.path_params["id"]
        user = self.store.user(user_id)
        if user is None:
            raise HTTPException(404, f"There is no user {user_id} here.")
        sort = choice(request, "sort", ("score", "newest"))
        posts: dict[str, list[Values]] = {}
        for kind in ("question", "answer"):
            query = parse(f"user:{user_id} is:{kind}")
            posts[f"{kind}s"] = self.store.search(query, 1, sort).rows[:_ON_PROFILE]
        name = user["DisplayName"] or f"user {user_id}"
        host = self.store.site.host
        values = {
            "title": name,
            "user": user,
            "name": name,
            "sort": sort,
            "source": f"https://{host}/users/{user_id}" if host else None,
            **{kind: self.with_titles(rows) for kind, rows in posts.items()},
        }
        return self._answer(request, "user.html", values, {"user": user, **posts})

    def about(self, request: Request) -> Response:
        """The page about the site: content, source and licences."""
        about, site = self.store.about, self.store.site
        shape = site.shape
        missing = [
            name
            for name, path in (
                ("comments", "Comments"),
                ("links between questions", "Links"),
                ("votes", "Votes"),
                ("users", "Owner"),
                ("answers", "Answers"),
                ("reasons of closing and revisions", "History"),
            )
            if path not in shape
        ]
        data = {
            "site": site.title,
            "host": site.host,
            "sources": [source for source in about.sources if source.get("name")],
            "overview": site.overview,
            "rows": about.rows,
            "missing": missing,
            "search": about.search,
            "stemming": about.stemming,
            "so2docs": about.version,
        }
        values = {"title": "About", "licenses": licenses(), **data, "site": site}
        return self._answer(request, "about.html", values, data)

    def search(self, request: Request) -> Response:
        """Posts that hold words and pass filters."""
        text = request.query_params.get("q", "").strip()[:500]
        sort = choice(request, "sort", SEARCH_SORTS)
        query, page = parse(text), page_number(request)
        if query.match and self.store.about.search == "none":
            raise HTTPException(
                404, "This database has no full text; make it again with --search all or titles."
            )
        if sort == "relevance" and not query.match:
            sort = "newest"
        results = ResultPage([]) if query.is_empty else self.store.search(query, page, sort)
        values = {
            "title": f"Search: {text}" if text else "Search",
            "q": text,
            "query": query,
            "found": results,
            "sort": sort,
            "sorts": [name for name in SEARCH_SORTS if query.match or name != "relevance"],
            "filters": [(part, self._without(text, part)) for part in query.filters],
            "rows": self.with_titles(results.rows),
            **self.page_links("/search", {"q": text, "sort": sort}, page, results, PAGE),
        }
        data = {"query": text, "page": page, "problems": query.problems, "count": results.count}
        return self._answer(request, "search.html", values, data | {"posts": plain(results.rows)})

    def _without(self, text: str, part: str) -> str:
        rest = " ".join(text.replace(part, " ", 1).split())
        return f"{self.base}/search?{urlencode({'q': rest}, quote_via=quote)}"

    def question(self, request: Request, *, as_json: bool = False) -> Response:
        """A question with a page of its answers."""
        question_id = request.path_params["id"]
        sort = choice(request, "sort", ANSWER_SORTS)
        if as_json or wants_json(request):
            document = self.store.document(question_id)
            if document is None:
                raise HTTPException(404, f"There is no question {question_id} here.")
            return Response(orjson.dumps(document), media_type="application/json")
        answer_ids = self.store.answer_ids(question_id, sort)
        page = min(page_number(request), max(1, -(-len(answer_ids) // ANSWERS_PAGE)))
        some = answer_ids[ANSWERS_PAGE * (page - 1) : ANSWERS_PAGE * page]
        document = self.store.document(question_id, some)
        if document is None:
            return self.post(request)
        images = request.query_params.get("images", "") not in ("", "0")
        if images:
            request.state.images = "'self' https: http:"
        page_of_answers = ResultPage([], len(answer_ids), len(answer_ids) > ANSWERS_PAGE * page)
        query = {"sort": None if sort == "votes" else sort, "images": "1" if images else None}
        address = f"/questions/{question_id}"
        links = self._links(question_id)
        post_ids = [question_id, *some]
        values = {
            **self._thread(document, images=images),
            **self._states(document, post_ids, [link["Id"] for link in links["duplicate of"]]),
            "images": images,
            "count": len(answer_ids),
            "sort": sort,
            "sorts": ANSWER_SORTS,
            "links": links,
            "related": self._related(document, links),
            **self.page_links(address, query, page, page_of_answers, ANSWERS_PAGE),
        }
        return self._answer(request, "question.html", values, document)

    def _thread(self, document: Values, *, images: bool) -> Values:
        texts_to_render = texts(document)
        renderer = Renderer(
            self.store.site.host,
            self.base,
            self.store.find_questions(linked_ids(text for _, text in texts_to_render)),
            images,
            tuple(tag for tag in document.get("Tags", ()) if isinstance(tag, str)),
            self.store.sign,
        )
        rendered = dict(
            zip(texts_to_render, self._renderings.render(renderer, texts_to_render), strict=True)
        )
        return thread(document, rendered, self.store.site.host)

    def _states(self, document: Values, post_ids: list[int], originals: list[int]) -> Values:
        """The states of posts that readers are told, and how long their histories are.

        Args:
            document: Of the question.
            post_ids: The question, and the answers that are shown.
            originals: Questions that links call the originals of this one.
        """
        events = self.store.events(post_ids)
        states_by_post = {post_id: history.states(events.get(post_id, ())) for post_id in post_ids}
        of_question = states_by_post[post_ids[0]]
        closed = of_question.get("PostClosed", history.closing(document))
        if closed is not None or originals:
            # What links say may be newer than the closing, or all that is known.
            ids = dict.fromkeys([*history.original_ids([closed or {}]), *originals])
            closed = {"Events": [], **(closed or {}), "OriginalQuestionIds": list(ids)}
            of_question = {"PostClosed": closed} | of_question | {"PostClosed": closed}
            states_by_post[post_ids[0]] = of_question
        known = self._known(
            [entry for states in states_by_post.values() for entry in states.values()]
        )
        return {
            "states": {
                post_id: [history.state(event, entry, known) for event, entry in states.items()]
                for post_id, states in states_by_post.items()
            },
            "revisions": {post_id: len(entries) for post_id, entries in events.items()},
        }

    def _known(self, entries: list[Values], numbers: dict[str, int] | None = None) -> history.Known:
        """Look up what entries of the history refer to."""
        titles = self.store.titles(history.original_ids(entries))
        html_titles = self._titles([title for title in titles.values() if title])
        urls = [entry["Url"] for entry in entries if isinstance(entry.get("Url"), str)]
        host = self.store.site.host
        questions = self.store.find_questions(linked_ids(urls))
        return history.Known(
            self.base,
            host,
            self.store.user_names(history.user_ids(entries)),
            {number: html_titles.get(title or "") for number, title in titles.items()},
            numbers or {},
            Renderer(host, self.base, questions).address,
        )

    def revisions(self, request: Request) -> Response:
        """The history of a post: what was changed, by whom, and what became of it."""
        post_id = request.path_params["id"]
        question_id = self.store.find_question(post_id)
        if question_id is None:
            raise HTTPException(404, f"There is no post {post_id} here.")
        if not self.store.has_history:
            raise HTTPException(
                404, "This database has no history; make it of documents with it: --with history."
            )
        page = page_number(request)
        results = self.store.revisions(post_id, page)
        is_back = any(row.get("RollbackTo") for row in results.rows)
        known = self._known(results.rows, self.store.revision_numbers(post_id) if is_back else None)
        versions = list(dict.fromkeys(text for row in results.rows for text in history.texts(row)))
        rendered = dict(zip(versions, self._renderings.render(Renderer(), versions), strict=True))
        title = self.store.titles([question_id]).get(question_id) or f"Question {question_id}"
        values = {
            "title": f"Revisions: {title}",
            "heading": self._titles([title])[title],
            "post": {"id": post_id, "is_answer": post_id != question_id},
            "count": results.count,
            "rows": [
                history.shown(row, known) | history.changes(row, rendered) for row in results.rows
            ],
            **self.page_links(f"/posts/{post_id}/revisions", {}, page, results, REVISIONS_PAGE),
        }
        rows = [{n: v for n, v in row.items() if not n.startswith("Old")} for row in results.rows]
        data = _page_as_json("revisions", rows, page, results)
        return self._answer(request, "revisions.html", values, data)

    def _links(self, question_id: int) -> dict[str, list[Values]]:
        """Questions that are linked with this one, by how."""
        links: dict[str, list[Values]] = {how: [] for how in _LINKED.values()}
        for row in self._named(self.store.linked_questions(question_id)):
            links[_LINKED[row["kind"] == "duplicate", bool(row["is_from"])]].append(row)
        return links

    def _related(self, document: Values, links: dict[str, list[Values]]) -> list[Values]:
        """Questions with the same tags that are not linked with this one."""
        linked = {row["Id"] for rows in links.values() for row in rows}
        tags = [tag for tag in document.get("Tags") or () if isinstance(tag, str)]
        rows = self.store.related_questions(document["Id"], tags)
        return self._named([row for row in rows if row["Id"] not in linked][:_ON_QUESTION])

    def _named(self, rows: Sequence[Values]) -> list[Values]:
        """Rows of questions with titles, also where the dump has none."""
        return [
            {**row, "title": row["title"] or question_title(row)} for row in self.with_titles(rows)
        ]

    def post(self, request: Request) -> Response:
        """Lead to where a post is shown."""
        post_id = request.path_params["id"]
        question_id = self.store.find_question(post_id)
        if question_id is None:
            raise HTTPException(404, f"There is no post {post_id} here.")
        address = f"{self.base}/questions/{question_id}"
        if question_id != post_id:
            place = self.store.answer_ids(question_id).index(post_id) // ANSWERS_PAGE
            address += f"?page={place + 1}" * bool(place) + f"#answer-{post_id}"
        return RedirectResponse(address, 302)

    def page_links(
        self, path: str, query: Values, page: int, results: ResultPage, size: int
    ) -> Values:
        """Addresses of the pages before and after, and how many there are if that is known."""

        def address(number: int) -> str:
            values = {name: value for name, value in query.items() if value is not None}
            pairs = urlencode(values | ({"page": number} if number > 1 else {}), quote_via=quote)
            return f"{self.base}{path}" + (f"?{pairs}" if pairs else "")

        pages = None if results.count is None else max(1, -(-results.count // size))
        return {
            "page": page,
            "pages": pages if pages is None or pages <= MOST_PAGES else None,
            "previous": address(page - 1) if page > 1 else None,
            "next": address(page + 1) if results.has_more and page < MOST_PAGES else None,
        }


def answer(
    request: Request, environment: Environment, template: str, values: Values, data: Any
) -> Response:
    """A page of a template, or JSON where that is asked for."""
    if wants_json(request):
        return Response(orjson.dumps(data), media_type="application/json")
    page = environment.get_template(template).render(values)
    return HTMLResponse(page, headers={"vary": "accept"})


def wants_json(request: Request) -> bool:
    """Whether a request is for JSON, by its address or its headers."""
    accepted = request.headers.get("accept", "")
    return request.url.path.endswith(".json") or accepted.startswith("application/json")


def page_number(request: Request) -> int:
    """The page that is asked for; 1 if that is no number."""
    text = request.query_params.get("page", "1")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 1
    return min(max(number, 1), MOST_PAGES)


def choice(request: Request, name: str, choices: Sequence[str]) -> str:
    """One of some choices; the first if none is asked for.

    Raises:
        HTTPException: Something else is asked for.
    """
    chosen_name = request.query_params.get(name) or choices[0]
    if chosen_name not in choices:
        raise HTTPException(
            400, f"There is no order {chosen_name!r}; choose of {', '.join(choices)}."
        )
    return chosen_name


def _page_as_json(name: str, rows: Sequence[Values], page: int, results: ResultPage) -> Values:
    """A page of a list as JSON: its rows under a name, and whether there are more."""
    return {name: rows, "page": page, "more": results.has_more, "count": results.count}


def plain(rows: list[Values]) -> list[Values]:
    """Rows for JSON: without the marks of words that were found."""
    return [
        {
            name: remove_marks(value) if isinstance(value, str) else value
            for name, value in row.items()
        }
        for row in rows
    ]
