"""The sections of docs/rebuild.md about tables: every row arrives where the sets are loaded.

Schemas are those that the makers of the sets published, as names and types of columns. PostgreSQL
is Debian's (`apt-get install postgresql`).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import py7zr
import pyarrow.parquet as pq
import pytest
from support.dumps import answer, question, row, write_dump
from support.flat_oracle import rows_of
from support.places import CHECKOUT
from support.readers import import_reader
from support.servers import Command, make_short_folder, run_postgres

import so2docs
from so2docs.extensions.event_names import CLOSE_REASONS, HISTORY_TYPES
from so2docs.schema import (
    DUMP,
    LINK_TYPES,
    POSTS,
    TYPE_NAMES,
    VOTE_TYPES,
    Table,
)

duckdb = pytest.importorskip("duckdb")

Rows = list[tuple[Any, ...]]
Query = Callable[[str], Rows]

PAGE = (CHECKOUT / "docs" / "rebuild.md").read_text(encoding="utf-8")
ARCHIVES = ("beer.stackexchange.com", "eosio.meta.stackexchange.com")
SCHEMAS = {
    path.stem: path.read_text(encoding="utf-8")
    for path in (CHECKOUT / "tests" / "documentation" / "schemas").iterdir()
}
"""Statements that create the tables of each set, with the columns that its makers published."""


def columns_of(name: str) -> dict[str, dict[str, str]]:
    """Return the types of the columns of each table of a set."""
    tables = re.findall(r"CREATE TABLE (\w+) \((.*?)^\);", SCHEMAS[name], re.DOTALL | re.MULTILINE)
    return {
        table: dict(re.findall(r"^ +(\w+) (\w+)", body, re.MULTILINE)) for table, body in tables
    }


def sql_of(name: str) -> str:
    """Return the SQL of a file that the page names."""
    return (CHECKOUT / "samples" / "rebuild" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def small_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with texts that are hard for CSV, and rows whose post is missing."""
    folder = tmp_path_factory.mktemp("hard") / "tea.stackexchange.com"
    sample = CHECKOUT / "so2docs" / "sample" / "sample.stackexchange.com.7z"
    with py7zr.SevenZipFile(sample) as archive:
        archive.extractall(folder)
    date = {"CreationDate": "2019-02-28T23:59:59.900"}
    event = {"PostId": 1, "UserId": 11, "PostHistoryTypeId": 5, **date}
    user = {"Reputation": 505, "LastAccessDate": date["CreationDate"], **date}
    added = {
        "Votes": [row(Id=9001, PostId=999, VoteTypeId=2, **date)],
        "PostLinks": [row(Id=9001, PostId=1, RelatedPostId=999, LinkTypeId=3, **date)],
        "Tags": [row(Id=9001, TagName="c++", Count=1, ExcerptPostId=999)],
        "PostHistory": [row(Id=9001, Comment="101", **{**event, "PostHistoryTypeId": 10})],
    }
    hard = ('a,"b"\n\\.\nc', "\\.", "x\r\ny", "NULL", "é 🍺", "", "\\N", "'")
    for n, text in enumerate(hard, 8001):
        for table, new in (
            ("Posts", answer(n, 1, Body=text, OwnerUserId=-1 if n % 2 else 12, **date)),
            ("Comments", row(Id=n, PostId=1, UserId=12, Text=text or "-", Score=0, **date)),
            ("Users", row(Id=n, DisplayName='O"Neil, A.', AboutMe=text, **user)),
            ("PostHistory", row(Id=n, Comment="x", Text=text, **event)),
        ):
            added.setdefault(table, []).append(new)
    for table, rows in added.items():
        data = (folder / f"{table}.xml").read_bytes()
        at = data.rindex(b"</")
        (folder / f"{table}.xml").write_bytes(data[:at] + b"".join(rows) + data[at:])
    return folder


