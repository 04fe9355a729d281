"""Search: words of code, stems, counts, orders, filters by indexes, several sites."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.serve_site import served

import so2docs

for _name in ("starlette", "uvicorn", "jinja2", "nh3", "pygments", "math_core"):
    pytest.importorskip(_name, reason=f"{_name} is not installed")
httpx = pytest.importorskip("httpx", reason="httpx is not installed")

from so2docs.serve.agents import Archive  # noqa: E402
from so2docs.serve.query import FILTERS as OPERATORS  # noqa: E402
from so2docs.serve.query import OTHER_FILTERS, TEXT_FILTERS, parse  # noqa: E402
from so2docs.serve.store import SEARCH_SORTS, SORTS, Store, hints  # noqa: E402
from so2docs.sqlite.about import read_about  # noqa: E402

CODE = {
    1: "<p>The C language and c plus plus.</p>",
    2: "<p>I use <code>C++</code> with foo bar.</p>",
    3: "<p>run with <code>--force</code> and foo_bar</p>",
    4: "<p>brute force, a b, <code>a.b()</code></p>",
    5: "<p>a.b without brackets, #include &lt;x&gt;</p>",
    6: "<p>It was baked; bakers bake.</p>",
    7: "<p>p-&gt;next != 0 &amp; more</p>",
}


def site(count: int = 300) -> list[dict[str, Any]]:
    """Make questions with up to four answers, with different scores and tags."""
    documents = []
    for number in range(1, count + 1):
        question_id = number * 10
        answers = [
            {"Id": question_id + n, "ParentId": question_id, "Score": (number * n) % 17,
             "OwnerUserId": n, "Body": f"<p>answer {n}</p>",
             "CreationDate": f"20{10 + number % 10}-01-01T00:00:00.000"}
            for n in range(1, number % 5 + 1)
        ]  # fmt: skip
        question = {
            "Id": question_id,
            "Title": f"Question {number}",
            "Score": number * 7 % 101,
            "Tags": ["odd" if number % 2 else "even", *(["rare"] if number % 50 == 0 else [])],
            "Body": f"<p>word{number % 3} body</p>",
            "OwnerUserId": number % 7,
            "CreationDate": f"20{10 + number % 10}-0{1 + number % 9}-01T00:00:00.000",
            "LastActivityDate": f"20{20 + number % 3}-0{1 + number % 9}-01T00:00:00.000",
            "Answers": answers,
        }
        if number % 3 == 0 and answers:
            question["AcceptedAnswerId"] = question_id + 1
        documents.append(question)
    return documents


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("search") / "q.db"
    so2docs.to_sqlite(site(), path)
    about = read_about(str(path))
    opened = Store(about, about.sites[0])
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("c++", {2}),
        ("C++", {2}),
        ("foo_bar", {3}),
        ("foo bar", {2, 3}),
        ("--force", {3}),
        ("force", {3, 4}),
        ("a.b()", {4}),
        ("a.b", {4, 5}),
        ("#include", {5}),
        ("force -foo_bar", {4}),
        ("c -c++", {1}),
        ("foo_*", {3}),
        ("a_b", set()),
        ("foo -foo_b", {2}),
        ("code:100%", set()),
        (r"code:\b", set()),
        ("bake", {6}),
        ("baking", {6}),
        ('"baking"', set()),
        ("bakes -bakers", set()),
        ("language with foo bar", {1, 2, 3}),
        ("language foo", {1, 2, 3}),
        ("the language", {1}),
        ('language "plus plus" foo bar', {1}),
        ("->", {7}),
        ("!= - is:answer", {7}),
        ('"->" is:answer', set()),
        ("next ->", {7}),
        ("=>", set()),
        ('code:"&"', {7}),
    ],
)
def test_words_of_code(text: str, ids: set[int], tmp_path: Path) -> None:
    so2docs.to_sqlite([{"Id": n, "Body": body} for n, body in CODE.items()], tmp_path / "q.db")
    with served(tmp_path / "q.db") as address:
        results = httpx.get(f"{address}/search.json", params={"q": text}, timeout=60).json()
    assert {post["Id"] for post in results["posts"]} == ids
    assert results["count"] == len(ids)


@pytest.mark.parametrize("word", ["σικερα", "σίκερα", '"σικερα"', "σίκε*"])
def test_greek_words_are_found_with_accents_and_without(word: str, tmp_path: Path) -> None:
    bodies = ["<p>σίκερα</p>", "<p>σικερα</p>", "<p>beer</p>"]
    documents = [{"Id": number, "Body": body} for number, body in enumerate(bodies)]
    so2docs.to_sqlite(documents, tmp_path / "q.db")
    with served(tmp_path / "q.db") as address:
        results = httpx.get(f"{address}/search.json", params={"q": word}, timeout=60).json()
    assert {post["Id"] for post in results["posts"]} == {0, 1}


def test_stems_are_found_and_marked(tmp_path: Path) -> None:
    so2docs.to_sqlite([{"Id": n, "Body": body} for n, body in CODE.items()], tmp_path / "q.db")
    with served(tmp_path / "q.db") as address:
        page = httpx.get(f"{address}/search?q=baking", timeout=60).text
    assert "It was <mark>baked</mark>; bakers <mark>bake</mark>." in page


def passes(post: dict[str, Any], question: dict[str, Any], text: str) -> bool:
    """Whether a post passes filters, computed independently."""
    is_answer = "ParentId" in post
    checks = {
        "is:answer": is_answer,
        "is:question": not is_answer,
        "is:answered": bool(question["Answers"]),
        "is:unanswered": not question["Answers"],
        "is:accepted": "AcceptedAnswerId" in question,
        "[odd]": "odd" in question["Tags"],
        "[EVEN]": "even" in question["Tags"],
        "[rare]": "rare" in question["Tags"],
        "-[rare]": "rare" not in question["Tags"],
        "[nosuch]": False,
        "-[nosuch]": True,
        "score:10": post["Score"] >= 10,
        "score:99": post["Score"] >= 99,
        "answers:3": len(question["Answers"]) >= 3,
        "user:3": post["OwnerUserId"] == 3,
    }
    return all(checks[part] for part in text.split())


FILTERS = [
    "score:99", "score:10", "answers:3", "[odd]", "[EVEN] score:10", "[rare]", "[nosuch]", "user:3",
    "user:3 is:answer", "user:3 is:question [odd]", "is:answer score:10", "is:answer [rare]",
    "is:answer answers:3 -[rare]", "is:unanswered", "is:answered -[nosuch] [odd]",
    "user:3 answers:3",
    "is:accepted is:answer", "is:answer [odd] score:10 answers:3", "is:question is:answer",
    "user:3 score:10 [EVEN] is:answered",
]  # fmt: skip


@pytest.mark.parametrize("text", FILTERS)
@pytest.mark.parametrize("sort", SEARCH_SORTS[1:])
def test_filters_find_matching_questions(text: str, sort: str, store: Store) -> None:
    both = "user:" in text or "is:answer " in f"{text} "
    expected = [
        post
        for question in site()
        for post in (question, *(question["Answers"] if both else ()))
        if passes(post, question, text)
    ]
    by = (lambda p: (p["Score"], p["Id"])) if sort == "score" else (lambda p: (p["Id"],))
    expected.sort(key=by, reverse=True)
    hits, is_cut = store.hits(parse(text), sort)
    assert [post_id for _, post_id, _ in hits] == [post["Id"] for post in expected]
    assert not is_cut
    rows = store.with_excerpts(parse(text), hits[20:40])
    assert [row["Id"] for row in rows] == [post["Id"] for post in expected[20:40]]


@pytest.mark.parametrize("text", FILTERS)
def test_filters_narrow_words_down(text: str, store: Store) -> None:
    expected = {
        post["Id"]
        for question in site()
        for post in (question, *question["Answers"])
        if passes(post, question, text) and "word1" in post["Body"]
    }
    hits = store.hits(parse(f"word1 {text}"), "newest").hits
    assert {post_id for _, post_id, _ in hits} == expected


VALUES = {
    "score": ["10", "3..9", "..0"], "answers": ["2", "0"], "views": ["5", "..4"],
    "created": ["2015", "2012..2014-05"], "user": ["3", '"Ada"', "404"],
    "is": ["question", "answer", "a", "answered", "unanswered", "accepted", "closed", "duplicate"],
    "closed": ["yes", "no"], "duplicate": ["yes", "no"], "hasaccepted": ["yes", "0"],
    "isaccepted": ["yes", "no"], "title": ["3", '"question 3"'], "intitle": ["3"],
    "body": ["word2", "answer"], "code": ["word2", '"word2 body"'],
}  # fmt: skip


@pytest.fixture(scope="module", params=["bare", "complete"])
def posts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A site without values in many columns, or one with values, links and users."""
    documents = site(60)
    for question in documents:
        for post in (question, *question["Answers"]):
            post["Body"] += "<p>common</p>"
    if request.param == "complete":
        for question in documents[::2]:
            question |= {"ViewCount": question["Id"] % 9, "ClosedDate": "2020-01-01T00:00:00.000"}
            question["Owner"] = {"Id": question["OwnerUserId"], "DisplayName": "Ada"}
        link = {"Id": 1, "PostId": 10, "RelatedPostId": 20, "LinkTypeId": 3}
        documents[0]["Links"] = [link | {"LinkType": "duplicate"}]
    path = tmp_path_factory.mktemp(request.param) / "q.db"
    so2docs.to_sqlite(documents, path)
    about = read_about(str(path))
    opened = Store(about, about.sites[0])
    yield opened
    opened.close()


