"""`so2docs sqlite`: every value of the dump is in the database, whatever the order of the rows."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils
from support.command import run, run_python, start
from support.dumps import answer, question, row, write_dump
from support.flat_oracle import as_stored, read_back, rows_of, tables_in
from support.places import SAMPLES, published

import so2docs
from so2docs.errors import STARTS_OVER
from so2docs.extensions.sqlite.about import read_about
from so2docs.extensions.sqlite.texts import html_to_text
from so2docs.parse.bodies import converter
from so2docs.schema import DUMP

SITE = SAMPLES / "site"


def values(path: Path, sql: str, *parameters: object) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql, parameters).fetchall()


def test_every_value_is_that_of_an_independent_walk(tmp_path: Path) -> None:
    """The writer is that of flat tables, whose tests walk over published dumps."""
    tables = tables_in(SITE)
    only = ",".join(table.name for table in tables)
    made = so2docs.to_sqlite(SITE, tmp_path / "tables.db", only=only, jobs=1)
    assert set(made) == {table.name for table in tables}
    for table in tables:
        expected = as_stored(rows_of(SITE / table.file, table), "sqlite")
        assert read_back(tmp_path, table, "sqlite") == expected


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, so2docs.TablesReport]:
    """Make the database of a sample with all tables of the dump."""
    path = tmp_path_factory.mktemp("sqlite") / "q.db"
    return path, so2docs.to_sqlite(SITE, path)


def test_history_and_votes_are_left_out_by_default(
    sample: tuple[Path, so2docs.TablesReport], tmp_path: Path
) -> None:
    tables = {DUMP[name].stem for name in sample[1]}
    assert tables == {file.stem for file in SITE.glob("*.xml")} - {"PostHistory", "Votes"}
    made = so2docs.to_sqlite(SITE, tmp_path / "votes.db", only="posts,votes")
    assert [*made] == ["posts", "votes"]
    for name, table in made.items():
        rows = values(tmp_path / "votes.db", f"SELECT 1 FROM {DUMP[name].stem}")
        assert len(rows) == table.written > 0
    with pytest.raises(so2docs.OptionError, match="add posts to only"):
        so2docs.to_sqlite(SITE, tmp_path / "none.db", only="votes")


@pytest.mark.parametrize("real", published())
def test_indexed_words_of_a_published_dump_match_its_text(real: Path, tmp_path: Path) -> None:
    text = converter("text")
    assert text is not None
    so2docs.to_sqlite(real, tmp_path / "q.db", only="posts", jobs=1)
    for (body,) in values(tmp_path / "q.db", "SELECT Body FROM Posts WHERE PostTypeId < 3"):
        # If blocks of a body have no line break between them, only one of the parsers separates
        # their words. libxml2 before 2.14 does not resolve character names that are not in HTML 4
        # (&Ccaron;).
        indexed, body_text = unescape(html_to_text(body)), unescape(text(body))
        assert "".join(indexed.split()) == "".join(body_text.split())
    assert values(tmp_path / "q.db", "PRAGMA integrity_check") == [("ok",)]
    with closing(sqlite3.connect(tmp_path / "q.db")) as connection:
        connection.execute("INSERT INTO posts_fts(posts_fts) VALUES ('integrity-check')")


def posts(count: int) -> list[bytes]:
    """Make questions with an answer each, whose bodies have a word of their own."""
    return [
        made
        for n in range(1, count, 2)
        for made in (
            question(n, Title=f"t{n}", Tags=f"|a|b{n % 5}|", Body=f"<p>word{n} common</p>"),
            answer(n + 1, n, Body=f"<p>word{n + 1} common</p>"),
        )
    ]


def test_rows_in_any_order_and_repeated_ids(tmp_path: Path) -> None:
    rows = posts(400)
    so2docs.to_sqlite(write_dump(tmp_path / "a" / "Posts.xml", *rows), tmp_path / "a.db")
    mixed = [*rows]
    random.Random(3).shuffle(mixed)
    # A made-up id far above the others, in the middle, and rows that repeat an id.
    mixed.insert(200, question(1_000_000_001, Title="made up", Body="<p>far</p>"))
    mixed += [question(1, Title="again", Body="<p>later</p>"), answer(10, 7, Body="<p>later</p>")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("so2docs.extensions.tables.columns.SLICE_BYTES", 2_000)
        patch.setattr("so2docs.extensions.tables.visitors.BatchVisitor.slice_bytes", 2_000)
        made = so2docs.to_sqlite(
            write_dump(tmp_path / "b" / "Posts.xml", *mixed), tmp_path / "b.db", jobs=1
        )
    table = made["posts"]
    assert (table.repeated, table.written, table.unaccounted) == (2, len(rows) + 1, 0)
    [(repeated,)] = values(tmp_path / "b.db", "SELECT value FROM so2docs WHERE name = 'repeated'")
    assert json.loads(repeated) == {"posts": 2}
    for sql in (
        "SELECT * FROM Posts WHERE Id < 1000 ORDER BY Id",
        "SELECT rowid FROM posts_fts WHERE posts_fts MATCH 'common' ORDER BY rowid",
        "SELECT rowid FROM posts_fts WHERE posts_fts MATCH 'word77 OR word200 OR later'",
        "SELECT * FROM question_tags WHERE QuestionId < 1000",
        "SELECT * FROM tag_counts",
    ):
        assert values(tmp_path / "a.db", sql) == values(tmp_path / "b.db", sql)
    assert values(tmp_path / "b.db", "PRAGMA integrity_check") == [("ok",)]
    [(found,)] = values(tmp_path / "b.db", "SELECT rowid FROM posts_fts('far')")
    assert found == 1_000_000_001
    assert not values(tmp_path / "b.db", "SELECT 1 FROM sqlite_schema WHERE name = 'late'")


def test_strays_are_counted_and_kept(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "d" / "Posts.xml", *posts(3), row(PostTypeId=1), row(Id="x"))
    for is_new in (True, False):
        made = so2docs.to_sqlite(dump, tmp_path / "q.db")["posts"]
        assert made.strays == {"post_invalid_id": 1, "post_missing_id": 1}
        assert (made.rows, made.written, made.is_new) == (4, 2, is_new)
    assert any("strays" in path.name for path in tmp_path.iterdir())


def test_a_part_of_a_dump_and_a_former_date(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    flat, path = tmp_path / "flat", tmp_path / "q.db"
    run("sample", tmp_path, code=0)
    dump = tmp_path / "sample.stackexchange.com.7z"
    for number, filters in enumerate(({"min_score": 1}, {"as_of": "2024-02-01"})):
        so2docs.tables(dump, flat / str(number), format="sqlite", **filters)  # type: ignore[arg-type]
        made = so2docs.to_sqlite(dump, path, **filters, force=True)  # type: ignore[arg-type]
        assert made["posts"].written > 0
        for name in made:
            sql = f'SELECT * FROM "{DUMP[name].stem}"'
            assert values(path, sql) == values(flat / str(number) / "tables.db", sql)


def test_it_needs_no_pyarrow(tmp_path: Path) -> None:
    script = """
