"""`tables --load`: the script loads every value into its database systems.

PostgreSQL and MariaDB are those of Debian (`apt-get install postgresql mariadb-server`).
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, get_args

import pytest
from support.command import run, with_programs
from support.dumps import answer, question, row, write_dump
from support.flat_oracle import LINKS, Row, as_date, broken_links, rows_in, rows_of
from support.places import CHECKOUT
from support.servers import Command, find_program, make_short_folder, run_postgres, run_server
from support.table_sites import SITE

import so2docs
from so2docs.extensions.tables.options import SqlSystem
from so2docs.schema import DUMP, Table

ARCHIVES = ("beer.stackexchange.com", "eosio.meta.stackexchange.com")
HARD = (
    "NULL",
    "",
    "\\N",
    "a\n\\.\nb",
    "a\r\n\\.\r\nb\\",
    'x",y\n"',
    "\\",
    '"',
    "\\x41 \\\\ %s {a} $(dir)",
    "é 🍺 \u0085\u200d\x7f",
    ",NULL,",
    "line\n",
)


@pytest.fixture(scope="module")
def hard_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with texts that are hard for CSV and SQL scripts."""
    folder = tmp_path_factory.mktemp("hard") / "tea.stackexchange.com"
    posts = [question(1, Tags="<a><b\"'\\,>"), answer(2, 1), answer(3, 4)]
    write_dump(folder / "Posts.xml", *posts)
    shutil.copy(SITE / "Votes.xml", folder)
    rows = [row(Id=n, PostId=1, Text=text, UserId=-1) for n, text in enumerate(HARD, 1)]
    rows.append(row(Id=100, CreationDate="2019-02-28T23:59:59.9", Score="many"))
    write_dump(folder / "Comments.xml", *rows)
    badges = [
        row(Id=n, UserId=n, Class=1, TagBased=value)
        for n, value in enumerate(("True", "False", "maybe"), 1)
    ]
    write_dump(folder / "Badges.xml", *badges)
    return folder


@pytest.fixture(
    scope="module",
    params=["hard", *(pytest.param(archive, marks=pytest.mark.long) for archive in ARCHIVES)],
)
def site(request: pytest.FixtureRequest) -> Path:
    if request.param == "hard":
        return request.getfixturevalue("hard_site")  # type: ignore[no-any-return]
    return request.getfixturevalue("unpacked_dumps") / request.param  # type: ignore[no-any-return]


Read = Callable[[Table], list[Row]]
Loaded = tuple[Read, str]
"""A function that reads a table back, and the output of the script."""


