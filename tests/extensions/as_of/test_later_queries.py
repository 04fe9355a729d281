"""Retrieval sets of two dates: nothing in them is later than its date."""

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.dumps import question, row
from support.history_walk import Walk, read_rows
from support.places import DUMPS, NO_DUMPS
from support.restored import check_any_way, event, write_site
from support.site_over_time import FIRST, LAST, Site

import so2docs
from so2docs.extensions.recipes.recipe import QUERIES_UNTIL, Recipe
from so2docs.options.choices import Core

Row = dict[str, Any]

END = "T23:59:59.999"
CORPUS, QUERIES = "2020-01-12", "2020-01-22"
SETTINGS = {"queries_until": QUERIES, "links": "both"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Path]:
    """A made-up site whose questions get links, and more votes, on every day."""
    site, chance = Site(seed=7), random.Random(7)
    asked = sorted(post["Id"] for post in site.tables["Posts"] if post["PostTypeId"] == 1)
    site.tables["PostLinks"] = [
        {
            "Id": number,
            "CreationDate": f"2020-01-{chance.randrange(FIRST, LAST + 1):02}T12:00:00.000",
            "PostId": chance.choice(asked),
            "RelatedPostId": chance.choice(asked),
            "LinkTypeId": chance.choice((1, 3)),
        }
        for number in range(1, 801)
    ]
    for number in range(1_001, 1_401):
        ids = {"Id": number, "PostId": chance.choice(asked), "VoteTypeId": chance.choice((2, 2, 3))}
        date = f"2020-01-{chance.randrange(FIRST, LAST + 1):02}T00:00:00.000"
        site.tables["Votes"].append({**ids, "CreationDate": date})
    site.tables["Votes"].sort(key=lambda vote: vote["CreationDate"])
    return site, site.write(tmp_path_factory.mktemp("site") / "dump")


def make_set(dump: Path, folder: Path, **options: Any) -> so2docs.Report:
    options = {"recipe": "beir", "as_of": CORPUS, "settings": SETTINGS, "jobs": 1, **options}
    return so2docs.convert(dump, folder, **options)


def read_set(folder: Path) -> dict[str, list[Row]]:
    names = ("corpus.jsonl", "queries.jsonl", "qrels/test.jsonl")
    return {
        name: [json.loads(line) for line in (folder / name).read_text("utf-8").splitlines()]
        for name in names
    }


def read_bytes(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name[0] != ".")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def write_document(question: Row, **_settings: Any) -> Iterator[Row]:
    """Write whole documents, as a recipe of the user that has the setting."""
    yield question


DOCUMENTS = Recipe("documents", write_document, settings=(QUERIES_UNTIL,))


def test_documents_are_of_their_date(site: tuple[Site, Path], core: Core) -> None:
    over_time, dump = site
    then, later = over_time.expect(12), over_time.expect(22)
    asked = {i: post["CreationDate"] for i, post in later.items() if post["PostTypeId"] == 1}
    votes = over_time.tables["Votes"]
    expected = {}
    for posts, day in ((then, 12), (later, 22)):
        counts = Counter[tuple[int, int]]()
        for vote in votes:
            if vote["CreationDate"] < f"2020-01-{day}T99":
                counts[vote["PostId"], vote["VoteTypeId"]] += 1
        for id_, post in posts.items():
            if (asked[post.get("ParentId", id_)] > "2020-01-12T99") == (day == 22):
                body, score = f"<p>{post['Body']}</p>\n", counts[id_, 2] - counts[id_, 3]
                expected[id_] = {**post, "Body": body, "Score": score}
    found = {}
    settings = {"queries_until": QUERIES}
    options: Row = {"as_of": CORPUS, "settings": settings, "jobs": 1, "core": core}
    with so2docs.documents(dump, recipe="test_later_queries:DOCUMENTS", **options) as documents:
        for document in map(dict[str, Any], documents):
            is_later = document.pop("AskedLater", False)
            assert is_later == (asked[document["Id"]] > "2020-01-12T99")
            for post in (document, *document.pop("Answers")):
                found[post["Id"]] = post
                if is_later:
                    assert "CommentCount" not in post
                    del expected[post["Id"]]["CommentCount"]
    assert found == expected