import sys
sys.modules["pyarrow"] = None
import so2docs
made = so2docs.to_sqlite(sys.argv[1], sys.argv[2])
print(made["posts"].written)
made = so2docs.to_sqlite(sys.argv[1], "part.db", min_score=1)
print(made["posts"].written)
"""
    result = run_python("-c", script, SITE, tmp_path / "q.db", cwd=tmp_path)
    count, some = map(int, result.stdout.splitlines())
    assert count > some > 0


def test_the_host_of_the_site(tmp_path: Path) -> None:
    path = tmp_path / "q.db"
    so2docs.to_sqlite(SITE, path, site="https://Beer.stackexchange.com/")
    assert read_about(str(path)).host == "alcohol.stackexchange.com"
    named = tmp_path / "tea.stackexchange.com"
    write_dump(named / "Posts.xml", *posts(3))
    so2docs.to_sqlite(named, tmp_path / "tea.db")
    assert read_about(str(tmp_path / "tea.db")).host == "tea.stackexchange.com"
    write_dump(tmp_path / "notstackexchange.com" / "Posts.xml", *posts(3))
    so2docs.to_sqlite(tmp_path / "notstackexchange.com", tmp_path / "other.db")
    assert read_about(str(tmp_path / "other.db")).host is None


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
    "collapse sourdough": {4},
    "collapsing sourdoughs": {4},
    '"smells wonderful"': {4},
    "nbsp OR li": set(),
}


def test_words_in_any_form_are_found(tmp_path: Path) -> None:
    titles = {1: "σίκερα, ἄνθρωπος", 2: "Ёжик пьёт чай", 3: "за\u0301мок crème",  # noqa: RUF001
              4: "sourdough collapses"}  # fmt: skip
    bodies = {1: "<p>beer</p>", 4: "<ul><li>smells&nbsp;wonderful</li></ul>"}
    rows = [
        question(n, Title=title, Body=bodies.get(n, "<p>σικερα</p>")) for n, title in titles.items()
    ]
    so2docs.to_sqlite(write_dump(tmp_path / "d" / "Posts.xml", *rows), tmp_path / "q.db")
    sql = "SELECT rowid FROM posts_fts WHERE posts_fts MATCH ?"
    found = {word: {post for (post,) in values(tmp_path / "q.db", sql, word)} for word in WORDS}
    assert found == WORDS


INDEXED = {
    "SELECT Id FROM questions WHERE OwnerUserId = 11": "Posts_OwnerUserId",
    "SELECT Id FROM questions WHERE CreationDate > '2024'": "Posts_PostTypeId_CreationDate",
    "SELECT Id FROM questions WHERE Score > 3": "Posts_PostTypeId_Score",
    "SELECT Score FROM Posts WHERE ParentId = 1": "Posts_ParentId",
    "SELECT QuestionId FROM question_tags WHERE Tag = 'bread'": "PRIMARY KEY",
    "SELECT Id FROM Comments WHERE PostId = 1": "Comments_PostId",
    "SELECT Id FROM answers WHERE LastEditorUserId = 11": "Posts_LastEditorUserId",
    "SELECT Title FROM Posts WHERE Id = 1": "INTEGER PRIMARY KEY",
}


def test_common_queries_use_an_index(sample: tuple[Path, so2docs.TablesReport]) -> None:
    for sql, name in INDEXED.items():
        [plan] = values(sample[0], f"EXPLAIN QUERY PLAN {sql}")
        assert plan[3].startswith("SEARCH")
        assert name in plan[3]


def test_sqlite_utils_knows_the_database(sample: tuple[Path, so2docs.TablesReport]) -> None:
    with closing(sqlite_utils.Database(sample[0])) as database:
        for stem in (DUMP[name].stem for name in sample[1]):
            assert database.table(stem).pks == ["Id"]
            indexes = database.table(stem).indexes
            assert all(i.name == f"idx_{stem}_{'_'.join(i.columns)}" for i in indexes)
        assert {view.name for view in database.views} == {"questions", "answers"}


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


def test_views_and_tags(tmp_path: Path) -> None:
    so2docs.to_sqlite(SAMPLES / "posts.xml", tmp_path / "q.db", only="posts")
    documents = list(so2docs.read(SAMPLES / "posts.jsonl"))
    assert values(tmp_path / "q.db", "SELECT Id, Title FROM questions ORDER BY 1") == [
        (document["Id"], document["Title"]) for document in documents
    ]
    answers = [(a["Id"], d["Id"]) for d in documents for a in d["Answers"]]
    sql = "SELECT Id, ParentId FROM answers ORDER BY 1"
    assert values(tmp_path / "q.db", sql) == sorted(answers)
    tags = Counter(tag for document in documents for tag in document.get("Tags", ()))
    assert dict(values(tmp_path / "q.db", "SELECT * FROM tag_counts")) == tags
    sql = "SELECT Tag, count(*) FROM question_tags GROUP BY Tag"
    assert dict(values(tmp_path / "q.db", sql)) == tags


def test_a_database_for_each_dump(tmp_path: Path) -> None:
    dumps = []
    for name in ("tea", "rain"):
        dumps.append(tmp_path / f"{name}.stackexchange.com")
        write_dump(dumps[-1] / "Posts.xml", *posts(5))
    broken = tmp_path / "broken"
    write_dump(broken / "Posts.xml", b"<row Id=1>")
    first = run("sqlite", *dumps, broken, "databases", "--update", cwd=tmp_path, code=3)
    assert "broken" in first.stderr
    databases = sorted(path.name for path in (tmp_path / "databases").glob("*.db"))
    assert databases == ["rain.stackexchange.com.db", "tea.stackexchange.com.db"]
    second = run("sqlite", *dumps, "databases", "--update", cwd=tmp_path, code=0)
    assert "2 sites: 2 up to date" in second.stderr
    done = run("sqlite", dumps[0], cwd=tmp_path, code=0)
    assert "posts                4 rows -> tea.stackexchange.com.db (" in done.stderr
    assert (tmp_path / "tea.stackexchange.com.db").is_file()


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs the signals of POSIX")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_midway_it_leaves_nothing(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    rows = (question(n, Title="a", Body="<p>" + "x y z " * 200) for n in range(1, 30_001))
    write_dump(tmp_path / "d" / "Posts.xml", *rows)
    before = {path.name for path in tmp_path.iterdir()}
    process = start("sqlite", "d", "q.db", cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    part = tmp_path / ".q.db.part" / "q.db"
    while not part.exists() or part.stat().st_size < 1_000_000:
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(number)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == code, stderr
    assert stderr.endswith(f"; {STARTS_OVER}\n")
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.long
def test_written_bytes_and_memory_at_two_sizes(tmp_path: Path) -> None:
    """Comments on old posts must not write pages in the middle, whatever the order of the rows."""
    script = """
