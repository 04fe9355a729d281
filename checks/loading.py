"""Run the recipes of loading.md with the available programs.

    python checks/loading.py [Posts.xml]

Python packages are used if they can be imported, and servers if they answer: PostgreSQL with the
usual PG* variables, OpenSearch or Elasticsearch at SO2DOCS_SEARCH (such as http://127.0.0.1:9200),
MongoDB at SO2DOCS_MONGODB (such as mongodb://127.0.0.1:27017). The servers should be empty: an
index, table or database named so2docs_check is made and removed. The script prints which recipes
ran; the exit code is 1 if a recipe failed.
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import so2docs

NAME = "so2docs_check"
SAMPLE = Path(__file__).resolve().parents[1] / "samples" / "posts.xml"


class NotHere(Exception):  # noqa: N818
    """The program or server that a recipe needs is not available."""


def duckdb_(dump: Path, folder: Path) -> tuple[int, int]:
    """Count the questions and answers in JSON lines and in Parquet with DuckDB."""
    import duckdb

    found = set()
    with duckdb.connect() as database:
        for name in ("questions.jsonl.gz", "questions.jsonl.zst", "questions.parquet"):
            so2docs.convert(dump, folder / name)
            sql = f"SELECT count(*), sum(len(Answers))::INT FROM '{folder / name}'"
            found.add(database.execute(sql).fetchall()[0])
    (counts,) = found
    return counts  # type: ignore[no-any-return]


def pandas_(dump: Path, folder: Path) -> tuple[int, int]:
    """Count the questions and answers in JSON lines and in Parquet with pandas."""
    import pandas as pd

    so2docs.convert(dump, folder / "questions.jsonl.gz")
    so2docs.convert(dump, folder / "questions.parquet")
    lines = pd.read_json(folder / "questions.jsonl.gz", lines=True)
    columns = pd.read_parquet(folder / "questions.parquet")
    assert len(lines) == len(columns)
    assert str(columns["CreationDate"].dtype) == "datetime64[ms, UTC]"
    return len(columns), int(columns["Answers"].map(len).sum())


def polars_(dump: Path, folder: Path) -> tuple[int, int]:
    """Count the questions and answers in JSON lines and in Parquet with polars."""
    import polars as pl

    so2docs.convert(dump, folder / "questions.jsonl.gz")
    so2docs.convert(dump, folder / "questions.parquet")
    lines = pl.read_ndjson(folder / "questions.jsonl.gz", infer_schema_length=None)
    columns = pl.scan_parquet(folder / "questions.parquet").collect()
    assert len(lines) == len(columns)
    return len(columns), int(columns["Answers"].list.len().sum())


def datasets_(dump: Path, folder: Path) -> tuple[int, int]:
    """Count questions and answers in JSON lines and in Parquet with Hugging Face datasets."""
    from datasets import load_dataset

    found = set()
    for kind, name in (("parquet", "questions.parquet"), ("json", "questions.jsonl.gz")):
        # The types of JSON lines are guessed per file, and may differ between small files.
        so2docs.convert(dump, folder / name, split="3files" if kind == "parquet" else None)
        files = str(
            folder / (name.replace("questions", "questions-*") if kind == "parquet" else name)
        )
        loaded = load_dataset(kind, data_files=files, split="train", cache_dir=str(folder / "hf"))
        found.add((len(loaded), sum(len(row["Answers"]) for row in loaded)))
    (counts,) = found
    return counts


def postgresql(dump: Path, folder: Path) -> tuple[int, int]:
    """Copy documents into a `jsonb` column of PostgreSQL, and count questions and answers."""
    ready = _psql("SELECT 1", check=False)
    if ready is None:
        raise NotHere("no server answers psql")
    so2docs.convert(dump, folder / "questions.jsonl.gz")
    with gzip.open(folder / "questions.jsonl.gz") as lines:
        text = lines.read()
    key = "id bigint GENERATED ALWAYS AS ((doc ->> 'Id')::bigint) STORED"
    _psql(f"DROP TABLE IF EXISTS {NAME}; CREATE TABLE {NAME} (doc jsonb NOT NULL, {key})")
    try:
        _psql(rf"COPY {NAME} (doc) FROM STDIN (FORMAT csv, QUOTE E'\x01', DELIMITER E'\x02')", text)
        _psql(f"ALTER TABLE {NAME} ADD PRIMARY KEY (id)")
        _psql(f"CREATE INDEX ON {NAME} USING gin ((doc -> 'Tags'))")
        counts = _psql(f"SELECT count(*), sum(jsonb_array_length(doc->'Answers')) FROM {NAME}")
    finally:
        _psql(f"DROP TABLE {NAME}")
    questions, answers = (counts or "").split("|")
    return int(questions), int(answers)


def _psql(sql: str, data: bytes | None = None, *, check: bool = True) -> str | None:
    try:
        done = subprocess.run(
            ["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", sql],
            input=data or b"",
            capture_output=True,
            check=check,
        )
    except FileNotFoundError:
        return None
    except subprocess.CalledProcessError as error:
        raise RuntimeError(error.stderr.decode()) from error
    return done.stdout.decode().strip() if done.returncode == 0 else None


def search(dump: Path, folder: Path) -> tuple[int, int]:
    """Index documents with the bulk API, one request per file, and count them."""
    address = os.environ.get("SO2DOCS_SEARCH")
    if not address:
        raise NotHere("SO2DOCS_SEARCH is not set")
    so2docs.convert(dump, folder / "bulk.ndjson", format="elasticsearch", split="10MB")
    properties = {"Tags": {"type": "keyword"}, "Answers": {"type": "nested"}}
    mapping = {"mappings": {"properties": properties}}
    try:
        _request("PUT", f"{address}/{NAME}", json.dumps(mapping).encode())
        for path in sorted(folder.glob("bulk-*.ndjson")):
            start = '{"index":{"_index":"%s"'
            old, new = (start % name for name in ("questions", NAME))
            lines = path.read_text("utf-8").replace(old, new).encode()
            answer = _request("POST", f"{address}/_bulk?refresh=true", lines)
            assert answer["errors"] is False, answer
        counts = _request("GET", f"{address}/{NAME}/_count")
        asked = {"answers": {"nested": {"path": "Answers"}}, "tags": {"terms": {"field": "Tags"}}}
        body = json.dumps({"size": 0, "aggs": asked}).encode()
        found = _request("POST", f"{address}/{NAME}/_search", body)["aggregations"]
    finally:
        _request("DELETE", f"{address}/{NAME}")
    assert found["tags"]["buckets"]
    return counts["count"], found["answers"]["doc_count"]


def _request(method: str, address: str, data: bytes | None = None) -> Any:
    request = urllib.request.Request(address, data, method=method)
    kind = "application/x-ndjson" if "_bulk" in address else "application/json"
    request.add_header("Content-Type", kind)
    with urllib.request.urlopen(request, timeout=120) as response:
        return json.load(response)


def mongodb(dump: Path, folder: Path) -> tuple[int, int]:
    """Insert documents into MongoDB, parsed as mongoimport does, and count them."""
    from bson import json_util
    from pymongo import MongoClient

    address = os.environ.get("SO2DOCS_MONGODB")
    if not address:
        raise NotHere("SO2DOCS_MONGODB is not set")
    so2docs.convert(dump, folder / "mongo.jsonl", format="mongodb")
    with (folder / "mongo.jsonl").open() as lines:
        documents = [json_util.loads(line) for line in lines]
    with MongoClient(address, serverSelectionTimeoutMS=5000) as client:  # type: ignore[var-annotated]
        collection = client[NAME].questions
        try:
            collection.insert_many(documents)
            first = collection.find_one(sort=[("_id", 1)])
            assert first is not None
            assert first["_id"] == first["Id"]
            assert first["CreationDate"].year > 2000
            answers = sum(len(each["Answers"]) for each in collection.find())
            return collection.count_documents({}), answers
        finally:
            client.drop_database(NAME)


def sqlite_utils(dump: Path, folder: Path) -> tuple[int, int]:
    """Insert documents with sqlite-utils, which adds columns as needed, and count them."""
    so2docs.convert(dump, folder / "questions.jsonl")
    program = str(Path(sys.executable).with_name("sqlite-utils"))
    database = str(folder / "questions.db")
    insert = [program, "insert", database, "questions", str(folder / "questions.jsonl")]
    count = "SELECT count(*), sum(json_array_length(Answers)) FROM questions"
    try:
        subprocess.run([*insert, "--nl", "--pk", "Id", "--alter"], check=True, capture_output=True)
    except FileNotFoundError:
        raise NotHere("sqlite-utils is not installed") from None
    asked = [program, "query", database, count, "--csv", "--no-headers"]
    done = subprocess.run(asked, check=True, capture_output=True, text=True)
    questions, answers = done.stdout.split(",")
    return int(questions), int(answers)


def duckdb_of_sites(lines: Path, columns: Path) -> tuple[int, int]:
    """Count the questions and answers of several sites with DuckDB; dates are timestamps."""
    import duckdb

    found = set()
    options = "sample_size=-1, union_by_name=true, timestampformat='%Y-%m-%dT%H:%M:%S.%g'"
    with duckdb.connect() as database:
        for source in (
            f"read_json('{lines}/*.jsonl.gz', {options})",
            f"read_parquet('{columns}/*.parquet')",
        ):
            counts = "count(*), sum(len(Answers))::INT, min(Site), max(Site)"
            sql = f"SELECT {counts}, typeof(any_value(CreationDate)) FROM {source}"
            *row, kind = database.execute(sql).fetchall()[0]
            assert kind.startswith("TIMESTAMP"), kind
            found.add(tuple(row))
    ((questions, answers, first, last),) = found
    assert first != last
    return questions, answers


def pandas_of_sites(lines: Path, columns: Path) -> tuple[int, int]:
    """Count the questions and answers in a folder of Parquet files with pandas."""
    import pandas as pd

    found = pd.read_parquet(columns, dtype_backend="pyarrow")
    assert str(found["AcceptedAnswerId"].dtype) == "int64[pyarrow]"
    return len(found), int(found["Answers"].map(len).sum())


def polars_of_sites(lines: Path, columns: Path) -> tuple[int, int]:
    """Count the questions and answers of several sites with polars, from Parquet and JSON lines."""
    import polars as pl

    table = pl.scan_parquet(f"{columns}/*.parquet").collect()
    files = sorted(lines.glob("*.jsonl.gz"))
    read = [pl.read_ndjson(file, infer_schema_length=None) for file in files]
    joined = pl.concat(read, how="diagonal_relaxed")
    assert set(joined.columns) <= set(table.columns)
    for name in joined.columns:
        assert joined[name].null_count() == table[name].null_count(), name
    return len(joined), int(table["Answers"].list.len().sum())


def datasets_of_sites(lines: Path, columns: Path) -> tuple[int, int]:
    """Count questions and answers in a folder of Parquet files with Hugging Face datasets."""
    from datasets import load_dataset

    with tempfile.TemporaryDirectory() as cache:
        loaded = load_dataset(str(columns), split="train", cache_dir=cache)
        return len(loaded), sum(len(row["Answers"]) for row in loaded)


OF_SITES: dict[str, Callable[[Path, Path], tuple[int, int]]] = {
    "DuckDB": duckdb_of_sites,
    "pandas": pandas_of_sites,
    "polars": polars_of_sites,
    "Hugging Face datasets": datasets_of_sites,
}
"""Recipes that read a folder of JSON lines and a folder of Parquet files of several sites."""

RECIPES: dict[str, Callable[[Path, Path], tuple[int, int]]] = {
    "DuckDB": duckdb_,
    "pandas": pandas_,
    "polars": polars_,
    "Hugging Face datasets": datasets_,
    "PostgreSQL": postgresql,
    "OpenSearch or Elasticsearch": search,
    "MongoDB": mongodb,
    "sqlite-utils": sqlite_utils,
}


def main() -> int:
    """Run every recipe, and print the outcomes; return 1 if one failed, otherwise 0."""
    dump = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        report = so2docs.convert(dump, Path(folder) / "all.jsonl")
    for name, recipe in RECIPES.items():
        with tempfile.TemporaryDirectory() as folder:
            failed += _run(name, recipe, dump, Path(folder), (report.questions, report.answers))
    with tempfile.TemporaryDirectory() as folder:
        lines, columns, expected = _sites(dump, Path(folder))
        for name, recipe in OF_SITES.items():
            failed += _run(f"{name}, several sites", recipe, lines, columns, expected)
    return min(failed, 1)


def _sites(dump: Path, folder: Path) -> tuple[Path, Path, tuple[int, int]]:
    """Convert two sites, one with strays, to JSON lines and to Parquet.

    Returns:
        The folder of the JSON lines, the folder of the Parquet files, and the numbers of questions
        and answers.
    """
    dumps = [folder / "one.xml", folder / "two.xml"]
    shutil.copy(dump, dumps[0])
    shutil.copy(dump.with_name("strays.xml") if dump == SAMPLE else dump, dumps[1])
    lines, columns = folder / "lines", folder / "columns"
    done = so2docs.convert_all(dumps, lines, site_field="Site")
    so2docs.convert_all(dumps, columns, site_field="Site", format="parquet")
    reports = [one.result for one in done if one.result is not None]
    assert len(reports) == len(dumps)
    totals = sum(one.questions for one in reports), sum(one.answers for one in reports)
    return lines, columns, totals


def _run(
    name: str,
    recipe: Callable[[Path, Path], tuple[int, int]],
    source: Path,
    folder: Path,
    expected: tuple[int, int],
) -> bool:
    """Run a recipe and print the result; return whether it failed."""
    failed = False
    try:
        counts = recipe(source, folder)
        assert counts == expected, counts
        outcome = f"ran: {counts[0]:,} questions, {counts[1]:,} answers"
    except (NotHere, ImportError) as error:
        outcome = f"not run: {error}"
    except Exception as error:
        outcome, failed = f"FAILED: {type(error).__name__}: {error}", True
    print(f"{name:<36} {outcome}")
    return failed


if __name__ == "__main__":
    sys.exit(main())