PARTS = [f"{name}:{value}" for name in OPERATORS for value in VALUES[name]]


@pytest.mark.parametrize("part", [*PARTS, "[odd]", "[nosuch]", '"answer 2"', "answer", "ord2:x"])
def test_a_minus_negates_every_filter(part: str, posts: Store) -> None:
    """A post passes a filter or its negation, but not both, unless a message says otherwise."""

    def find(text: str) -> tuple[set[tuple[bool, int]], list[str]]:
        query = parse(text)
        return {hit[:2] for hit in posts.hits(query, "newest").hits}, query.problems

    everything, _ = find('"common"')
    passing, _ = find(f'"common" {part}')
    others, problems = find(f'"common" -{part}')
    assert len(everything) > 150
    if problems:
        assert "duplicate" in part
        assert others == everything
    else:
        assert passing | others == everything
        assert not passing & others


@pytest.mark.parametrize(
    "name", [*OTHER_FILTERS, *(name for name in OPERATORS if name not in (*TEXT_FILTERS, "user"))]
)
def test_an_invalid_filter_is_reported(name: str) -> None:
    for part in (f"{name}:5?", f"-{name}:5?", "created:2020-13", "created:2020-04-32"):
        query = parse(f"word {part}")
        assert query.problems == [f"{part} was not understood"]
        assert query.plain == ["word"]


