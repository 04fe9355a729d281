"""`so2docs sqlite`: rows agree with the documents, and documents are returned unchanged."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils
from support.command import run, run_python, start
from support.places import SAMPLES, real_dumps

import so2docs
from so2docs.errors import STARTS_OVER
from so2docs.extensions.sqlite.about import connect_to_site, read_about
from so2docs.extensions.sqlite.rows import html_to_text, stored_documents
from so2docs.parse.bodies import converter

Document = dict[str, Any]


def counted(documents: list[Document]) -> Counter[str]:
    """Count the rows of each table, only from the documents."""
    counts: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    users: set[int] = set()
    for question in documents:
        tags.update(set(question.get("Tags", ())))
        for post in (question, *question["Answers"]):
            counts["answers" if "ParentId" in post else "questions"] += 1
            counts["links"] += len(post.get("Links", ()))
            counts["votes"] += len(post.get("Votes", ()))
            counts["comments"] += len(post.get("Comments", ()))
            for record in (post, *post.get("Comments", ())):
                ids = (record.get(f"{key}UserId") for key in ("Owner", "LastEditor", ""))
                users.update(user for user in ids if user is not None)
    counts["tags"], counts["question_tags"] = len(tags), tags.total()
    has_users = any(
        name in post for q in documents for post in (q, *q["Answers"]) for name in ("Owner",)
    )
    counts["users"] = len(users) if has_users else 0
    return +counts


def rows_of(path: Path) -> Counter[str]:
    return +Counter(read_about(str(path)).rows)


def stored(path: Path, number: int = 0) -> Iterator[Document]:
    about = read_about(str(path))
    site = about.sites[number]
    with closing(connect_to_site(about, site)) as connection:
        yield from stored_documents(connection)


def values(path: Path, sql: str, *parameters: object) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql, parameters).fetchall()


@pytest.fixture(scope="module", params=real_dumps())
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A published dump with all of its tables, as an output and as a database."""
    source: Path = request.param
    folder = tmp_path_factory.mktemp("sqlite")
    tables = {"Comments": "comments", "PostLinks": "links", "Votes": "votes", "Users": "users"}
    nest = [
        name
        for file, name in tables.items()
        if source.suffix == ".7z" or (source.parent / f"{file}.xml.gz").exists()
    ]
    output = folder / "questions.jsonl.gz"
    so2docs.convert(source, output, nest=nest, jobs=1)
    so2docs.to_sqlite(output, folder / "q.db")
    return list(so2docs.read(output)), folder / "q.db"


def test_rows_of_every_table_of_a_published_dump(real: tuple[list[Document], Path]) -> None:
    documents, path = real
    assert rows_of(path) == counted(documents)
    for table, count in rows_of(path).items():
        assert values(path, f"SELECT count(*) FROM {table}") == [(count,)]


def test_documents_of_a_published_dump_come_back(real: tuple[list[Document], Path]) -> None:
    documents, path = real
    chosen = random.Random(1).sample(documents, min(50, len(documents)))
    about = read_about(str(path))
    with closing(connect_to_site(about, about.sites[0])) as connection:
        for document in chosen:
            assert next(stored_documents(connection, document["Id"])) == document


def test_keys_references_and_index_of_a_published_dump_hold(
    real: tuple[list[Document], Path],
) -> None:
    _, path = real
    assert values(path, "PRAGMA integrity_check") == [("ok",)]
    assert values(path, "PRAGMA foreign_key_check") == []
    with closing(sqlite3.connect(path)) as connection:
        # This raises an error if the full-text index and its table differ.
        connection.execute("INSERT INTO texts_fts(texts_fts, rank) VALUES ('integrity-check', 1)")


def test_indexed_words_of_a_published_dump_match_its_text(
    real: tuple[list[Document], Path],
) -> None:
    text = converter("text")
    assert text is not None
    documents, _ = real
    for post in [post for q in documents for post in (q, *q["Answers"])]:
        # If blocks of a body have no line break between them, only one of the parsers separates
        # their words. libxml2 before 2.14 does not resolve character names that are not in HTML 4
        # (&Ccaron;).
        indexed, body_text = unescape(html_to_text(post["Body"])), unescape(text(post["Body"]))
        assert "".join(indexed.split()) == "".join(body_text.split())