import sys, so2docs
from so2docs.limits import peak_memory
so2docs.to_sqlite(sys.argv[1], sys.argv[2], jobs=1)
written = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())["wchar"]
print(peak_memory(), written)
"""
    if not os.path.exists("/proc/self/io"):
        pytest.skip("needs /proc")
    rng, peaks = random.Random(8), []
    for count in (30_000, 90_000):
        folder, path = tmp_path / str(count), tmp_path / f"{count}.db"
        write_dump(folder / "Posts.xml", *(question(n, Title="t", Body="x") for n in range(1, 900)))
        comments = (
            row(Id=n, PostId=rng.randrange(1, 900), Text=f"{n} " * 300) for n in range(count)
        )
        write_dump(folder / "Comments.xml", *comments)
        peak, written = map(int, run_python("-c", script, folder, path).stdout.split())
        peaks.append(peak)
        assert written < 2.5 * path.stat().st_size
    assert peaks[1] < peaks[0] * 1.15
    assert peaks[1] < 256 * 1024 * 1024


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs resource")
def test_sorting_for_an_index_takes_no_more_than_the_page_cache(tmp_path: Path) -> None:
    """Threads that sort would each hold as much as the page cache."""
    script = """
import sys
from resource import RUSAGE_SELF, getrusage
from so2docs.extensions.tables import sqlite_writer
connection = sqlite_writer.connect(sys.argv[1])
connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER, c TEXT, d INTEGER)")
rows = ((n, n * 7919 % 999_983, f"2016-01-01T00:00:{n:07}", n % 97) for n in range(2_400_000))
connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
before = getrusage(RUSAGE_SELF).ru_maxrss
connection.execute("CREATE INDEX i ON t (b, c, d)")
print((getrusage(RUSAGE_SELF).ru_maxrss - before) // 1024, sqlite_writer._CACHE_KIB // 1024)
"""
    grown, cache = map(int, run_python("-c", script, tmp_path / "d.db").stdout.split())
    assert grown < 2 * cache, grown