def test_or_after_a_negated_tag_is_not_understood() -> None:
    query = parse("-[a] or [b]")
    assert (query.without_tags, query.tags) == (["a"], [("b",)])
    assert "or after -[a] is not supported" in query.problems[0]


KEYS: dict[str, Any] = {
    "newest": lambda q: -q["Id"],
    "oldest": lambda q: q["Id"],
    "score": lambda q: (-q["Score"], -q["Id"]),
    "active": lambda q: ([-ord(c) for c in q["LastActivityDate"]], -q["Id"]),
}


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("tags", ["", "odd", "rare", "nosuch", "even rare", "rare odd"])
@pytest.mark.parametrize("unanswered", [False, True])
def test_lists(sort: str, tags: str, unanswered: bool, store: Store) -> None:
    expected = [q for q in site() if set(tags.split()) <= set(q["Tags"])
                and not (unanswered and q["Answers"])]  # fmt: skip
    expected.sort(key=KEYS[sort])
    for page in (1, 2):
        last = 20 * page
        actual = store.questions(sort=sort, tags=tags.split(), unanswered=unanswered, page=page)
        assert [row["Id"] for row in actual.rows] == [q["Id"] for q in expected[last - 20 : last]]
        assert actual.count == len(expected)
        assert actual.has_more is (len(expected) > last)


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("size", [300, 5000])
@pytest.mark.parametrize("unanswered", [False, True])
def test_lists_of_a_year(sort: str, size: int, unanswered: bool, tmp_path: Path) -> None:
    """Few questions of a year are sorted; many are found among all questions in their order."""
    dataset = [question | {"Body": "", "Answers": question["Answers"][:1]}
               for question in site(size)]  # fmt: skip
    so2docs.to_sqlite(dataset, tmp_path / "q.db", search="none")
    about = read_about(str(tmp_path / "q.db"))
    store = Store(about, about.sites[0])
    dates = {"newest": lambda q: ([-ord(c) for c in q["CreationDate"]], -q["Id"]),
             "oldest": lambda q: (q["CreationDate"], q["Id"])}  # fmt: skip
    for year in ("2010", "2015", "2013"):
        expected = [q for q in dataset if q["CreationDate"].startswith(year)
                    and not (unanswered and q["Answers"])]  # fmt: skip
        expected.sort(key=dates.get(sort, KEYS[sort]))
        results = store.questions(sort=sort, year=year, unanswered=unanswered)
        assert [row["Id"] for row in results.rows] == [q["Id"] for q in expected[:20]]
        assert results.count == (None if unanswered else len(expected))
    store.close()