SITE = SAMPLES / "site" / "questions.jsonl"


def test_every_sample_comes_back(tmp_path: Path) -> None:
    for name in ("posts", "grouped", "old-tags", "values", "repaired", "empty"):
        database = so2docs.to_sqlite(SAMPLES / f"{name}.jsonl", tmp_path / f"{name}.db")
        expected = list(so2docs.read(SAMPLES / f"{name}.jsonl"))
        assert list(stored(tmp_path / f"{name}.db")) == expected
        assert database.rows["questions"] == len(expected)


def test_tables_come_back_in_the_order_of_their_keys(tmp_path: Path) -> None:
    so2docs.to_sqlite(SITE, tmp_path / "q.db")
    actual = "".join(json.dumps(document) + "\n" for document in stored(tmp_path / "q.db"))
    expected = "".join(json.dumps(document) + "\n" for document in so2docs.read(SITE))
    assert actual == expected
    assert rows_of(tmp_path / "q.db") == counted(list(so2docs.read(SITE)))


def test_values_without_a_column_are_kept(tmp_path: Path) -> None:
    document: Document = {
        "Id": 1,
        "Score": "a lot",
        "ViewCount": None,
        "Title": 7,
        "Unknown": {"deep": [1]},
        "Owner": {"DisplayName": "no id"},
        "Answers": [{"Id": 2, "Tags": ["of an answer"]}, {"Id": 1_000, "Position": "taken"}],
    }
    so2docs.to_sqlite([document], tmp_path / "q.db")
    assert list(stored(tmp_path / "q.db")) == [document]
    assert values(tmp_path / "q.db", "SELECT Score, Title FROM questions") == [(None, None)]


def test_answers_keep_their_order(tmp_path: Path) -> None:
    output = tmp_path / "votes.jsonl.gz"
    so2docs.convert(SAMPLES / "votes.xml", output, answers_by="votes")
    so2docs.to_sqlite(output, tmp_path / "q.db")
    assert list(stored(tmp_path / "q.db")) == list(so2docs.read(output))


DROPPED = (
    "Answers.ParentId,Comments.PostId,Answers.Links.PostId",
    "OwnerUserId,Answers.Owner,Comments.User",
    "Tags,Title,Answers.Comments",
    "Owner.Id,Comments.User.DisplayName",
    "Answers",
)


def test_outputs_without_some_fields_come_back(tmp_path: Path) -> None:
    for number, names in enumerate(DROPPED):
        output, path = tmp_path / f"{number}.jsonl", tmp_path / f"{number}.db"
        so2docs.convert(SAMPLES / "site", output, nest="all", drop_fields=names)
        so2docs.to_sqlite(output, path)
        assert list(stored(path)) == list(so2docs.read(output))
        assert values(path, "PRAGMA foreign_key_check") == []


def test_a_dump_is_as_good_as_its_output(tmp_path: Path) -> None:
    so2docs.to_sqlite(SAMPLES / "site", tmp_path / "dump.db", nest="all,users")
    so2docs.to_sqlite(SITE, tmp_path / "output.db")
    assert list(stored(tmp_path / "dump.db")) == list(stored(tmp_path / "output.db"))
    assert rows_of(tmp_path / "dump.db") == rows_of(tmp_path / "output.db")


def test_several_sites(tmp_path: Path) -> None:
    names = ("posts", "grouped", "site")
    outputs = []
    for name in names:
        source = SAMPLES / name if name == "site" else SAMPLES / f"{name}.xml"
        outputs.append(tmp_path / f"{name}.stackexchange.com.jsonl.gz")
        nest = ["all"] if name == "site" else []
        host = f"{name}.stackexchange.com"
        so2docs.convert(source, outputs[-1], nest=nest, site_field="Site", site=host)
    path = tmp_path / "sites.db"
    so2docs.to_sqlite(outputs, path, site_field="Site")
    sites = read_about(str(path)).sites
    assert [site.host for site in sites] == sorted(f"{name}.stackexchange.com" for name in names)
    for number, site in enumerate(sites):
        output = tmp_path / f"{site.name}.jsonl.gz"
        assert list(stored(path, number)) == list(so2docs.read(output))
        assert site.overview["questions"] == len(list(so2docs.read(output)))
    assert values(path, "PRAGMA foreign_key_check") == []
    assert values(path, "SELECT count(*) FROM questions WHERE Id = 1")[0][0] > 1
    rows = values(
        path,
        "SELECT Site, questions.Id FROM texts_fts "
        "JOIN questions ON questions.Row = texts_fts.rowid WHERE texts_fts MATCH 'kettle'",
    )
    assert rows == [("site.stackexchange.com", 1)]