@pytest.fixture(
    scope="module",
    params=["small", *(pytest.param(archive, marks=pytest.mark.long) for archive in ARCHIVES)],
)
def site(request: pytest.FixtureRequest) -> Path:
    if request.param == "small":
        return request.getfixturevalue("small_site")  # type: ignore[no-any-return]
    return request.getfixturevalue("unpacked_dumps") / request.param  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def tables(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the printed command."""
    folder = tmp_path_factory.mktemp("sql")
    so2docs.tables(site, folder)
    return folder


def run_page(name: str, tables: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the SQL of a file in a folder with links to the tables, which are removed again."""
    monkeypatch.chdir(folder)
    for path in tables.glob("*.parquet"):
        Path(path.name).symlink_to(path)
    with duckdb.connect() as connection:
        connection.execute((sql_of("types.sql") if name == "sqlstorm.sql" else "") + sql_of(name))
    for path in tables.glob("*.parquet"):
        Path(path.name).unlink()


@pytest.fixture(scope="module")
def client() -> Iterator[Command]:
    """The client of a PostgreSQL server for all tests of this module."""
    with make_short_folder() as folder, run_postgres(folder) as client:
        yield client


@pytest.fixture(params=["duckdb", pytest.param("postgres", marks=pytest.mark.readers)])
def system(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def query(system: str, request: pytest.FixtureRequest) -> Iterator[Query]:
    """A function that runs a statement in an empty database, and returns its rows."""
    if system == "duckdb":
        with duckdb.connect() as connection:
            yield lambda sql: connection.execute(sql).fetchall()
        return
    words = [str(part) for part in request.getfixturevalue("client")]

    def call(database: str, sql: str) -> str:
        command = [*words, database, "-v", "ON_ERROR_STOP=1", "-c", sql]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def query(sql: str) -> Rows:
        if not sql.lstrip().startswith(("SELECT", "WITH")):
            call("sets", sql)
            return []
        lines = call("sets", f"SELECT row_to_json(rows) FROM ({sql}) AS rows").split("\n")[:-1]
        rows = (json.loads(line, object_pairs_hook=list) for line in lines)
        return [tuple(value for _, value in row) for row in rows]

    call("postgres", "CREATE DATABASE sets")
    yield query
    call("postgres", "DROP DATABASE sets")


@contextmanager
def readable(path: Path) -> Iterator[Path]:
    """Copy a file to where the server, which is another user, can read it."""
    with make_short_folder() as folder:
        yield Path(shutil.copy(path, folder))


def plain(values: Rows, *, empty: Any = "") -> Counter[str]:
    """Return the rows in one form for all systems; `empty` replaces empty strings."""
    return Counter(
        json.dumps([empty if value == "" else _plain(value) for value in row]) for row in values
    )


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        value = value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d*)?", value):
        return datetime.fromisoformat(value).isoformat(timespec="milliseconds")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return round(float(value), 6) if is_number or type(value).__name__ == "Decimal" else value


def in_order_of(table: Table, names: Iterable[str], rows: list[dict[str, Any]]) -> Rows:
    """Return rows of the dump as values of the columns of another schema, with line feeds."""
    values = []
    for entry in rows:
        tags = entry.get("Tags")
        one_text = {"Tags": f"<{'><'.join(tags)}>"} if tags else {"Tags": None}
        typed = entry | one_text if table == POSTS else entry
        chosen = (typed[name] for name in names)
        values.append(tuple(v.replace("\r", "") if isinstance(v, str) else v for v in chosen))
    return values


COPY_OPTIONS = {"sqlstorm": "DELIMITER ',', FORMAT csv, NULL ''", "stats-ceb": "FORMAT csv, HEADER"}


@pytest.mark.parametrize("name", COPY_OPTIONS)
def test_every_row_arrives_in_the_tables_of_a_set(
    name: str,
    system: str,
    query: Query,
    site: Path,
    tables: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = columns_of(name)
    run_page(f"{name}.sql", tables, tmp_path, monkeypatch)
    assert {path.name for path in tmp_path.iterdir()} == {f"{table}.csv" for table in columns}
    query(SCHEMAS[name])
    for table in columns:
        with readable(tmp_path / f"{table}.csv") as file:
            query(f"COPY {table} FROM '{file}' WITH ({COPY_OPTIONS[name]})")
    columns_by_name = {table.lower(): (table, names) for table, names in columns.items()}
    empty = None if system == "duckdb" else ""
    for table in DUMP.values():
        if table.stem.lower() in columns_by_name:
            loaded_table, names = columns_by_name[table.stem.lower()]
            expected = in_order_of(table, names, rows_of(site / table.file, table))
            loaded = query(f"SELECT * FROM {loaded_table}")
            assert plain(loaded, empty=empty) == plain(expected, empty=empty), table.name


def test_snap(site: Path, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("snap.sql", tables, tmp_path, monkeypatch)
    posts = {post["Id"]: post for post in rows_of(site / "Posts.xml", POSTS)}
    expected: dict[str, list[tuple[int, int, int]]] = {"a2q": [], "c2q": [], "c2a": []}

    def add(kind: str, source: int | None, target: int | None, date: str) -> None:
        if source and target and source > 0 and target > 0:
            moment = datetime.fromisoformat(date).replace(tzinfo=UTC)
            expected[kind].append((source, target, int(moment.timestamp())))

    for post in posts.values():
        if post["PostTypeId"] == 2 and (asked := posts.get(post["ParentId"])):
            add("a2q", post["OwnerUserId"], asked["OwnerUserId"], post["CreationDate"])
    for comment in rows_of(site / "Comments.xml", DUMP["comments"]):
        post = posts.get(comment["PostId"], {})
        if kind := {1: "c2q", 2: "c2a"}.get(post.get("PostTypeId")):
            add(kind, comment["UserId"], post["OwnerUserId"], comment["CreationDate"])
    for kind, edges in [
        *expected.items(),
        ("", [edge for some in expected.values() for edge in some]),
    ]:
        name = f"sx-{kind}.txt" if kind else "sx.txt"
        lines = (tmp_path / name).read_text("utf-8").splitlines()
        read = [tuple(map(int, line.split(" "))) for line in lines]
        assert Counter(read) == Counter(edges)
        assert [edge[2] for edge in read] == sorted(edge[2] for edge in read)
    assert expected["a2q"]


def test_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "<p>Don't stop! See https://a.org/b.html, é (now).</p>\n\n<p>It's v1 - ok?</p>"
    posts = [question(1, Title="T", Tags="<a><b>", Score=3, OwnerUserId=7)]
    dates = [f"201{7 + n % 2}-05-01T00:00:00" for n in range(40)]
    posts += [
        answer(n, 1, Body=body, OwnerUserId=7, CreationDate=d) for n, d in enumerate(dates, 2)
    ]
    write_dump(tmp_path / "Posts.xml", *posts)
    so2docs.tables(tmp_path, tmp_path / "texts", only="posts", body="text")
    run_page("federated.sql", tmp_path / "texts", tmp_path, monkeypatch)
    train, test = (
        pq.read_table(tmp_path / f"{name}.parquet").to_pylist() for name in ("train", "test")
    )
    assert len(train) == len(test) == 60
    tokens = [example["tokens"] for example in train[:4]]
    assert tokens == ["don't stop !", "see _url_ ( now ) .", "it's v1 - ok ?", "don't stop !"]
    assert {(row["title"], row["tags"], row["score"], row["type"]) for row in train} == {
        ("T", "a|b", 3, "answer")
    }


MARKDOWN_POSTS = {
    **dict.fromkeys(("Id", "PostTypeId", "AcceptedAnswerId", "ParentId", "Score"), "int64"),
    **dict.fromkeys(("ViewCount", "FavoriteCount", "LastEditorUserId", "OwnerUserId"), "int64"),
    **dict.fromkeys(("Body", "Title", "ContentLicense"), "string"),
    **dict.fromkeys(("CreationDate", "LastActivityDate", "LastEditDate"), "timestamp[ms, tz=UTC]"),
    "Tags": "list",
}
"""Columns of mikex86/stackoverflow-posts; dates are strings there."""


def test_markdown_posts(site: Path, tmp_path: Path) -> None:
    so2docs.tables(site, tmp_path / "posts", only="posts", body="markdown")
    schema = pq.read_schema(tmp_path / "posts" / "Posts.parquet")
    types = {field.name: str(field.type).partition("<")[0] for field in schema}
    assert MARKDOWN_POSTS.items() <= types.items()


@pytest.mark.readers
def test_stackoverflow2010() -> None:
    assert "`so2docs tables DUMP so --until 2011 --format csv`" in PAGE
    script = sql_of("stackoverflow2010.sql")
    schema = {table.stem: table for table in DUMP.values()}
    assert re.findall(r"CREATE TABLE (\w+)", script) == list(schema)
    assert re.findall(r"BULK INSERT (\w+) FROM", script) == list(schema)
    assert re.findall(r"ALTER TABLE (\w+) ADD PRIMARY KEY", script) == list(schema)
    sqlglot = import_reader("sqlglot")
    sqlglot.parse(re.sub(r"(?m)^BULK INSERT .*(\n +.*|\n\);)*", "", script), dialect="tsql")
    kinds = {"int": "bigint", "datetime": "datetime2(3)"}
    published = columns_of("stackoverflow2010")
    for table in published.keys() & schema.keys():
        [created] = re.findall(rf"CREATE TABLE {table} \((.*?)\n\);", script, re.DOTALL)
        types = dict(re.findall(r"^ +(\w+) ([\w()]+)", created, re.MULTILINE))
        attributes = [
            "Type" if "Type" in types and n == "Name" else n for n in schema[table].attributes
        ]
        assert list(types) == [*attributes, "Other"]
        for name, kind in published[table].items():
            assert types[name] == kinds.get(kind, "nvarchar(max)"), (table, name)


def test_names_of_types() -> None:
    with duckdb.connect() as connection:
        connection.execute(sql_of("types.sql"))
        names = {
            name: dict(connection.execute(f"SELECT Id, Name FROM {name}").fetchall())
            for name in ("PostTypes", "VoteTypes", "LinkTypes", "PostHistoryTypes")
        }
        reasons = dict(connection.execute("SELECT Id, Name FROM CloseReasonTypes").fetchall())
    assert names["PostTypes"] == {1: "Question", 2: "Answer", **TYPE_NAMES}
    assert names["VoteTypes"] == VOTE_TYPES
    assert names["LinkTypes"] == {n: name.capitalize() for n, name in LINK_TYPES.items()}
    assert names["PostHistoryTypes"].keys() == HISTORY_TYPES.keys()
    assert reasons == {**CLOSE_REASONS, 1: "Exact Duplicate"}
