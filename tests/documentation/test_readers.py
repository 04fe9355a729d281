"""Folders and globs of outputs, read by the programs that users have.

The folders have several sites with strays and indexes; each reader must find exactly the questions
of the report. Readers that are not test dependencies run by `make test-datasets`.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.places import SAMPLES
from support.readers import import_reader

import so2docs

pytestmark = pytest.mark.readers
NAMES = {
    "jsonl.gz": ("jsonl", "gzip"),
    "jsonl": ("jsonl", "none"),
    "jsonl.zst": ("jsonl", "zstd"),
    "parquet": ("parquet", None),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """For each file extension, a folder with the outputs of three sites."""
    folder = tmp_path_factory.mktemp("sites")
    folders_by_end = {}
    # All documents have the same fields, because Hugging Face takes these from the first document.
    fields = "Id,Score,Answers.Id,Answers.Score"
    for end, (form, compression) in NAMES.items():
        folders_by_end[end] = folder / end
        sources = [SAMPLES / f"{name}.xml" for name in ("posts", "strays", "grouped")]
        options: dict[str, Any] = {"format": form, "compression": compression, "jobs": 1}
        results = so2docs.convert_all(
            sources, folders_by_end[end], site_field="Site", fields=fields, **options
        )
        reports = [one.result for one in results]
        assert all(report is not None for report in reports)
        assert any(report is not None and report.strays for report in reports)
        assert len(list(folders_by_end[end].glob(".*.strays*"))) >= 1
        assert len(list(folders_by_end[end].glob(f"*.{end}"))) == len(sources)
    return folders_by_end


def expected(folder: Path) -> list[int]:
    """Return the ids of the questions in a folder, read without these programs."""
    ids: list[int] = []
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            ids += pq.ParquetFile(path).read(["Id"])["Id"].to_pylist()
        else:
            ids += [document["Id"] for document in so2docs.read(path)]
    assert len(ids) > 3
    return sorted(ids)


def of_duckdb(where: str) -> list[int]:
    import duckdb

    reader = "read_parquet" if where.endswith(".parquet") else "read_json_auto"
    with duckdb.connect() as database:
        return [row[0] for row in database.sql(f"SELECT Id FROM {reader}('{where}')").fetchall()]


def of_pandas(where: str) -> list[int]:
    import pandas as pd

    return list(pd.read_parquet(where)["Id"])


def of_arrow(where: str) -> list[int]:
    import pyarrow.dataset as ds

    form = "parquet" if where.endswith("parquet") else "json"
    return ds.dataset(where, format=form).to_table(columns=["Id"])["Id"].to_pylist()


def of_zcat(where: str) -> list[int]:
    import orjson

    result = subprocess.run(["sh", "-c", f"zcat {where}"], check=True, capture_output=True)
    return [orjson.loads(line)["Id"] for line in result.stdout.splitlines()]


def of_polars(where: str) -> list[int]:
    polars = import_reader("polars")
    scan = polars.scan_parquet if "parquet" in where else polars.scan_ndjson
    # By default, polars reads every file of a folder.
    options = {"hidden_file_prefix": "."} if where.endswith("/") else {}
    return list(scan(where, **options).select("Id").collect()["Id"])


def of_hugging_face(where: str) -> list[int]:
    datasets = import_reader("datasets")
    if "*" in where:
        kind = "parquet" if "parquet" in where else "json"
        return list(datasets.load_dataset(kind, data_files=where, split="train")["Id"])
    return list(datasets.load_dataset(where, split="train")["Id"])


def of_chdb(where: str) -> list[int]:
    chdb = import_reader("chdb")
    form = "Parquet" if "parquet" in where else "JSONEachRow"
    rows = chdb.query(f"SELECT Id FROM file('{where}', {form}, 'Id Int64')", "CSV")
    return [int(line) for line in str(rows).split()]


LINES = ("jsonl.gz/*.jsonl.gz", "jsonl/*.jsonl", "jsonl.zst/*.jsonl.zst")
PLACES: dict[Callable[[str], list[int]], tuple[str, ...]] = {
    of_duckdb: (*LINES, "parquet/*.parquet"),
    of_pandas: ("parquet",),
    of_arrow: ("parquet", "jsonl", "jsonl.gz"),
    of_zcat: ("jsonl.gz/*.gz", "jsonl.gz/*"),
    of_polars: (*LINES[:2], "parquet/*.parquet", "parquet/"),
    of_hugging_face: (LINES[0], *NAMES, "parquet/*.parquet"),
    of_chdb: (*LINES, "parquet/*.parquet"),
}
"""Folders and globs that each program reads."""


@pytest.mark.parametrize(
    ("reader", "where"), [(reader, where) for reader, places in PLACES.items() for where in places]
)
def test_exactly_the_questions(
    folders: dict[str, Path],
    reader: Callable[[str], list[int]],
    where: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    folder = folders[where.partition("/")[0]]
    assert sorted(reader(f"{folder.parent}/{where}")) == expected(folder)


@pytest.mark.spark
@pytest.mark.parametrize("end", NAMES)
@pytest.mark.parametrize("is_glob", [True, False], ids=["glob", "folder"])
def test_exactly_the_questions_on_spark(
    folders: dict[str, Path], session: Any, end: str, is_glob: bool
) -> None:
    where = str(folders[end] / f"*.{end}" if is_glob else folders[end])
    frame = session.read.parquet(where) if end == "parquet" else session.read.json(where)
    assert sorted(row["Id"] for row in frame.select("Id").collect()) == expected(folders[end])