def call(*command: str | Path, folder: Path, **settings: Any) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, capture_output=True, check=False, **settings
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.fixture(scope="module")
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for the socket of a server."""
    with make_short_folder() as folder:
        yield folder


def _load_postgres(client: Command, files: Path) -> Loaded:
    for statement in ('DROP DATABASE IF EXISTS "t"', 'CREATE DATABASE "t"'):
        call(*client, "postgres", "-c", statement, folder=files)
    printed = call(*client, "t", "--file", "load.sql", folder=files)

    def read(table: Table) -> list[Row]:
        names = {name.lower(): name for name in (*table.attributes, "Other")}
        sql = f"SELECT row_to_json(t) FROM {table.stem} AS t"
        lines = call(*client, "t", "-c", sql, folder=files).split("\n")
        rows = [json.loads(line) for line in lines if line]
        return [{names[name]: value for name, value in row.items()} for row in rows]

    return read, printed


@contextmanager
def postgres(folder: Path) -> Iterator[Callable[[Path], Loaded]]:
    with run_postgres(folder) as client:
        yield partial(_load_postgres, client)


@contextmanager
def mysql(folder: Path) -> Iterator[Callable[[Path], Loaded]]:
    install = find_program("mariadb-install-db", "mariadb-server")
    daemon, program = (
        find_program("mariadbd", "mariadb-server"),
        find_program("mariadb", "mariadb-client"),
    )
    data, socket = folder / "mysql", folder / "mysql.sock"
    user = ["--user=root"] if os.geteuid() == 0 else []
    form = "--auth-root-authentication-method=normal"
    call(install, "--no-defaults", *user, f"--datadir={data}", form, folder=folder)
    client: list[str | Path] = [program, "--no-defaults", f"--socket={socket}", "-N", "-u", "root"]
    options = ("--no-defaults", *user, f"--datadir={data}", f"--socket={socket}")

    def load(files: Path) -> Loaded:
        for packed in files.glob("*.csv.gz"):
            packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
        call(*client, "-e", "DROP DATABASE IF EXISTS t; CREATE DATABASE t", folder=files)
        with (files / "load.sql").open("rb") as script:
            printed = call(*client, "--local-infile=1", "t", folder=files, stdin=script)

        def read(table: Table) -> list[Row]:
            pairs = ", ".join(f"'{name}', {name}" for name in (*table.attributes, "Other"))
            sql = f"SELECT JSON_OBJECT({pairs}) FROM {table.stem}"
            settings = ("--default-character-set=utf8mb4", "--raw", "t", "-e", sql)
            lines = call(*client, *settings, folder=files).split("\n")
            return [json.loads(line) for line in lines if line]

        return read, printed.replace("\t", "|")

    skipped = ("--skip-networking", "--skip-grant-tables", "--innodb-flush-log-at-trx-commit=0")
    ready = [*client, "-e", "SELECT 1"]
    with run_server(daemon, *options, *skipped, user=None, ready=ready):
        yield load


SYSTEMS = {"postgres": postgres, "mysql": mysql}


@pytest.mark.readers
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_value_in_the_database(
    system: SqlSystem, site: Path, short_folder: Path, tmp_path: Path
) -> None:
    folder = short_folder / f"{system}-{site.name[:4]}"
    folder.mkdir()
    with SYSTEMS[system](folder) as load:
        so2docs.tables(site, tmp_path / "out", format="csv", load=system)
        _check_database(site, *load(tmp_path / "out"))


def _check_database(site: Path, read: Read, printed: str) -> None:
    for table in DUMP.values():
        if (site / table.file).exists():
            rows = [_typed(row, table) for row in read(table)]
            assert _sorted(rows) == _sorted(rows_of(site / table.file, table))
    counts = {
        name: int(count)
        for name, _, count in (line.partition("|") for line in printed.splitlines())
        if count.isdecimal()
    }
    assert counts == _broken(site)


def _typed(row: Row, table: Table) -> Row:
    """Convert a row of a database to the form of the oracle."""
    kinds = {**table.attributes, "Other": "texts"}
    values = {}
    for name, kind in kinds.items():
        value = row[name]
        if value is not None and kind == "date":
            value = as_date(datetime.fromisoformat(value))
        elif value is not None and kind == "boolean":
            value = bool(value)
        elif kind == "texts" and isinstance(value, str):
            value = json.loads(value)
        values[name] = value
    return values


def _sorted(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["Id"], repr(row)))


def _broken(site: Path) -> dict[str, int]:
    """Count the rows that break each foreign key between tables of the site, from the XML."""
    rows = rows_in(site)
    return {
        name: len(ids)
        for name, ids in broken_links(rows).items()
        if LINKS[name.partition(".")[0]][name.partition(".")[2]] in rows
    }


@pytest.mark.long
@pytest.mark.readers
def test_documents_and_their_changes_in_postgres(short_folder: Path, tmp_path: Path) -> None:
    """The scripts of the docs load documents, and change them to those of a later dump."""
    scripts = [
        re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        for name, heading, language in (
            ("loading", "\n## PostgreSQL\n", "sh"),
            ("changes", "\n### Into PostgreSQL\n", "sql"),
        )
        for text in [(CHECKOUT / "docs" / f"{name}.md").read_text("utf-8").split(heading)[1]]
    ]
    loading, changes = scripts[0][0], scripts[1][0]
    old = [question(number, Body=text) for number, text in enumerate(HARD, 1)]
    write_dump(tmp_path / "Posts.xml", *old)
    new = [*old[2:-1], answer(90, 5), question(14, Tags="<a>"), question(15)]
    write_dump(tmp_path / "new.xml", *new)
    folder = short_folder / "documents"
    folder.mkdir()
    with postgres(folder):
        environment = {
            **with_programs(),
            "PGHOST": str(folder / "postgres"),
            "PGUSER": "tester",
            "PGDATABASE": "postgres",
        }

        def documents() -> list[Row]:
            sql = "SELECT id || ' ' || doc FROM questions ORDER BY id"
            settings = {"folder": tmp_path, "env": environment}
            lines = call("psql", "-X", "-A", "-t", "-c", sql, **settings).split("\n")
            pairs = [line.partition(" ")[::2] for line in lines if line]
            assert all(int(key) == json.loads(text)["Id"] for key, text in pairs)
            return [json.loads(text) for _, text in pairs]

        call("bash", "-e", "-c", loading, folder=tmp_path, env=environment)
        assert documents() == list(so2docs.documents(tmp_path / "Posts.xml"))
        so2docs.convert(tmp_path / "Posts.xml", tmp_path / "old.jsonl.gz")
        so2docs.convert(tmp_path / "new.xml", tmp_path / "new.jsonl.gz")
        difference = so2docs.diff(tmp_path / "old.jsonl.gz", tmp_path / "new.jsonl.gz")
        difference.write(tmp_path / "changes.jsonl.gz")
        (tmp_path / "changes.sql").write_text(changes)
        call("psql", "-X", "--file", "changes.sql", folder=tmp_path, env=environment)
        assert documents() == list(so2docs.documents(tmp_path / "new.xml"))


@pytest.mark.parametrize("system", get_args(SqlSystem))
def test_the_script(system: SqlSystem, hard_site: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    arguments = (hard_site, folder, "--format", "csv", "--load", system, "--only", "posts,votes")
    run("tables", *arguments, code=0)
    script = (folder / "load.sql").read_text("utf-8")
    assert re.findall(r"CREATE TABLE (\w+)", script) == ["Posts", "Votes"]
    assert re.findall(r"'[^']*\b(\w+)\.csv", script) == ["Posts", "Votes"]
    assert re.findall(r"ADD FOREIGN KEY \((\w+)\) REFERENCES (\w+) \(Id\)", script) == [
        ("ParentId", "Posts"),
        ("AcceptedAnswerId", "Posts"),
        ("PostId", "Posts"),
    ]
    assert run("tables", *arguments).returncode == 0
    (folder / "load.sql").write_text("-- Mine")
    assert run("tables", *arguments).returncode == 1
    assert (folder / "load.sql").read_text() == "-- Mine"
    assert run("tables", *arguments, "--force").returncode == 0
    assert (folder / "load.sql").read_text("utf-8") == script


def test_files_are_for_one_system(hard_site: Path, tmp_path: Path) -> None:
    so2docs.tables(hard_site, tmp_path, only="badges", format="csv", load="mysql")
    with gzip.open(tmp_path / "Badges.csv.gz", "rt") as file:
        assert file.read().splitlines()[1:3] == [
            "1,1,NULL,NULL,1,1,NULL",
            "2,2,NULL,NULL,1,0,NULL",
        ]


def test_pyarrow_without_support_for_null_words(
    hard_site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyarrow.csv.WriteOptions", object)
    with pytest.raises(so2docs.OptionError, match="a newer pyarrow than"):
        so2docs.tables(hard_site, tmp_path, format="csv", load="mysql")