@pytest.mark.parametrize(
    "text", ["score:99", "answers:3", "is:unanswered score:2", "[odd] score:3"]
)
def test_filters_alone_read_no_rows_of_posts(text: str, store: Store) -> None:
    """Reading 250,000 bodies takes seconds, reading an index milliseconds."""
    for sort in ("newest", "score"):
        plan = _plan_of(store, lambda sort=sort: store.hits(parse(f"{text} answers:0"), sort))
        reads = [line for line in plan if line.startswith(("SCAN", "SEARCH")) and " t " not in line]
        assert reads
        for line in reads:
            assert "COVERING INDEX" in line, plan


def test_lists_of_tags_and_years_by_date_sort_nothing(store: Store) -> None:
    for sort in ("newest", "oldest"):
        for kwargs in ({"tags": ["odd"]}, {"tags": ["rare", "even"]}, {"year": "2013"}):
            plan = _plan_of(store, partial(store.questions, sort=sort, **kwargs))
            assert not [line for line in plan if "TEMP B-TREE" in line], plan


def _plan_of(store: Store, ask: Any) -> list[str]:
    """Return the query plans of the statements that a call executes."""
    statements: list[str] = []
    with store._connection() as connection:
        connection.set_trace_callback(statements.append)
    ask()
    with store._connection() as connection:
        connection.set_trace_callback(None)
        steps = []
        for sql in statements:
            # Check the lists of ids, not the pages made from them.
            if "INDEXED BY" in sql and "LIMIT" in sql:
                plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}")
                steps += [row[3] for row in plan.fetchall()]
    assert steps
    return steps


def test_filters_are_shown_and_can_be_removed(tmp_path: Path) -> None:
    so2docs.to_sqlite(site(), tmp_path / "q.db")
    with served(tmp_path / "q.db") as address:
        page = httpx.get(f"{address}/search?q=body+[odd]+score:10", timeout=60).text
        assert '<a href="/search?q=body%20score%3A10" title="without this filter">' in page
        assert '<a href="/search?q=body%20%5Bodd%5D" title="without this filter">' in page
        response = httpx.get(f"{address}/search.json?q=body+[odd]+score:10&sort=score", timeout=60)
        scores = [post["Score"] for post in response.json()["posts"]]
        assert scores == sorted(scores, reverse=True)
        assert f"{response.json()['count']} results" in page


def test_tags_in_any_case_with_related_ones(tmp_path: Path) -> None:
    so2docs.to_sqlite(site(), tmp_path / "q.db")
    with served(tmp_path / "q.db") as address:
        page = httpx.get(f"{address}/questions?tag=RARE", timeout=60).text
        assert "6 questions" in page
        assert '<a href="/questions?tag=rare%20even">' in page.split("Also tagged")[1]
        for path in ("?tag=RARE%20even", "?tag=even+rare", "/tagged/even+rare"):
            page = httpx.get(f"{address}/questions{path}", timeout=60).text
            assert "6 questions" in page
            assert '<a class="tag" href="/questions?tag=even">' in page
            assert "Also tagged" not in page
        tags = httpx.get(f"{address}/tags.json?like=RA", timeout=60).json()
        assert tags["tags"] == [{"Name": "rare", "Questions": 6}]


