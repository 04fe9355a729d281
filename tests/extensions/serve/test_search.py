"""Search: words of code, stems, counts, orders, filters by indexes, several sites."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.serve_site import asked, count_of, listed, make_database

from so2docs.extensions.serve.agents import Archive
from so2docs.extensions.serve.query import Query, parse
from so2docs.extensions.serve.store import LIST_SORTS, SEARCH_SORTS, Store
from so2docs.extensions.sqlite.about import read_about


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


@contextmanager
def opened(path: Path, documents: list[dict[str, Any]], **options: Any) -> Iterator[Store]:
    """Make a database of documents, and open its site."""
    make_database(documents, path, **options)
    store = Store(read_about(str(path)))
    yield store
    store.close()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with opened(tmp_path_factory.mktemp("search") / "q.db", site()) as store:
        yield store


WORDS = {
    "bake": {1},
    "baking": {1},
    "bakes -bakers": set(),
    "language with foo bar": {2, 3, 4, 5},
    "the language": {3},
    'language "plus plus" foo bar': {3},
    "foo_bar": {2, 4},
    '"foo bar"': {2, 4},
    "foo*": {2, 4, 5},
    "foo -bar": {5},
    "東京": {6},
    "京大": {6},
    "東京大学": {6},
    "学": {6, 7},
    "大学 配列": {6, 7},
    "大配": set(),
    "σικερα": {8, 9},
    "σίκερα": {8, 9},
    '"σικερα"': {8, 9},
    "σίκε*": {8, 9},
}


def test_words(tmp_path: Path) -> None:
    bodies = [
        "It was baked; bakers bake.",
        "I use foo bar.",
        "The C language and c plus plus.",
        "run foo_bar",
        "foo fighters",
        "私は東京大学で。",
        "配列を大学",
        "σίκερα",
        "σικερα",
    ]
    documents = [{"Id": n, "Body": f"<p>{body}</p>"} for n, body in enumerate(bodies, 1)]
    make_database(documents, tmp_path / "q.db", site="x.stackexchange.com")
    with asked(tmp_path / "q.db") as client:
        for text, ids in WORDS.items():
            page = client.get("/search", params={"q": text}).text
            assert {*listed(page)} == ids, text
            assert count_of(page) == len(ids)
        page = client.get("/search?q=baking").text
    assert "It was <mark>baked</mark>; bakers <mark>bake</mark>." in page


Post = dict[str, Any]
PASSES: dict[str, Callable[[Post, Post], bool]] = {
    "is:answer": lambda post, _: "ParentId" in post,
    "is:question": lambda post, _: "ParentId" not in post,
    "is:answered": lambda _, question: len(question["Answers"]) > 0,
    "is:unanswered": lambda _, question: not question["Answers"],
    "is:accepted": lambda _, question: "AcceptedAnswerId" in question,
    "is:closed": lambda _, question: "ClosedDate" in question,
    "[odd]": lambda _, question: "odd" in question["Tags"],
    "[EVEN]": lambda _, question: "even" in question["Tags"],
    "[rare]": lambda _, question: "rare" in question["Tags"],
    "[nosuch]": lambda *_: False,
    "[odd] or [rare]": lambda _, question: not {"odd", "rare"}.isdisjoint(question["Tags"]),
    "score:10": lambda post, _: post["Score"] >= 10,
    "score:99": lambda post, _: post["Score"] >= 99,
    "score:3..9": lambda post, _: 3 <= post["Score"] <= 9,
    "score:..0": lambda post, _: post["Score"] <= 0,
    "answers:3": lambda _, question: len(question["Answers"]) >= 3,
    "answers:0": lambda _, question: not question["Answers"],
    "views:5": lambda _, question: question.get("ViewCount", 0) >= 5,
    "views:..4": lambda _, question: question.get("ViewCount", 9) <= 4,
    "created:2015": lambda post, _: post["CreationDate"][:4] == "2015",
    "created:2012..2014-05": lambda post, _: "2012" <= post["CreationDate"] < "2014-06",
    "created:2015-05..": lambda post, _: post["CreationDate"] >= "2015-05",
    "created:..2014": lambda post, _: post["CreationDate"] < "2015",
    "user:3": lambda post, _: post["OwnerUserId"] == 3,
    "user:404": lambda post, _: post["OwnerUserId"] == 404,
}
"""Whether a post passes a filter, with its question, computed independently."""
FILTERS = [
    ["[EVEN]", "score:10"], ["user:3", "is:answer"], ["user:3", "is:question", "[odd]"],
    ["is:answer", "score:10"], ["is:answer", "[rare]"], ["is:answer", "answers:3", "-[rare]"],
    ["is:answered", "-[nosuch]", "[odd]"], ["user:3", "answers:3"], ["is:accepted", "is:answer"],
    ["is:answer", "[odd]", "score:10", "answers:3"], ["is:question", "is:answer"],
    ["user:3", "score:10", "[EVEN]", "is:answered"], ["-user:3", "-is:answer", "-score:10"],
    *([part] for part in PASSES), *([f"-{part}"] for part in PASSES if " or " not in part),
]  # fmt: skip


def passes_all(post: dict[str, Any], question: dict[str, Any], parts: list[str]) -> bool:
    return all(
        PASSES[part.removeprefix("-")](post, question) != part.startswith("-") for part in parts
    )


@pytest.mark.parametrize("sort", SEARCH_SORTS[1:])
def test_filters_find_matching_posts(sort: str, store: Store) -> None:
    key = {"score": "Score", "newest": "CreationDate"}[sort]
    documents = site()
    for parts in FILTERS:
        query = parse(" ".join(parts))
        has_answers = query.has_owner or len(query.kinds) == 1
        for text in ("", "word1 "):
            expected = [
                post
                for question in documents
                for post in (question, *(question["Answers"] if has_answers or text else ()))
                if passes_all(post, question, parts) and text.strip() in post["Body"]
            ]
            expected.sort(key=lambda post: (post[key], post["Id"]), reverse=True)
            found = store.hits(parse(text + " ".join(parts)), sort)
            ids = [post_id for _, post_id in found.hits]
            assert ids == [post["Id"] for post in expected], parts
            assert (found.total, found.is_cut) == (len(ids), False)
    rows = store.summaries(found.hits[20:40])
    assert [row["Id"] for row in rows] == [post["Id"] for post in expected[20:40]]


def test_invalid_filters_are_reported() -> None:
    wrong_values = "score:5?", "-answers:x", "views:..", "created:20", "user:Ada", "is:what"
    wrong_dates = "created:2020-13", "created:2020-01-32..", "created:..2020-00"
    filters_of_the_sites = "intitle:tea", "hasaccepted:yes", "-duplicate:no", "url:example.com"
    for part in (*wrong_values, *wrong_dates, *filters_of_the_sites):
        query = parse(f"word {part}")
        assert query.problems == [f"{part} was not understood"]
        assert query.plain == ["word"]


KEYS: dict[str, Any] = {
    "newest": lambda q: ([-ord(c) for c in q["CreationDate"]], -q["Id"]),
    "oldest": lambda q: (q["CreationDate"], q["Id"]),
    "score": lambda q: (-q["Score"], -q["Id"]),
    "active": lambda q: ([-ord(c) for c in q["LastActivityDate"]], -q["Id"]),
}


@pytest.mark.parametrize("sort", LIST_SORTS)
def test_lists(sort: str, tmp_path: Path) -> None:
    make_database(site(), tmp_path / "q.db")
    with asked(tmp_path / "q.db") as client:
        for filters in ("", "tag=odd", "tag=rare", "tag=nosuch", "tag=even+rare", "tag=rare+odd",
                        "unanswered=1", "tag=odd&unanswered=1"):  # fmt: skip
            given = dict(part.split("=") for part in filters.split("&") if part)
            expected = [
                q["Id"]
                for q in sorted(site(), key=KEYS[sort])
                if {*given.get("tag", "").split("+")} - {""} <= {*q["Tags"]}
                and not ("unanswered" in given and q["Answers"])
            ]
            for page in (1, 2, 3):  # The third is the last one of 60 questions.
                last = 20 * page
                text = client.get(f"/questions?sort={sort}&{filters}&page={page}").text
                assert listed(text) == expected[last - 20 : last], filters
                assert count_of(text) == len(expected)
                assert ('rel="next"' in text) is (len(expected) > last)


def test_lists_and_filters_read_no_rows_of_posts(tmp_path: Path) -> None:
    """Reading 250,000 bodies takes seconds, reading an index milliseconds."""
    with opened(tmp_path / "q.db", site(30)) as store:
        for text in (
            "is:question",
            "score:99",
            "answers:3",
            "[odd]",
            "[odd] score:3 is:unanswered",
        ):
            for sort in ("newest", "oldest", "score"):
                # Dates of the few posts with a high score are read from their rows.
                is_few = "score" in text and sort != "score"
                for line in _plan_of(store, parse(text), sort):
                    assert "COVERING INDEX" in line or "Tag=?" in line or is_few, line


def _plan_of(store: Store, query: Query, sort: str) -> list[str]:
    """Return how SQLite reads the tables for a search."""
    statements: list[str] = []
    with store._connection() as connection:
        connection.set_trace_callback(statements.append)
    store.hits(query, sort)
    with store._connection() as connection:
        connection.set_trace_callback(None)
        [sql] = statements
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall()]
    return [line for line in plan if line.startswith(("SCAN", "SEARCH"))]


def test_more_results_than_can_be_shown_are_counted(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("so2docs.extensions.serve.store.MOST_RESULTS", 100)
    found = store.hits(parse("is:question -score:1000"), "newest")
    assert (len(found.hits), found.total) == (100, 300)


def test_tags_in_any_case(tmp_path: Path) -> None:
    make_database(site(), tmp_path / "q.db")
    with asked(tmp_path / "q.db") as client:
        page = client.get("/questions?tag=RARE").text
        assert "6 questions" in page
        for path in ("?tag=RARE%20even", "?tag=even+rare", "/tagged/even+rare"):
            page = client.get(f"/questions{path}").text
            assert "6 questions" in page
            assert '<a class="tag" href="/questions?tag=even">' in page
        page = client.get("/tags?like=RA").text
        assert re.findall(r'tag=(\w+)"', page) == ["rare"]


def sites_of(page: str) -> list[tuple[str, int]]:
    """Return the site and the id of each post in a list of several sites."""
    posts = re.findall(r'<h3><a href="/([^"/]+)/(?:questions|a)/(\d+)"', page)
    return [(site, int(post)) for site, post in posts]


def test_all_sites_at_once(tmp_path: Path) -> None:
    names = ("apples.stackexchange.com", "pears.stackexchange.com")
    for number, name in enumerate(names):
        documents = [{"Id": n, "Title": f"fruit {n}", "Score": n * 2 + number, "Tags": ["t"],
                 "CreationDate": f"20{10 + n}-0{1 + number}-01T00:00:00.000", "Answers": []}
                for n in range(1, 40)]  # fmt: skip
        make_database(documents, tmp_path / f"{name}.db", site=name)
    with asked(*(tmp_path / f"{name}.db" for name in names)) as client:
        for query in ("fruit", "[t]"):
            for sort in ("score", "newest"):
                actual: list[Any] = []
                for page in (1, 2, 3, 4, 5):
                    parameters = {"q": query, "sort": sort, "page": page}
                    text = client.get("/search", params=parameters).text
                    assert count_of(text) == 78
                    actual += sites_of(text)
                expected = [(names[n % 2], n // 2) for n in range(79, 1, -1)]
                assert actual == expected
        first = sites_of(client.get("/search?q=fruit").text)[:2]
        assert {site for site, _ in first} == set(names)
        page = client.get("/search?q=fruit").text
        assert '<h3><a href="/pears.stackexchange.com/questions/' in page
        assert '<input id="search"' in client.get("/").text


def test_ranks_of_several_sites_compare(tmp_path: Path) -> None:
    """A word that is rare on its site only does not outrank a post with all words in its title."""
    filler = "and then went home again " * 40
    weak = f"I made an error in the form {filler} where is a correction sent {filler} quantum"
    for number in range(30):
        documents = [{"Id": 1, "Title": f"Shop {number}", "Body": weak, "Answers": []}]
        make_database(documents, tmp_path / f"s{number:02}.db", site=f"s{number}.test")
    title = "Quantum error correction: why is it necessary"
    documents = [{"Id": 7, "Title": title, "Body": "quantum error correction", "Answers": []}]
    documents += [{"Id": n, "Title": f"quantum {n}", "Answers": []} for n in range(8, 20)]
    make_database(documents, tmp_path / "z.db", site="z.test")
    with asked(*sorted(tmp_path.glob("*.db"))) as client:
        for query in ("quantum error correction", '"error correction" quantum', "is quantum -shop"):
            posts = sites_of(client.get("/search", params={"q": query}).text)
            assert posts[0][0] == "z.test"
        assert count_of(client.get("/search?q=quantum&page=2").text) == 43
        assert count_of(client.get("/search?q=-shop quantum").text) == 13


def test_people(tmp_path: Path) -> None:
    names = {1: "Ann", 2: "Bob <b>", 3: "ann-marie"}
    users = {n: {"Id": n, "DisplayName": name, "Reputation": n * 1000} for n, name in names.items()}
    documents = site(30)
    for question in documents:
        for post in (question, *question["Answers"]):
            if post["OwnerUserId"] in users:
                post["Owner"] = users[post["OwnerUserId"]]
    comment = {"Id": 1, "PostId": 10, "Text": "x", "UserId": 99,
               "User": {"Id": 99, "DisplayName": "Zoe", "Reputation": 1}}  # fmt: skip
    documents[0]["Comments"] = [comment]
    make_database(documents, tmp_path / "q.db", site="x.stackexchange.com")
    with asked(tmp_path / "q.db") as client:
        people = re.findall(r'"/users/(\d+)"', client.get("/users").text)
        assert people == ["3", "2", "1", "99"]
        people = re.findall(r'"/users/(\d+)"', client.get("/users?sort=name&like=ANN").text)
        assert people == ["1", "3"]
        owned = [a for q in documents for a in q["Answers"] if a["OwnerUserId"] == 2]
        asked_by = sum(q["OwnerUserId"] == 2 for q in documents)
        for sort, key in (
            ("score", lambda a: (-a["Score"], -a["Id"])),
            ("newest", lambda a: ([-ord(c) for c in a["CreationDate"]], -a["Id"])),
        ):
            page = client.get(f"/users/2?sort={sort}").text
            assert f">{asked_by} questions<" in page
            assert f">{len(owned)} answers<" in page
            ids = [a["Id"] for a in sorted(owned, key=key)[:10]]
            assert listed(page.partition('id="answers"')[2]) == ids
        assert "?sort=newest" not in client.get("/users/99").text  # There is nothing to sort.
        assert client.get("/users/424242").status_code == 404


def test_answers_come_in_pages_and_orders(tmp_path: Path) -> None:
    answers = [
        {"Id": n, "Score": n * 37 % 101, "Body": f"<p>number {n}</p>"} for n in range(2, 122)
    ]
    question = {"Id": 1, "Title": "Many", "AcceptedAnswerId": 60, "Answers": answers}
    make_database([question], tmp_path / "q.db")
    best = sorted(answers, key=lambda a: (a["Id"] != 60, -int(str(a["Score"])), a["Id"]))
    orders = {
        "votes": [answer["Id"] for answer in best],
        "oldest": list(range(2, 122)),
        "newest": list(range(121, 1, -1)),
    }
    with asked(tmp_path / "q.db") as client:
        for sort, expected in orders.items():
            ids: list[int] = []
            for page in (1, 2, 3):
                text = client.get(f"/questions/1?sort={sort}&page={page}").text
                assert f'120 answers <span class="when">page {page} of 3' in text
                actual = [part.split('"')[0] for part in text.split('id="answer-')[1:]]
                ids += map(int, actual)
            assert ids == expected
        for number, answer_id in list(enumerate(orders["votes"]))[::7]:
            to = client.get(f"/a/{answer_id}").headers["location"]
            page = number // 50 + 1
            assert to == f"/questions/1{f'?page={page}' if page > 1 else ''}#answer-{answer_id}"


def test_all_lookups_of_a_search_share_a_deadline(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = Archive({"x": store})
    ticks = count()
    # Each look at the clock takes half a second.
    clock = SimpleNamespace(thread_time=lambda: next(ticks) / 2)
    monkeypatch.setattr("so2docs.extensions.serve.store.time", clock)
    assert "results" in archive.search("[rare]", sort="score")
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        archive.search(" ".join(f"unheard{n}" for n in range(20)))


def test_words_inside_phrases_count(store: Store) -> None:
    """Each takes the time and the memory of a word."""
    phrases = [f'"{"a " * n}"' for n in range(1, 20)]
    for text in (" ".join(phrases), " ".join(f"-{phrase}" for phrase in phrases)):
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
    with opened(tmp_path / "q.db", documents) as store:
        found = {
            sort: [hit[1] for hit in store.hits(parse("teas and pots"), sort).hits]
            for sort in SEARCH_SORTS
        }
        oolong = [hit[1] for hit in store.hits(parse("the oolong"), "score").hits]
        titles = [hit[1] for hit in store.hits(parse("title:tea body:pot"), "score").hits]
    assert found["relevance"][0] == 4
    assert sorted(found["relevance"]) == [1, 2, 4]
    assert found["newest"] == [4, 2]
    assert oolong == [6, 5, 4]
    assert titles == [4]


def test_tables_that_are_missing_are_named(tmp_path: Path) -> None:
    make_database([{"Id": 1, "Body": "b"}], tmp_path / "q.db")
    with asked(tmp_path / "q.db") as client:
        page = client.get("/about").text
    missing = "comments, links between questions, votes, users, badges, descriptions of tags"
    assert f"{missing}; posts deleted on the site" in page


def test_words_of_other_languages_in_any_form(tmp_path: Path) -> None:
    forms = {"es": ("fermentado", "fermentando"), "ru": ("бутылка", "бутылки")}
    for language, (text, word) in forms.items():
        documents = [{"Id": 1, "Body": f"<p>{text}</p>"}, {"Id": 2, "Body": "x"}]
        host = f"{language}.stackoverflow.com"
        with opened(tmp_path / f"{language}.db", documents, site=host) as store:
            hits = store.hits(parse(word), "relevance").hits
            [row] = store.summaries(hits, [word])
        assert (row["Id"], row["Snippet"]) == (1, f"\x02{text}\x03")
