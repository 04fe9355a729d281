"""Other programs read scalars, lists of texts and structs of our Parquet, in any row group."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.readers import import_reader
from test_row_group import random_record, written

pytestmark = pytest.mark.readers
SCALARS = ("id", "text", "same", "flag", "none")
LISTS = ("tags",)
STRUCTS = ("one",)
Rows = list[dict[str, Any]]


def of_duckdb(path: Path, columns: list[str]) -> Rows:
    import duckdb

    with duckdb.connect() as database:
        return (
            database.sql(f"SELECT {','.join(columns)} FROM '{path}'").to_arrow_table().to_pylist()
        )


def of_polars(path: Path, columns: list[str]) -> Rows:
    rows: Rows = import_reader("polars").read_parquet(path, columns=columns).to_dicts()
    return rows


def of_hugging_face(path: Path, columns: list[str]) -> Rows:
    load = import_reader("datasets").load_dataset
    return list(load("parquet", data_files=str(path), split="train", columns=columns))


def of_chdb(path: Path, columns: list[str]) -> Rows:
    query = f"SELECT {','.join(columns)} FROM file('{path}', Parquet)"
    settings = "SETTINGS output_format_json_quote_64bit_integers=0, "
    settings += "input_format_parquet_preserve_order=1"  # Else, by the speed of its threads.
    text = str(import_reader("chdb").query(f"{query} {settings}", "JSONEachRow"))
    return [json.loads(line) for line in text.splitlines()]


def of_fastparquet(path: Path, columns: list[str]) -> Rows:
    with path.open("rb") as file:  # It does not close files that it opened.
        frame = import_reader("fastparquet").ParquetFile(file).to_pandas(columns=columns)
    rows: Rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return rows


READERS: dict[Callable[[Path, list[str]], Rows], tuple[str, ...]] = {
    of_duckdb: SCALARS + LISTS + STRUCTS,
    of_polars: SCALARS + LISTS + STRUCTS,
    of_hugging_face: SCALARS + LISTS + STRUCTS,
    of_chdb: SCALARS,  # It has no null lists.
    of_fastparquet: SCALARS,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with row groups of one record, of many, with equal and with different values."""
    rng, path = random.Random(5), tmp_path_factory.mktemp("parquet") / "r.parquet"
    groups = [[random_record(number, rng) for number in range(size)] for size in (1, 200, 30)]
    groups.append([record | {"tags": [], "text": "x"} for record in groups[1]])
    groups.append([record | {"tags": [str(record["id"])] * 2} for record in groups[1]])
    written(groups, path)
    return path


@pytest.mark.parametrize("read", READERS)
def test_readers_agree(read: Callable[[Path, list[str]], Rows], path: Path) -> None:
    columns = [*READERS[read]]
    expected = pq.read_table(path, columns=columns).to_pylist()
    assert read(path, columns) == expected
    assert any(row["text"] is None for row in expected)


@pytest.mark.parametrize("read", [of_chdb, of_fastparquet])
def test_lists_of_texts(read: Callable[[Path, list[str]], Rows], tmp_path: Path) -> None:
    """Some readers have no null lists."""
    groups = [
        [{"id": number, "many": [], "tags": tags} for number, tags in enumerate(lists)]
        for lists in ([["a"], ["b", "a"]], [["c"]] * 3, [[str(number)] for number in range(9)])
    ]
    written(groups, tmp_path / "r.parquet")
    rows = read(tmp_path / "r.parquet", ["tags"])
    assert [list(row["tags"]) for row in rows] == [row["tags"] for group in groups for row in group]