def test_titles_in_texts_are_of_the_first_date(tmp_path: Path, core: Core) -> None:
    host = "ale.stackexchange.com"
    early, between, late = (f"2020-01-{day}T10:00:00.000" for day in ("05", "15", "25"))
    addresses = " ".join(f"https://{host}/q/{id_}" for id_ in (2, 3, 4))
    posts = [
        question(1, Title="t", Body="b", CreationDate=early, LastEditDate=late),
        question(2, Title="new", Body="b", CreationDate=early, LastEditDate=between),
        question(3, Title="later", Body="b", CreationDate=between),
        question(4, Title="fabricated", Body="b", CreationDate=between),
    ]
    history = [
        event(1, 1, 2, early, Text=addresses),
        event(2, 1, 5, late, Text="edited"),
        event(3, 2, 1, early, Text="old"),
        event(4, 2, 4, between, Text="new"),
    ]
    dump = write_site(tmp_path / host, posts, history, PostLinks=[])
    make_set(dump, tmp_path / "set", core=core, drop_posts=[4])
    [entry, _] = read_set(tmp_path / "set")["corpus.jsonl"]
    assert entry["text"] == f"old https://{host}/q/3 https://{host}/q/4"


def test_each_part_is_of_its_date(site: tuple[Site, Path], tmp_path: Path, core: Core) -> None:
    over_time, dump = site
    report = make_set(dump, tmp_path / "set", core=core)
    found = read_set(tmp_path / "set")
    then, later = over_time.expect(12), over_time.expect(22)
    corpus = {id_: post for id_, post in then.items() if post["PostTypeId"] == 1}
    assert found["corpus.jsonl"] == [
        {"_id": str(id_), "title": post["Title"], "text": post["Body"]}
        for id_, post in sorted(corpus.items())
    ]
    asked = {
        i: p
        for i, p in later.items()
        if p["PostTypeId"] == 1 and p["CreationDate"] > "2020-01-12T99"
    }
    judgements: dict[tuple[int, int], int] = {}
    for link in over_time.tables["PostLinks"]:
        pair = link["PostId"], link["RelatedPostId"]
        is_made = link["CreationDate"] < "2020-01-22T99"
        if is_made and pair[0] in asked and pair[1] in corpus:
            judgements[pair] = max(judgements.get(pair, 0), {1: 1, 3: 2}[link["LinkTypeId"]])
    assert found["qrels/test.jsonl"] == [
        {"query-id": str(query), "corpus-id": str(id_), "score": score}
        for (query, id_), score in sorted(judgements.items())
    ]
    assert found["queries.jsonl"] == [
        {"_id": str(id_), "text": asked[id_]["Title"]} for id_ in sorted({q for q, _ in judgements})
    ]
    assert any(then.get(i, {}).get("Title") != p["Title"] for i, p in later.items() if i in corpus)
    assert 5 < len(found["queries.jsonl"]) < len(asked) < len(later) - len(then)
    assert (report.as_of, report.later_until) == (CORPUS, QUERIES)
    assert f"as of {QUERIES}" in str(report)
    assert f"until {QUERIES}" in (tmp_path / "set" / "README.md").read_text("utf-8")
    assert not report.strays
    assert report.tables["links"].nested == sum(
        link["CreationDate"] < ("2020-01-12T99" if link["PostId"] in corpus else "2020-01-22T99")
        for link in over_time.tables["PostLinks"]
        if link["PostId"] in corpus.keys() | asked.keys()
    )


@pytest.mark.parametrize(
    ("corpus", "queries", "message"),
    [
        ("2020-01-11", QUERIES, "of the corpus"),
        (CORPUS, "2020-01-21", "judgement"),
    ],
)
def test_the_walk_finds_what_is_later(
    site: tuple[Site, Path], corpus: str, queries: str, message: str, tmp_path: Path
) -> None:
    _, dump = site
    make_set(dump, tmp_path / "set")
    later = list(Walk(dump, corpus + END, queries + END).find_later(tmp_path / "set"))
    assert any(message in line for line in later)


@pytest.mark.parametrize(
    "filters", [{"min_score": 1}, {"tags": "ale,bock"}, {"min_answers": 1}, {"answered": True}]
)
def test_filters_apply_to_both_states(
    site: tuple[Site, Path], filters: Row, tmp_path: Path
) -> None:
    _, dump = site
    make_set(dump, tmp_path / "set", **filters)
    make_set(dump, tmp_path / "all")
    found, everything = read_set(tmp_path / "set"), read_set(tmp_path / "all")
    ids = {}
    for day in (CORPUS, QUERIES):
        with so2docs.documents(dump, as_of=day, jobs=1, fields="Id", **filters) as questions:
            ids[day] = {str(document["Id"]) for document in questions}
    kept = [entry for entry in everything["corpus.jsonl"] if entry["_id"] in ids[CORPUS]]
    assert found["corpus.jsonl"] == kept
    judged = [
        row
        for row in everything["qrels/test.jsonl"]
        if row["query-id"] in ids[QUERIES] and row["corpus-id"] in ids[CORPUS]
    ]
    assert found["qrels/test.jsonl"] == judged
    assert 0 < len(judged) < len(everything["qrels/test.jsonl"])