def test_the_address_of_the_site_is_a_host(tmp_path: Path) -> None:
    path = tmp_path / "q.db"
    so2docs.to_sqlite(SAMPLES / "posts.xml", path, site="https://Beer.stackexchange.com/")
    assert [site.host for site in read_about(str(path)).sites] == ["alcohol.stackexchange.com"]
    with pytest.raises(so2docs.OptionError, match=r"x\.com/users"):
        so2docs.to_sqlite(SAMPLES / "posts.xml", tmp_path / "bad.db", site="x.com/users")
    assert not (tmp_path / "bad.db").exists()


def test_the_file_name_determines_an_unrecorded_site(tmp_path: Path) -> None:
    outputs = [tmp_path / "tea.stackexchange.com.jsonl", tmp_path / "rain.jsonl"]
    for output in outputs:
        output.write_bytes((SAMPLES / "posts.jsonl").read_bytes())
    so2docs.to_sqlite(outputs, tmp_path / "q.db", site_field="From")
    sites = values(tmp_path / "q.db", 'SELECT DISTINCT "From" FROM questions ORDER BY 1')
    assert sites == [("rain",), ("tea.stackexchange.com",)]
    assert [site.host for site in read_about(str(tmp_path / "q.db")).sites] == [
        None,
        "tea.stackexchange.com",
    ]


@pytest.mark.parametrize("search", ["all", "titles", "none"])
def test_search_finds_words(search: Any, tmp_path: Path) -> None:
    path = tmp_path / "q.db"
    so2docs.to_sqlite(SAMPLES / "posts.jsonl", path, search=search)
    sql = "SELECT count(*) FROM texts_fts WHERE texts_fts MATCH ?"
    if search == "none":
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            values(path, sql, "sourdough")
        return
    bodies = int(search == "all")
    # The names of HTML tags are not words of a post.
    counts = {"sourdough collapse": 1, "collapsing sourdoughs": 1, "nbsp OR li": 0}
    for words, count in {**counts, '"smells wonderful"': bodies}.items():
        assert values(path, sql, words) == [(count,)], words


WORDS = {
    "σικερα": {1, 2, 3},
    "σίκερα": {1},
    "ΣΊΚΕΡΑ": {1},
    "ανθρωπος": {1},
    "ежик": {2},
    "ёжик": {2},
    "замок": {3},
    "чай": {2},
    "чаи": set(),
    "creme": {3},
}


def test_greek_and_cyrillic_words_are_found_without_accents(tmp_path: Path) -> None:
    posts = {1: "σίκερα, ἄνθρωπος", 2: "Ёжик пьёт чай", 3: "за\u0301мок crème"}  # noqa: RUF001
    documents = [
        {"Id": post_id, "PostTypeId": 1, "Title": title, "Body": "<p>σικερα</p>", "Answers": []}
        for post_id, title in posts.items()
    ]
    documents[0]["Body"] = "<p>beer</p>"
    so2docs.to_sqlite(documents, tmp_path / "q.db")
    sql = "SELECT rowid FROM texts_fts WHERE texts_fts MATCH ?"
    assert {
        word: {row_id for (row_id,) in values(tmp_path / "q.db", sql, word)} for word in WORDS
    } == WORDS
    with closing(sqlite3.connect(tmp_path / "q.db")) as connection:
        connection.execute("INSERT INTO texts_fts(texts_fts, rank) VALUES ('integrity-check', 1)")


def test_answer_counts_match_the_rows(tmp_path: Path) -> None:
    path = tmp_path / "q.db"
    so2docs.to_sqlite(SAMPLES / "posts.jsonl", path)
    count = "(SELECT count(*) FROM answers a WHERE a.ParentId = q.Id)"
    sql = f"SELECT Id, {count} FROM questions q ORDER BY 1"
    assert values(path, "SELECT Id, Answers FROM questions ORDER BY 1") == values(path, sql)


