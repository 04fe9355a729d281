"""`rows` and `tables DUMP -`: one table as a stream, without files."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.command import run, run_python, start
from support.dumps import question, row, write_dump
from support.flat_oracle import rows_of
from support.places import CHECKOUT
from support.processes import children
from support.table_sites import SITE

import so2docs
from so2docs.extensions.tables.stream import write_stream
from so2docs.schema import DUMP


def test_rows_are_those_of_the_files(tmp_path: Path) -> None:
    so2docs.tables(SITE, tmp_path, only="posts,votes", until="2024-06")
    for table in ("posts", "votes"):
        expected = pq.read_table(tmp_path / f"{table.capitalize()}.parquet")
        given = so2docs.rows(SITE, table, until="2024-06")
        assert given.schema.names == expected.schema.names
        for _ in range(2):
            assert pa.table(given).to_pylist() == expected.to_pylist()
        assert pa.Table.from_batches(given.to_batches(), given.schema).num_rows > 0
        frame = given.to_pandas()
        assert frame["Id"].to_list() == expected["Id"].to_pylist()
        assert str(frame["Id"].dtype) == "Int64"
        assert str(frame["CreationDate"].dtype) == "datetime64[ms, UTC]"
        rows = [dict(zip(given.columns, row, strict=True)) for batch in given for row in batch]
        assert rows == [_with_text_dates(row) for row in expected.to_pylist()]


def _with_text_dates(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with dates as in a dump."""
    return {
        name: value.isoformat(timespec="milliseconds").removesuffix("+00:00")
        if isinstance(value, datetime)
        else value
        for name, value in row.items()
    }


@pytest.mark.parametrize("core", ["python", "compiled"])
def test_rows_without_pyarrow(core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The posts, with or without a filter by date, are also read where pyarrow is missing."""
    expected = [row for batch in so2docs.rows(SITE, "posts", until="2024-06") for row in batch]
    script = f"""
import sys
for name in ("pyarrow", "pandas", "numpy"):
    sys.modules[name] = None
import so2docs
rows = so2docs.rows({str(SITE)!r}, "posts", until="2024-06", core={core!r}, jobs=1)
print([row for batch in rows for row in batch] == {expected!r})
try:
    rows.schema
except so2docs.OptionError as error:
    print(error)
"""
    lines = run_python("-c", script, code=0).stdout.splitlines()
    assert lines[0] == "True"
    assert "needs pyarrow: pip install 'so2docs[parquet]'" in lines[1]


@pytest.mark.parametrize("form", ["arrow", "csv", "jsonl"])
def test_bytes_of_a_pipe(form: str, tmp_path: Path) -> None:
    file = io.BytesIO()
    write_stream(str(SITE), file, only="posts", format=form)
    if form == "arrow":
        rows = pa.ipc.open_stream(file.getvalue()).read_all()
        assert rows.equals(pa.table(so2docs.rows(SITE, "posts")))
    else:
        so2docs.tables(SITE, tmp_path, only="posts", format=form)
        assert file.getvalue() == gzip.decompress((tmp_path / f"Posts.{form}.gz").read_bytes())


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump whose posts do not fit in the buffer of a pipe."""
    path = tmp_path_factory.mktemp("large") / "Posts.xml"
    write_dump(path, *(question(number, Body="x" * 1000) for number in range(1, 2000)))
    return path


@pytest.mark.parametrize("form", ["arrow", "csv"])
def test_a_closed_pipe(form: str, large: Path) -> None:
    arguments = ("tables", large, "-", "--only", "posts", "--format", form)
    with start(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_workers_end_with_the_reader(large: Path) -> None:
    reader = pa.RecordBatchReader.from_stream(so2docs.rows(large, "posts", jobs=2))
    assert not children(os.getpid())
    reader.read_next_batch()
    assert children(os.getpid())
    reader.close()
    assert not children(os.getpid())


def test_strays_are_reported(tmp_path: Path) -> None:
    write_dump(tmp_path / "Posts.xml", question(1), row(PostTypeId=1))
    done = run("tables", tmp_path / "Posts.xml", "-", "--only", "posts", "--format", "jsonl")
    assert [json.loads(line)["Id"] for line in done.stdout.splitlines()] == [1]
    assert "1 row left out: post_missing_id" in done.stderr


@pytest.mark.parametrize("form", ["arrow", "csv"])
def test_a_missing_package(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done = run("tables", SITE, "-", "--only", "posts", "--format", form)
    assert (done.returncode, done.stdout) == (2, "")
    assert "needs pyarrow: pip install 'so2docs[parquet]'" in done.stderr


@pytest.mark.readers
def test_examples_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("polars")
    chdb = pytest.importorskip("chdb")
    page = (CHECKOUT / "docs" / "flat-tables.md").read_text("utf-8")
    section = page.split("\n## A stream of one table\n")[1]
    script = section.split("```python\n")[1].split("```")[0]
    name = "sample.stackexchange.com.7z"
    counts = Counter(row["VoteTypeId"] for row in rows_of(SITE / "Votes.xml", DUMP["votes"]))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(script.replace(name, str(SITE)).replace("bread", "silence"), names)
    assert dict(names["counts"]) == counts
    assert names["reader"].read_all().num_rows == counts.total()
    assert ["silence"] in names["frame"]["Tags"].to_list()
    [query] = re.findall('--query "(.*)"', section)
    with open("votes.arrows", "wb") as file:
        write_stream(str(SITE), file, only="votes", format="arrow")
    lines = str(chdb.query(query, "CSV")).splitlines()
    pairs = [line.split(",") for line in lines]
    assert {None if key == "\\N" else int(key): int(count) for key, count in pairs} == counts


def test_missing_dumps_are_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(so2docs.DumpNotFoundError):
        so2docs.rows(tmp_path / "gone", "posts")