@pytest.mark.long
def test_the_same_bytes_in_any_way(site: tuple[Site, Path], tmp_path: Path) -> None:
    def convert(source: Path, path: Path, **way: Any) -> tuple[so2docs.Report, dict[str, bytes]]:
        return make_set(source, path, min_score=0, **way), read_bytes(path)

    check_any_way(site[1], tmp_path, convert, (5_000, 20_000))


def test_migrated_and_reused_ids(tmp_path: Path, core: Core) -> None:
    """Questions that came to the site between the dates, and rows of a shared id."""
    early, between, late = (f"2020-01-{day}T10:00:00.000" for day in ("05", "15", "25"))
    asked = {1: early, 2: early, 3: between, 4: between, 5: late}
    posts = [question(id_, CreationDate=date, Title="t", Body="b") for id_, date in asked.items()]
    events = [(1, 2, 36, between), (2, 3, 36, "2020-01-16T10:00:00.000"), (3, 4, 36, late)]
    pairs = [(3, 1), (3, 2), (4, 1), (5, 1), (1, 3), (3, 3)]
    links = [
        row(Id=n, PostId=q, RelatedPostId=id_, LinkTypeId=3, CreationDate=between)
        for n, (q, id_) in enumerate(pairs, 1)
    ]
    dump = write_site(tmp_path / "dump", posts, [event(*e) for e in events], PostLinks=links)
    make_set(dump, tmp_path / "set", core=core, settings={"queries_until": QUERIES})
    found = read_set(tmp_path / "set")
    assert [entry["_id"] for entry in found["corpus.jsonl"]] == ["1"]
    assert found["queries.jsonl"] == [{"_id": "3", "text": "t"}]
    assert found["qrels/test.jsonl"] == [{"query-id": "3", "corpus-id": "1", "score": 1}]


def test_a_set_of_duplicates_names_its_date(site: tuple[Site, Path], tmp_path: Path) -> None:
    options = {"recipe": "duplicates", "settings": {}, "site": "sample.stackexchange.com"}
    make_set(site[1], tmp_path / "set", **options)
    readme = (tmp_path / "set" / "README.md").read_text("utf-8")
    assert f"texts and links are those of {CORPUS}" in readme


def test_a_date_after_the_end_of_the_dump(
    site: tuple[Site, Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for until, is_told in (("2020-01-31", False), ("2020-02-01", True)):
        caplog.clear()
        make_set(site[1], tmp_path / until, settings={"queries_until": until})
        assert (f"the latest post until {until} is of 2020-01-28" in caplog.text) == is_told


REAL = (
    "alcohol.meta-2022-06",
    "archives/beer.stackexchange.com.7z",
    "archives/eosio.meta.stackexchange.com.7z",
    "bioinformatics-2017-09",
    "raspberrypi.meta-2019-03",
)


@pytest.mark.long
@pytest.mark.skipif(not DUMPS.exists(), reason=NO_DUMPS)
@pytest.mark.parametrize("share", [0.3, 0.6])
@pytest.mark.parametrize("name", REAL)
def test_published_dumps(
    name: str, share: float, tmp_path: Path, unpack: Callable[[Path], Path]
) -> None:
    dump = DUMPS / name
    rows = unpack(dump)
    posts = read_rows(rows, "Posts")
    days = sorted(post["CreationDate"][:10] for post in posts if post["PostTypeId"] == "1")
    corpus, queries = days[int(share * len(days))], days[int(0.95 * len(days))]
    settings = {"queries_until": queries, "links": "both"}
    make_set(dump, tmp_path / "set", as_of=corpus, settings=settings)
    walk = Walk(rows, corpus + END, queries + END)
    assert list(walk.find_later(tmp_path / "set")) == []
    ids = {entry["_id"] for entry in read_set(tmp_path / "set")["corpus.jsonl"]}
    assert ids == walk.list_corpus()
    tag = walk.find_usual_tag()
    filters = {"tags": tag, "min_score": 3}
    make_set(dump, tmp_path / "some", as_of=corpus, settings=settings, **filters)
    ids = {entry["_id"] for entry in read_set(tmp_path / "some")["corpus.jsonl"]}
    assert ids == walk.list_corpus(tag, min_score=3)