COVERED = (
    "SELECT Id FROM questions WHERE Score > 3 AND Answers > 2 ORDER BY Id DESC",
    "SELECT Id FROM questions WHERE Answers = 0 ORDER BY Score DESC, Id DESC",
    "SELECT Id, ParentId FROM answers WHERE Score > 3 ORDER BY Id DESC",
)
"""Queries of lists and filters, which need not read the rows of posts."""

INDEXED = {
    "SELECT Id FROM questions WHERE OwnerUserId = 11": "questions_OwnerUserId",
    "SELECT Id FROM questions WHERE CreationDate > '2024'": "questions_CreationDate",
    "SELECT Id FROM questions WHERE Score > 3": "questions_Score",
    "SELECT Id FROM answers WHERE ParentId = 1": "answers_ParentId",
    "SELECT QuestionId FROM question_tags WHERE Tag = 'bread'": "PRIMARY KEY",
    "SELECT Id FROM comments WHERE PostId = 1": "comments_PostId",
    "SELECT Id FROM answers WHERE LastEditorUserId = 11": "answers_LastEditorUserId",
}


def test_common_queries_use_an_index(tmp_path: Path) -> None:
    so2docs.to_sqlite(SITE, tmp_path / "q.db")
    plans = {
        sql: [row[3] for row in values(tmp_path / "q.db", f"EXPLAIN QUERY PLAN {sql}")]
        for sql in (*COVERED, *INDEXED)
    }
    assert all(len(plan) == 1 for plan in plans.values())
    assert all("COVERING INDEX" in plans[sql][0] for sql in COVERED)
    for sql, name in INDEXED.items():
        assert plans[sql][0].startswith("SEARCH")
        assert name in plans[sql][0]


@pytest.mark.parametrize("site_field", [None, "Site"])
def test_sqlite_utils_knows_the_database(site_field: str | None, tmp_path: Path) -> None:
    so2docs.to_sqlite(SITE, tmp_path / "q.db", site_field=site_field)
    with closing(sqlite_utils.Database(tmp_path / "q.db")) as database:
        texts = database.table("texts")
        assert texts.detect_fts() == "texts_fts"
        assert [row["Id"] for row in texts.search("kettle")][:1] == [1]
        site = [site_field] if site_field else []
        for name in ("questions", "answers"):
            table = database.table(name)
            assert table.pks == [*site, "Id"]
            assert all(
                index.name == f"idx_{name}_{'_'.join(index.columns)}"
                for index in table.indexes
                if index.origin == "c"
            )
        references = {
            (*key.columns, key.other_table) for key in database.table("answers").foreign_keys
        }
        assert (*site, "ParentId", "questions") in references
        assert {view.name for view in database.views} == {"posts", "accepted"}


def test_other_imports_of_sqlite_utils_are_complete(tmp_path: Path) -> None:
    """The import without pandas and NumPy must not stay in `sys.modules`."""
    script = f"""
import sys, so2docs
so2docs.to_sqlite({str(SITE)!r}, {str(tmp_path / "q.db")!r}, progress=False)
assert not {{"pandas", "numpy", "sqlite_utils"}} & sys.modules.keys()
import sqlite_utils.db
assert sqlite_utils.db.pd is not None
"""
    run_python("-c", script)


@pytest.mark.parametrize("site_field", [None, "Site"])
def test_views_hold_posts_and_accepted_answers(site_field: str | None, tmp_path: Path) -> None:
    sources = [SAMPLES / "posts.jsonl", SAMPLES / "grouped.jsonl"][: 2 if site_field else 1]
    so2docs.to_sqlite(sources, tmp_path / "q.db", site_field=site_field)
    documents = [document for source in sources for document in so2docs.read(source)]
    posts = Counter(
        (post["Id"], document["Id"], post.get("Title"), post["Score"])
        for document in documents
        for post in (document, *document["Answers"])
    )
    sql = "SELECT Id, QuestionId, Title, Score FROM posts"
    assert Counter(values(tmp_path / "q.db", sql)) == posts
    accepted = Counter(
        (document["Id"], answer["Id"], document["Title"], answer["Body"])
        for document in documents
        for answer in document["Answers"]
        if answer["Id"] == document.get("AcceptedAnswerId")
    )
    sql = "SELECT QuestionId, AnswerId, Title, Answer FROM accepted"
    assert Counter(values(tmp_path / "q.db", sql)) == accepted
    assert accepted


