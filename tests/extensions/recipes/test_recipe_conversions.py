"""Recipes in conversions: every record of published dumps equals that of the oracle."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict
from xml.etree import ElementTree

import pytest
from support import oracle_recipes, oracle_tables
from support.command import run_process
from support.formats_read_back import jsonl, without_nulls
from support.interruptions import stopped
from support.places import DUMPS, LONG, NO_DUMPS, SAMPLES

import so2docs
from so2docs.extensions.recipes.recipe import Recipe, Setting
from so2docs.schema import QUESTION_ATTRIBUTES

pytestmark = pytest.mark.long

HOSTS = {
    "cardano-2021-12": "cardano.stackexchange.com",
    "datascience.meta-2024-04": "datascience.meta.stackexchange.com",
    "dba.meta-2024-04": "dba.meta.stackexchange.com",
    "linguistics.meta-2020-12": "linguistics.meta.stackexchange.com",
    "mathoverflow.meta-2013-09": "meta.mathoverflow.net",
    "stackoverflow-first620-2019-06": "stackoverflow.com",
    "beer.stackexchange.com": None,
    "eosio.meta.stackexchange.com": None,
}
PUBLISHED = list(HOSTS) if LONG else ["dba.meta-2024-04", "beer.stackexchange.com"]
"""With SO2DOCS_LONG=1, all dumps."""
SITES = PUBLISHED if DUMPS.is_dir() else [pytest.param("", marks=pytest.mark.skip(NO_DUMPS))]
KNOWN: dict[str, dict[str, Any]] = {
    "preferences": {"recipe": "preferences"},
    "pairs": {"recipe": "pairs", "settings": {"form": "paired"}},
    "texts": {"recipe": "texts:titlebody_best_voted_answer"},
}
"""Recipes that make sets that people know, by the name of their oracle."""
Row = dict[str, Any]


@dataclass
class Site:
    """A published dump, unpacked, and its expected documents."""

    folder: Path
    given: str | None
    questions: list[Row]

    @property
    def host(self) -> str:
        return self.given or self.folder.name.replace("beer", "alcohol")

    def convert(self, output: Path, **options: Any) -> so2docs.Report:
        return so2docs.convert(self.folder, output, site=self.given, **options)

    def with_absolute_links(self, html: str) -> str:
        return oracle_recipes.with_absolute_links(html, self.host)


@pytest.fixture(scope="module", params=SITES)
def site(request: pytest.FixtureRequest, unpacked_dumps: Path) -> Site:
    folder = unpacked_dumps / request.param
    tables = {"users"} if (folder / "Users.xml").exists() else set()
    questions = oracle_tables.nest(folder, tables).documents
    return Site(folder, HOSTS[request.param], questions)


@pytest.fixture
def beer(unpacked_dumps: Path) -> Path:
    return unpacked_dumps / "beer.stackexchange.com"


def parquet(path: Path) -> list[Row]:
    import pyarrow.parquet as pq

    return [without_nulls(row) for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("name", KNOWN)
def test_every_record_of_known_sets(name: str, site: Site, tmp_path: Path) -> None:
    """The columns of the set equal those of the oracle; so2docs adds others for attribution."""
    oracle: Callable[..., list[Row]] = getattr(oracle_recipes, name)
    expected = oracle(site.questions, site.host, site.with_absolute_links)
    report = site.convert(tmp_path / "q.jsonl", body="html", jobs=2, **KNOWN[name])
    assert report.records == len(expected)
    for row, known in zip(jsonl(tmp_path / "q.jsonl"), expected, strict=True):
        assert {column: row[column] for column in known} == known


def test_files_for_the_hub_have_their_number(beer: Path, tmp_path: Path) -> None:
    """The number is known at the end; a conversion that is interrupted there resumes."""
    output = tmp_path / "train.jsonl"
    options: Row = {"recipe": "hub", "split": "500kB"}
    with stopped(os, "replace", lambda source, target: "00002-of-" in str(target)):
        so2docs.convert(beer, output, **options)
    report = so2docs.convert(beer, output, **options)
    names = sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".")
    assert names == [f"train-{n:05}-of-{report.files:05}.jsonl" for n in range(report.files or 0)]
    assert (report.files or 0) > 3
    records = [record for name in names for record in jsonl(tmp_path / name)]
    assert records == list(so2docs.documents(beer, recipe="hub"))
    assert not so2docs.convert(beer, output, **options).is_new
    shorter = so2docs.convert(beer, output, force=True, recipe="hub")
    assert [path.name for path in tmp_path.iterdir() if path.name[0] != "."] == [
        "train-00000-of-00001.jsonl"
    ]
    assert shorter.files == 1


def test_records_without_metadata(tmp_path: Path) -> None:
    options: Row = {"recipe": "qa", "site": "a.example", "body": "html"}
    dump = SAMPLES / "posts.xml"
    expected = list(so2docs.documents(dump, **options))
    for row in expected:
        del row["metadata"]
    so2docs.convert(dump, tmp_path / "q.jsonl", drop_fields="metadata", card=True, **options)
    assert jsonl(tmp_path / "q.jsonl") == expected
    so2docs.convert(dump, tmp_path / "q.parquet", drop_fields="metadata", **options)
    assert parquet(tmp_path / "q.parquet") == expected
    fields = [*QUESTION_ATTRIBUTES, "Answers"]
    so2docs.convert(dump, tmp_path / "f.jsonl", drop_fields="metadata", fields=fields, **options)
    assert jsonl(tmp_path / "f.jsonl") == expected


def test_linked_questions_are_in_one_share(beer: Path, tmp_path: Path) -> None:
    shares = {"split": "train=0.6,test=0.4", "recipe": "thread"}
    links = ElementTree.parse(beer / "PostLinks.xml").getroot()
    joined = [(int(link.attrib["PostId"]), int(link.attrib["RelatedPostId"])) for link in links]

    def ids(folder: Path, name: str) -> set[int]:
        return {row["metadata"]["qid"] for row in jsonl(folder / f"q-{name}.jsonl")}

    def joins(folder: Path) -> set[tuple[int, int]]:
        share = {id_: name for name in ("train", "test") for id_ in ids(folder, name)}
        return {(a, b) for a, b in joined if {a, b} <= share.keys() and share[a] != share[b]}

    for folder in ("all", "apart"):
        (tmp_path / folder).mkdir()
        apart = folder == "apart"
        report = so2docs.convert(
            beer, tmp_path / folder / "q.jsonl", without_linked=apart, **shares
        )
    before = joins(tmp_path / "all")
    assert before
    assert not joins(tmp_path / "apart")
    for name in ("train", "test"):
        lost = ids(tmp_path / "all", name) - ids(tmp_path / "apart", name)
        assert lost == {a for a, _ in before} & ids(tmp_path / "all", name)
    left_out = len({a for a, _ in before})
    assert report.linked_elsewhere == left_out == report.as_dict()["linked_elsewhere"]
    assert f"{'left out':<20} {left_out} questions linked to another share\n" in str(report)


def needs_links(site: Site) -> None:
    if not (site.folder / "PostLinks.xml").exists():
        pytest.skip("the dump has no links")


def pairs_of(folder: Path) -> dict[str, list[Row]]:
    return {path.parent.name: jsonl(path) for path in sorted(folder.glob("*/train.jsonl"))}


def test_duplicates(site: Site, tmp_path: Path) -> None:
    """Every pair equals that of the oracle, with any jobs and chunk size."""
    needs_links(site)
    tables = {"links", "users"} if (site.folder / "Users.xml").exists() else {"links"}
    questions = oracle_tables.nest(site.folder, tables).documents
    expected = oracle_recipes.duplicates(questions, site.with_absolute_links)
    for folder, options in {
        "one": {"jobs": 1},
        "two": {"jobs": 2, "chunk_bytes": 300_000},
    }.items():
        report = site.convert(tmp_path / folder, recipe="duplicates", body="html", **options)
        made = pairs_of(tmp_path / folder)
        assert len(made.pop("attribution")) == report.records
        assert made == expected
        assert (report.records, report.files) == (len(expected["title-title-pair"]), 4)
    assert not list(tmp_path.rglob("records*"))


def test_duplicates_of_questions_that_are_left_out(beer: Path, tmp_path: Path) -> None:
    so2docs.convert(beer, tmp_path / "all", recipe="duplicates")
    so2docs.convert(beer, tmp_path / "some", recipe="duplicates", sample="60%")
    so2docs.convert(beer, tmp_path / "some.jsonl", recipe="thread", sample="60%")
    kept = {row["metadata"]["qid"] for row in jsonl(tmp_path / "some.jsonl")}
    every = pairs_of(tmp_path / "all")["attribution"]
    expected = [row for row in every if kept >= {side["qid"] for side in row.values()}]
    assert pairs_of(tmp_path / "some")["attribution"] == expected
    assert 0 < len(expected) < len(every)


def counted(question: Row, added: int = 0) -> list[Row]:
    return [{"id": question["Id"], "answers": len(question["Answers"]) + added}]


class Counted(TypedDict):
    id: int
    answers: int


COUNTED = Recipe("counted", counted, Counted)
ADDED = Setting("added", "Add this to the number of answers.", int, 0)
BEST = Recipe("best", counted, Counted, answers="best", settings=(ADDED,))
OWN = "test_recipe_conversions:"


def test_ones_own_recipe(tmp_path: Path) -> None:
    dump = SAMPLES / "posts.xml"
    expected = [row for question in so2docs.documents(dump) for row in counted(question)]
    report = so2docs.convert(dump, tmp_path / "q.jsonl", recipe=f"{OWN}counted")
    assert report.recipe == f"{OWN}counted"
    assert jsonl(tmp_path / "q.jsonl") == expected
    so2docs.convert(dump, tmp_path / "q.parquet", recipe=f"{OWN}COUNTED", jobs=2)
    assert parquet(tmp_path / "q.parquet") == expected
    for added in (0, 5):
        best = [row | {"answers": min(row["answers"], 1) + added} for row in expected]
        made = so2docs.documents(dump, recipe=f"{OWN}BEST", settings={"added": added})
        assert list(made) == best


def test_ones_own_recipe_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def titles(q):\n    return [{'title': q['Title']}]\n")
    for name in ("pickle", "struct", "re", "difflib", "tqdm"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not a module of Python')\n")
    so2docs_command = str(Path(sys.executable).with_name("so2docs"))
    command = [so2docs_command, "convert", str(SAMPLES / "posts.xml"), "t.jsonl"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        [*command, "--recipe", "mine:titles", "-j", "2"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    titles = [{"title": q["Title"]} for q in so2docs.documents(SAMPLES / "posts.xml")]
    assert jsonl(tmp_path / "t.jsonl") == titles
    assert f"records (mine:titles) {len(titles)}" in result.stderr


def test_a_failed_recipe_can_be_corrected_and_resumed(tmp_path: Path) -> None:
    module = tmp_path / "mine.py"
    command = ["convert", SAMPLES / "posts.xml", "t.jsonl", "--recipe", "mine:titles"]
    module.write_text("def titles(q):\n    yield {'title': q['Titel']}\n")
    failed = run_process(*command, cwd=tmp_path)
    assert failed.returncode != 0
    assert "mine.py, line 2): KeyError: 'Titel'" in failed.stderr
    # Of another size, since bytecode is compared by size and by the second of the change.
    module.write_text("def titles(q):\n    yield {'title': q['Title']}  # Mended.\n")
    run_process(*command, cwd=tmp_path, code=0)
    titles = [{"title": q["Title"]} for q in so2docs.documents(SAMPLES / "posts.xml")]
    assert jsonl(tmp_path / "t.jsonl") == titles
    assert "up to date" in run_process(*command, cwd=tmp_path, code=0).stderr
    module.write_text("def titles(q):\n    yield {'title': q['Title'].upper()}\n")
    assert "exists" in run_process(*command, cwd=tmp_path, code=1).stderr


def tsv(path: Path) -> list[str]:
    header, *rows = path.read_text(encoding="utf-8").splitlines()
    assert header == "query-id\tcorpus-id\tscore"
    return rows


def set_of(folder: Path) -> tuple[list[Row], list[Row], list[str]]:
    files = ["README.md", "corpus.jsonl", "qrels", "queries.jsonl"]
    assert sorted(path.name for path in folder.iterdir() if path.name[0] != ".") == files
    qrels = tsv(folder / "qrels" / "test.tsv")
    judged = jsonl(folder / "qrels" / "test.jsonl")
    assert ["\t".join(map(str, row.values())) for row in judged] == qrels
    assert all(isinstance(row["score"], int) for row in judged)
    return jsonl(folder / "corpus.jsonl"), jsonl(folder / "queries.jsonl"), qrels


def test_retrieval_set(site: Site, tmp_path: Path) -> None:
    needs_links(site)
    questions = oracle_tables.nest(site.folder, {"links"}).documents
    expected = oracle_recipes.beir(questions, str)
    for jobs, folder in enumerate([tmp_path / "one", tmp_path / "two"], 1):
        options: Row = {"jobs": jobs, "chunk_bytes": 300_000, "body": "html"}
        report = so2docs.convert(site.folder, folder, recipe="beir", **options)
        assert set_of(folder) == expected
        assert report.records == sum(map(len, expected))
        assert (report.output, report.files) == (str(folder), 4)
        again = so2docs.convert(site.folder, folder, recipe="beir", **options)
        assert not again.is_new
        for name in ("output", "files", "output_bytes", "records", "questions", "without_record"):
            assert getattr(again, name) == getattr(report, name)
    assert not list(tmp_path.rglob("records*"))


def test_rejected_answers_are_not_relevant(beer: Path, tmp_path: Path) -> None:
    so2docs.convert(beer, tmp_path / "all", recipe="beir")
    so2docs.convert(beer, tmp_path / "some", recipe="beir", sample="60%")
    corpus, queries, qrels = set_of(tmp_path / "some")
    corpus_ids = {entry["_id"] for entry in corpus}
    pairs = [row.split("\t")[:2] for row in qrels]
    every = [row.split("\t")[:2] for row in set_of(tmp_path / "all")[2]]
    assert pairs == [pair for pair in every if corpus_ids.issuperset(pair)]
    assert 0 < len(pairs) < len(every)
    assert [query["_id"] for query in queries] == list(dict.fromkeys(query for query, _ in pairs))