@pytest.mark.long
def test_all_sites_at_once(tmp_path: Path) -> None:
    names = ("apples.stackexchange.com", "pears.stackexchange.com")
    for number, name in enumerate(names):
        documents = [{"Id": n, "Title": f"fruit {n}", "Score": n * 2 + number, "Tags": ["t"],
                 "CreationDate": f"20{10 + n}-0{1 + number}-01T00:00:00.000", "Answers": []}
                for n in range(1, 40)]  # fmt: skip
        so2docs.to_sqlite(documents, tmp_path / f"{name}.db", site=name)
    with served(*(tmp_path / f"{name}.db" for name in names)) as address:
        for query in ("fruit", "[t]"):
            for sort in ("score", "newest"):
                actual: list[Any] = []
                for page in (1, 2, 3, 4, 5):
                    parameters = {"q": query, "sort": sort, "page": page}
                    answer = httpx.get(
                        f"{address}/search.json", params=parameters, timeout=60
                    ).json()
                    assert answer["count"] == 78
                    actual += [(post["Site"], post["Id"]) for post in answer["posts"]]
                expected = [(names[n % 2], n // 2) for n in range(79, 1, -1)]
                assert actual == expected
        answer = httpx.get(f"{address}/search.json?q=fruit", timeout=60).json()
        assert {post["Site"] for post in answer["posts"][:2]} == set(names)
        page = httpx.get(f"{address}/search?q=fruit", timeout=60).text
        assert '<h3><a href="/pears.stackexchange.com/questions/' in page
        assert '<input id="search"' in httpx.get(f"{address}/", timeout=60).text


def test_people(tmp_path: Path) -> None:
    names = {1: "Ann", 2: "Bob <b>", 3: "ann-marie"}
    users = {n: {"Id": n, "DisplayName": name, "Reputation": n * 1000} for n, name in names.items()}
    documents = site(30)
    for question in documents:
        for post in (question, *question["Answers"]):
            if post["OwnerUserId"] in users:
                post["Owner"] = users[post["OwnerUserId"]]
    comment = {"Id": 1, "PostId": 10, "Text": "x", "UserId": 99, "User": {"Id": 99}}
    documents[0]["Comments"] = [comment]
    so2docs.to_sqlite(documents, tmp_path / "q.db", site="x.stackexchange.com")
    with served(tmp_path / "q.db") as address, httpx.Client(base_url=address, timeout=60) as client:
        people = client.get("/users.json").json()
        assert [user["Id"] for user in people["users"]] == [3, 2, 1]
        people = client.get("/users.json?sort=name&like=ANN").json()
        assert [user["DisplayName"] for user in people["users"]] == ["Ann", "ann-marie"]
        profile = client.get("/users/2.json").json()
        assert profile["user"]["Questions"] == sum(q["OwnerUserId"] == 2 for q in documents)
        owned = [a for q in documents for a in q["Answers"] if a["OwnerUserId"] == 2]
        assert profile["user"]["Answers"] == len(owned)
        best = sorted(owned, key=lambda a: (-a["Score"], -a["Id"]))[:10]
        assert [post["Id"] for post in profile["answers"]] == [post["Id"] for post in best]
        newest = client.get("/users/2.json?sort=newest").json()["answers"]
        assert [p["Id"] for p in newest] == sorted((a["Id"] for a in owned), reverse=True)[:10]
        page = client.get("/users/2").text
        assert "Bob &lt;b&gt;" in page
        assert "https://x.stackexchange.com/users/2" in page
        # A user who is named by posts but missing from the dump.
        assert "user 5" in client.get("/users/5").text
        assert "?sort=newest" in client.get("/users/5").text
        assert "?sort=newest" not in client.get("/users/99").text  # There is nothing to sort.
        assert client.get("/users/424242").status_code == 404
        assert '<a class="person" href="/users/2"><bdi>Bob &lt;b&gt;</bdi></a>' in (
            client.get("/questions").text
        )


def test_the_list_of_users_is_empty_without_users(tmp_path: Path) -> None:
    so2docs.to_sqlite(site(10), tmp_path / "q.db")
    with served(tmp_path / "q.db") as address, httpx.Client(base_url=address, timeout=60) as client:
        assert "--nest users" in client.get("/users").text
        assert 'href="/users"' not in client.get("/").text
        assert client.get("/users/1").status_code == 200


def test_answers_come_in_pages_and_orders(tmp_path: Path) -> None:
    answers = [
        {"Id": n, "Score": n * 37 % 101, "Body": f"<p>number {n}</p>"} for n in range(2, 122)
    ]
    question = {"Id": 1, "Title": "Many", "AcceptedAnswerId": 60, "Answers": answers}
    so2docs.to_sqlite([question], tmp_path / "q.db")
    best = sorted(answers, key=lambda a: (a["Id"] != 60, -int(str(a["Score"])), a["Id"]))
    orders = {
        "votes": [answer["Id"] for answer in best],
        "oldest": list(range(2, 122)),
        "newest": list(range(121, 1, -1)),
    }
    with served(tmp_path / "q.db") as address, httpx.Client(base_url=address, timeout=60) as client:
        for sort, expected in orders.items():
            ids: list[int] = []
            for page in (1, 2, 3):
                text = client.get(f"/questions/1?sort={sort}&page={page}").text
                assert f'120 answers <span class="when">page {page} of 3' in text
                actual = [part.split('"')[0] for part in text.split('id="answer-')[1:]]
                ids += map(int, actual)
            assert ids == expected
        for number, answer_id in enumerate(orders["votes"]):
            to = client.get(f"/a/{answer_id}").headers["location"]
            page = number // 50 + 1
            assert to == f"/questions/1{f'?page={page}' if page > 1 else ''}#answer-{answer_id}"
        assert len(client.get("/questions/1.json").json()["Answers"]) == 120


def test_states_and_links(tmp_path: Path) -> None:
    def link(number: int, post_id: int, to: int, kind: str) -> dict[str, Any]:
        return {"Id": number, "PostId": post_id, "RelatedPostId": to, "LinkType": kind,
                "LinkTypeId": {"linked": 1, "duplicate": 3}[kind]}  # fmt: skip

    documents: list[dict[str, Any]] = [
        {"Id": n, "Title": f"Title {n}", "Links": [], "Votes": {}, "Answers": []}
        for n in range(1, 5)
    ]
    documents[0] |= {"ClosedDate": "2020-02-02T00:00:00.000", "CommunityOwnedDate": "2020-01-01"}
    documents[0]["Links"] = [
        link(1, 1, 2, "duplicate"),
        link(2, 1, 3, "linked"),
        link(3, 1, 99, "linked"),
        link(5, 1, 2, "linked"),
    ]
    documents[0]["Votes"] = {"BountyStart": 2}
    documents[3]["Links"] = [link(4, 4, 1, "linked")]
    so2docs.to_sqlite(documents, tmp_path / "q.db")
    with served(tmp_path / "q.db") as address, httpx.Client(base_url=address, timeout=60) as client:
        page = client.get("/questions/1").text
        closed = 'Closed</span> <span class="day">2020-02-02</span>, a duplicate of '
        assert f'{closed}<a href="/questions/2"><bdi>Title 2</bdi></a>' in page
        assert page.index('id="answers"') < page.index('id="links"')
        links = page.split('id="links"')[1].split("</aside>")[0]
        assert '<a href="/questions/3"><bdi>Title 3</bdi></a>' in links
        assert '<a href="/questions/4"><bdi>Title 4</bdi></a>' in links
        assert "links here" in links
        assert '"/questions/2"' not in links
        assert "/questions/99" not in page
        assert "community wiki" in page
        assert "2 bounties" in page
        assert "duplicate of this" in client.get("/questions/2").text
        assert '<span class="closed">closed</span>' in client.get("/questions").text


def test_unknown_words_have_a_hint(store: Store) -> None:
    expected = ["no post has answr; did you mean answer?"]
    assert hints([store], parse("bodies answr word1")) == expected
    assert hints([store], parse("zzzzzz")) == ["no post has zzzzzz"]
    assert hints([store], parse('"answr" answ*')) == []


def test_all_lookups_of_a_search_share_a_deadline(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive({"x": store})
    ticks = count()
    # Each look at the clock takes half a second.
    clock = SimpleNamespace(thread_time=lambda: next(ticks) / 2)
    monkeypatch.setattr("so2docs.serve.store.time", clock)
    assert "results" in archive.search("[rare]", sort="score")
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        archive.search(" ".join(f"unheard{n}" for n in range(20)))


def test_words_inside_phrases_count(store: Store) -> None:
    """Each takes the time and the memory of a word."""
    phrases = [f'"{"a " * n}"' for n in range(1, 20)]
    for text in (" ".join(phrases), " ".join(f"-title:{phrase}" for phrase in phrases)):
        query = parse(f"word1 {text}")
        assert query.match(['"word1"'], "AND").count("a ") <= 32
        [problem] = query.problems
        assert "first 32 words" in problem
        assert not store.hits(query, "newest").is_cut


def test_each_question_is_found_once_by_any_of_the_words(tmp_path: Path) -> None:
    """Sorted by relevance: more of the words and titles first. In other orders: all words."""
    answers = [{"Id": n, "ParentId": 4, "Score": n, "Body": "<p>oolong tea</p>"} for n in (5, 6)]
    documents: list[dict[str, Any]] = [
        {"Id": 1, "Title": "Pots", "Body": "<p>which</p>"},
        {"Id": 2, "Title": "x", "Body": "<p>tea and a pot</p>"},
        {"Id": 3, "Title": "y", "Body": "<p>glass</p>"},
        {"Id": 4, "Title": "Oolong tea", "Body": "<p>which pot</p>", "Answers": answers},
    ]
    so2docs.to_sqlite(documents, tmp_path / "q.db")
    about = read_about(str(tmp_path / "q.db"))
    opened = Store(about, about.sites[0])
    found = {
        sort: [hit[1] for hit in opened.hits(parse("teas and pots"), sort).hits]
        for sort in SEARCH_SORTS
    }
    oolong = [hit[1] for hit in opened.hits(parse("the oolong"), "score").hits]
    opened.close()
    assert found["relevance"][0] == 4
    assert sorted(found["relevance"]) == [1, 2, 4]
    assert found["newest"] == [4, 2]
    assert oolong == [6, 5, 4]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("東京", {1}),
        ("京大", {1}),
        ("東京大学", {1}),
        ("学", {1, 2}),
        ("大学 配列", {1, 2}),
        ("大配", set()),
    ],
)
def test_signs_without_spaces_between_words(tmp_path: Path, text: str, ids: set[int]) -> None:
    bodies = ["<p>私は東京大学で。</p>", "<p>配列を大学</p>", "<p>array</p>"]
    documents = [{"Id": n, "Body": body, "Answers": []} for n, body in enumerate(bodies, 1)]
    so2docs.to_sqlite(documents, tmp_path / "q.db", site="ja.stackoverflow.com")
    about = read_about(str(tmp_path / "q.db"))
    opened = Store(about, about.sites[0])
    assert {hit[1] for hit in opened.hits(parse(text), "relevance")[0]} == ids
    opened.close()


def test_about(tmp_path: Path) -> None:
    output = tmp_path / "x.stackexchange.com.jsonl"
    output.write_text('{"Id":1,"CreationDate":"2019-01-02T00:00:00.000","Answers":[]}\n')
    so2docs.to_sqlite(output, tmp_path / "q.db", search="titles")
    with served(tmp_path / "q.db") as address, httpx.Client(base_url=address, timeout=60) as client:
        page = client.get("/about").text
        about = client.get("/about.json").json()
    assert "x.stackexchange.com.jsonl" in page
    assert '2019-01-02</span> to <span class="day">2019-01-02<' in page
    assert "badges, descriptions of tags, profiles of users; posts deleted on the site" in page
    assert "titles and tags" in page
    assert "CC BY-SA 2.5 for content created before." in page
    assert about["missing"][:4] == ["comments", "links between questions", "votes", "users"]
    assert about["sources"][0]["bytes"] == output.stat().st_size


def test_words_of_other_languages_in_any_form(tmp_path: Path) -> None:
    forms = {"es": ("fermentado", "fermentando"), "ru": ("бутылка", "бутылки")}
    for language, (text, word) in forms.items():
        path = tmp_path / f"{language}.db"
        so2docs.to_sqlite([{"Id": 1, "Body": f"<p>{text}</p>"}, {"Id": 2, "Body": "x"}], path,
                          site=f"{language}.stackoverflow.com")  # fmt: skip
        about = read_about(str(path))
        opened = Store(about, about.sites[0])
        hits = opened.hits(parse(word), "relevance").hits
        [row] = opened.with_excerpts(parse(word), hits)
        opened.close()
        assert (row["Id"], row["Snippet"]) == (1, f"\x02{text}\x03")