def test_the_command(tmp_path: Path) -> None:
    result = run("sqlite", SITE, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (0, "")
    assert "questions            3\nanswers              3\n" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".questions.db.record",
        "questions.datasette.yaml",
        "questions.db",
        "questions.metadata.json",
    ]
    again = run("sqlite", SITE, cwd=tmp_path, code=0)
    assert "questions.db: is up to date" in again.stderr
    other = run("sqlite", SITE, "--search=titles", cwd=tmp_path, code=1)
    assert re.search(r"questions\.db: exists, .* \(with other --search\)", other.stderr)
    forced = run("sqlite", SITE, "questions.db", "--force", "--quiet", cwd=tmp_path)
    assert (forced.returncode, forced.stderr) == (0, "")


REFUSED = [
    (["nope.jsonl.gz"], 1, "nope.jsonl.gz: cannot be read: No such file"),
    (["a.jsonl", "b.jsonl", "q.db"], 2, "for several inputs, name a column with --site-field"),
    (["a.jsonl", "--site-field", "Score"], 2, "must be a name that no column has"),
    (["a.jsonl", "--nest", "users"], 2, "is an output, but --nest applies only to dumps"),
    (["a.jsonl", "nope/q.db"], 1, "nope/q.db: the folder nope does not exist"),
    (["cut.jsonl.gz", "q.db"], 1, "cut.jsonl.gz: is damaged"),
    (["array.json", "q.db"], 1, "is a JSON array; give an output of JSON lines"),
    (["noid.jsonl", "q.db"], 1, "noid.jsonl: line 1: Id: is missing"),
    (["twice.jsonl", "q.db"], 1, "twice.jsonl: questions: Id 1 occurs twice"),
    (["rows.xml", "q.db"], 1, "is truncated"),
]


def test_refuses_unsupported_inputs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_bytes((SAMPLES / "posts.jsonl").read_bytes())
    so2docs.convert(SAMPLES / "posts.xml", tmp_path / "cut.jsonl.gz")
    data = (tmp_path / "cut.jsonl.gz").read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(data[:-40])
    (tmp_path / "array.json").write_text('[\n{"Id": 1}\n]\n')
    (tmp_path / "noid.jsonl").write_text('{"Title": "x"}\n')
    (tmp_path / "twice.jsonl").write_text('{"Id": 1}\n{"Id": 1}\n')
    (tmp_path / "rows.xml").write_bytes((SAMPLES / "posts.xml").read_bytes()[:5000])
    before = {path.name for path in tmp_path.iterdir()}
    for arguments, code, message in REFUSED:
        result = run("sqlite", *arguments, cwd=tmp_path, code=code)
        assert message in result.stderr
        assert "Traceback" not in result.stderr
        assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs the limits of POSIX")
def test_a_full_disk_while_writing(tmp_path: Path) -> None:
    script = """
import resource, sys
import so2docs
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
documents = ({"Id": n, "Body": "<p>" + "x y z " * 900, "Answers": []} for n in range(1, 40_000))
try:
    so2docs.to_sqlite(documents, "q.db")
except so2docs.So2docsError as error:
    print(error)
"""
    result = run_python("-c", script, cwd=tmp_path)
    assert result.stdout.startswith("q.db: ")
    assert "disk" in result.stdout
    assert list(tmp_path.iterdir()) == []


def test_an_existing_database_stays_if_the_next_one_fails(tmp_path: Path) -> None:
    so2docs.to_sqlite(SITE, tmp_path / "q.db")
    before = (tmp_path / "q.db").read_bytes()
    with pytest.raises(so2docs.OutputError):
        so2docs.to_sqlite([{"Id": 1}, {"Id": 2, "Answers": [{}]}], tmp_path / "q.db", force=True)
    assert (tmp_path / "q.db").read_bytes() == before
    assert not (tmp_path / "q.db.part").exists()


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs the signals of POSIX")
@pytest.mark.parametrize(
    ("phase", "number", "code"), [("rows", signal.SIGINT, 130), ("later", signal.SIGTERM, 143)]
)
def test_stopped_midway_it_leaves_nothing(
    phase: str, number: signal.Signals, code: int, tmp_path: Path
) -> None:
    line = json.dumps({"Id": 0, "Title": "a", "Body": "<p>" + "x y z " * 200, "Answers": []})
    with (tmp_path / "q.jsonl").open("w") as file:
        file.writelines(line.replace("0", str(n), 1) + "\n" for n in range(1, 30_001))
    before = {path.name for path in tmp_path.iterdir()}
    process = start("sqlite", "q.jsonl", "q.db", cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    part = tmp_path / "q.db.part"
    while not part.exists() or (phase == "later" and part.stat().st_size < 25_000_000):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(number)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == code, stderr
    assert stderr.endswith(f"; {STARTS_OVER}\n")
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs the signals of POSIX")
def test_killed_midway_it_leaves_no_database_and_starts_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    script = """
import os, signal, sys
import so2docs
def documents():
    for n in range(1, 3001):
        if n == 2000:
            os.kill(os.getpid(), signal.SIGKILL)
        yield {"Id": n, "Body": "<p>" + "x y z " * 300, "Answers": []}
so2docs.to_sqlite(documents(), sys.argv[1])
"""
    path = tmp_path / "q.db"
    run_python("-c", script, path, code=-signal.SIGKILL)
    names = {entry.name for entry in tmp_path.iterdir()}
    assert not any(name.endswith((".db", ".json")) for name in names)
    assert {"q.db.part", ".q.db.lock"} < names  # The folder of the search index is also left.
    with caplog.at_level("INFO", "so2docs"):
        so2docs.to_sqlite(SITE, path)
    assert caplog.messages == [f"{path}.part: is left from an interrupted run; starting over"]
    assert list(stored(path)) == list(so2docs.read(SITE))
    assert {entry.name for entry in tmp_path.iterdir()} == {
        ".q.db.record",
        "q.db",
        "q.metadata.json",
        "q.datasette.yaml",
    }


@pytest.mark.long
def test_memory_does_not_grow_with_the_output(tmp_path: Path) -> None:
    script = """
import sys
import so2docs
from so2docs.processes.worker import peak_memory
body = "<p>" + "word " * 1600 + "</p>"
documents = (
    {"Id": n, "Title": f"t{n}", "Body": body, "Tags": ["a", f"b{n % 99}"], "Answers": []}
    for n in range(int(sys.argv[1]))
)
so2docs.to_sqlite(documents, sys.argv[2])
print(peak_memory())
"""
    peaks = []
    for number in (5_000, 15_000):
        result = run_python("-c", script, number, tmp_path / f"{number}.db")
        peaks.append(int(result.stdout))
    # The first fills SQLite's cache of 32 MiB; the second is three times as large.
    assert peaks[1] < peaks[0] * 1.15
    assert peaks[1] < 256 * 1024 * 1024


def test_a_database_says_how_its_documents_were_made(tmp_path: Path) -> None:
    site = tmp_path / "beer.stackexchange.com"
    site.mkdir()
    shutil.copyfile(SAMPLES / "posts.xml", site / "Posts.xml")
    so2docs.convert(site, tmp_path / "q.jsonl.gz", jobs=1)
    with so2docs.open(tmp_path / "q.jsonl.gz") as docs:
        provenance = docs.provenance
    assert provenance is not None
    so2docs.to_sqlite(tmp_path / "q.jsonl.gz", tmp_path / "output.db")
    so2docs.to_sqlite(site, tmp_path / "dump.db")
    for name in ("output.db", "dump.db"):
        about = read_about(str(tmp_path / name))
        (record,) = about.provenance
        assert record is not None
        assert record["input"] == provenance.as_dict()["input"]
        assert record["counts"] == provenance.counts
        # The name of the output does not contain the site.
        assert about.sites[0].host == "alcohol.stackexchange.com"
    (tmp_path / ".q.jsonl.gz.index").unlink()
    so2docs.to_sqlite(tmp_path / "q.jsonl.gz", tmp_path / "unknown.db")
    about = read_about(str(tmp_path / "unknown.db"))
    assert (about.provenance, about.sites[0].host) == ([None], None)
