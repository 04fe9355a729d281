"""Row groups, read back by pyarrow and DuckDB: every kind of column, at every depth."""

from __future__ import annotations

import io
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from so2docs.dump.kinds import PARQUET
from so2docs.extensions.parquet import footer as footers
from so2docs.extensions.parquet.arrow import make_row_group
from so2docs.extensions.parquet.footer import ThriftReader, write_struct
from so2docs.extensions.parquet.format import Parquet
from so2docs.merge import Document
from so2docs.options.table import OutputForm
from so2docs.output.segments import Journal, Segment
from so2docs.processes.pool import Workers

OBJECT = {
    "type": "object",
    "properties": {
        "n": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "inner": {"type": "object", "properties": {"flag": {"type": "boolean"}}},
    },
    "required": ["n"],
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "text": {"type": "string"},
        "same": {"type": "string"},
        "number": {"type": "number"},
        "flag": {"type": "boolean"},
        "none": {"type": "string"},
        "one": OBJECT,
        "many": {"type": "array", "items": OBJECT},
        "tags": {"type": "array", "items": {"type": "string"}},
        "deep": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
    },
    "required": ["id", "many"],
}


def random_record(number: int, rng: random.Random) -> dict[str, Any]:
    def maybe(value: Any) -> Any:
        return value if rng.random() < 0.7 else None

    def nested() -> dict[str, Any]:
        tags = [maybe(rng.choice("abc")) for _ in range(rng.randrange(4))]
        inner = maybe({"flag": maybe(rng.random() < 0.5)})
        return {"n": rng.randrange(-5, 5), "tags": maybe(tags), "inner": inner}

    return {
        "id": number,
        "text": maybe("ä€𝄞" * rng.randrange(20) + str(rng.random())),
        "same": rng.choice(["x", "y", "z"]),
        "number": maybe(rng.choice([0, 1, -2.5, 1e300])),
        "flag": maybe(rng.random() < 0.5),
        "none": None,
        "one": maybe(nested()),
        "many": [maybe(nested()) for _ in range(rng.randrange(5))],
        "tags": maybe([maybe(rng.choice("abc") * 9) for _ in range(rng.randrange(5))]),
        "deep": maybe([[maybe(1 << 62) for _ in range(rng.randrange(3))] for _ in range(3)]),
    }


def row_group(form: Parquet, records: list[dict[str, Any]]) -> Segment:
    pending = form.open_segment(0)
    for number, record in enumerate(records):
        json = orjson.dumps(record)
        pending.add(Document(number, [json[:-1]], len(json)))
    return pending.end()


def written(groups: list[list[dict[str, Any]]], path: Path) -> Parquet:
    """Write a file with a row group for each list of records."""
    form = Parquet(OutputForm("parquet", "none"))
    form.record_schema = SCHEMA
    journal, data = Journal(form.header), io.BytesIO()
    data.write(form.header)
    for records in groups:
        segment = row_group(form, records)
        data.write(segment.data)
        journal.add(segment)
    data.write(form.footer(journal, b"{}"))
    path.write_bytes(data.getvalue())
    return form


@pytest.mark.parametrize("size", [1, 7, 8, 9, 300])
def test_every_kind_of_column_is_read_back(size: int, tmp_path: Path) -> None:
    rng = random.Random(size)
    groups = [[random_record(9 * at + size * at + n, rng) for n in range(size)] for at in range(3)]
    path = tmp_path / "r.parquet"
    written(groups, path)
    expected = [record for group in groups for record in group]
    assert pq.read_table(path).to_pylist() == expected
    names = [*SCHEMA["properties"]]
    with duckdb.connect() as database:
        rows = database.execute(f"FROM '{path}'").fetchall()
    assert [dict(zip(names, row, strict=True)) for row in rows] == expected


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"id": "1", "many": []}, "id"),
        ({"id": 1 << 63, "many": []}, str(1 << 63)),
        ({"id": 1}, "many"),
        ({"id": 1, "many": {}}, "many"),
        ({"id": 1, "many": [{"n": True}]}, "n"),
        ({"id": 1, "many": [], "one": {"n": 1, "tags": [1]}}, "tags"),
        ({"id": 1, "many": [], "one": []}, "one"),
    ],
)
def test_a_record_that_does_not_fit_its_columns(
    record: dict[str, Any], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match=f"does not fit the schema of its recipe: .*{problem}"):
        written([[record]], tmp_path / "r.parquet")


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("1970-01-01T00:00:00.001", 1),
        ("1970-01-02", 86_400_000),
        ("1969-12-31 23:59:59.9", -100),
        ("2008-07-31T21:42:52.667", 1_217_540_572_667),
        ("2008-07-31T21:42", 1_217_540_520_000),
        *((text, None) for text in ("", "yesterday", "2008-02-30", "2008-07-31T21:42:52.6671")),
        ("2008-07-31T21:42:52Z", 1_217_540_572_000),
        ("20080731", None),
    ],
)
@pytest.mark.parametrize("other", [{}, {"New": 1}])
def test_times(time: str, expected: int | None, other: dict[str, Any]) -> None:
    """A text that is not a time goes to `Other`; a misfit elsewhere changes nothing."""
    form = Parquet(OutputForm("parquet", "none"))
    documents = [{"Id": 1, "CreationDate": time, **other}, {"Id": 2, "Answers": []}]
    lines = b"".join(orjson.dumps(document) + b"\n" for document in documents)
    row, _ = form.make_batch(lines).cast(_without_zones(form.columns.schema)).to_pylist()
    assert row["CreationDate"] == expected
    misfits = ({} if expected is not None else {"CreationDate": time}) | other
    assert row["Other"] == (orjson.dumps(misfits).decode() if misfits else None)
    assert row["Answers"] == []


def _without_zones(schema: pa.Schema) -> pa.Schema:
    return pa.schema(
        field.with_type(pa.int64()) if pa.types.is_timestamp(field.type) else field
        for field in schema
    )


def test_each_column_has_one_encoding_in_all_row_groups(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    groups = [["x"] * 99, [*map(str, range(99))], ["y"], [None]]
    rows = [
        [{"id": 1, "text": text, "many": [], "tags": [text] * bool(text)} for text in texts]
        for texts in groups
    ]
    written(rows, path)
    table = pq.read_table(path, columns=["id", "text", "many", "tags"])
    assert table.to_pylist() == [row for group in rows for row in group]
    metadata = pq.read_metadata(path)
    columns = [
        metadata.row_group(group).column(number)
        for group in range(metadata.num_row_groups)
        for number in range(metadata.num_columns)
    ]
    lists = {column.path_in_schema for column in columns if column.has_dictionary_page}
    assert metadata.num_row_groups == len(groups)
    assert {
        (column.path_in_schema in lists, column.encodings, column.has_dictionary_page)
        for column in columns
    } == {
        (False, ("RLE", "PLAIN"), False),
        (True, ("PLAIN", "RLE", "RLE_DICTIONARY"), True),
    }
    assert lists == {f"{path}tags.list.element" for path in ("", "one.")}


@pytest.mark.parametrize(
    "misfit",
    [
        {"New": 1.5},
        {"New": "\n", "Other": "x"},
        {"Score": "1", "Tags": [1]},
        {"Title": 5, "Score": 1 << 63, "ViewCount": 1.0, "AnswerCount": True},
        {"Comments": 5},
        {"Answers": [{"Id": 1, "A": -1, "Score": "x"}]},
    ],
)
def test_misfits(misfit: dict[str, Any]) -> None:
    """Values without a column or of another type go to `Other` of their object."""
    form = Parquet(OutputForm("parquet", "none"), tables=("comments", "votes"))
    [plain] = form.make_batch(b'{"Id":1,"Title":"t","Answers":[{"Id":2}]}\n').to_pylist()
    document = {"Id": 1, "Title": "t", "Answers": [{"Id": 2}]} | misfit
    [row] = form.make_batch(orjson.dumps(document) + b"\n").to_pylist()
    if "Answers" in misfit:
        expected = {"Other": '{"A":-1,"Score":"x"}', "Id": 1}
        assert row == plain | {"Answers": [plain["Answers"][0] | expected]}
    else:
        titled = {"Title": None} if "Title" in misfit else {}
        assert row == plain | titled | {"Other": orjson.dumps(misfit).decode()}


def test_workers_import_neither_numpy_nor_pandas() -> None:
    """Arrow imports both if it can, pandas to convert a list: 60 MiB in each worker."""
    pytest.importorskip("pandas")
    arrow = "__import__('so2docs.extensions.parquet.arrow', fromlist=['pa'])"
    names = f"[{arrow}.pa.array([1])] and {{'numpy', 'pandas'}} & {{*__import__('sys').modules}}"
    with Workers(2) as workers:
        assert [*workers.run(eval, [names])] == [set()]


@pytest.mark.long
def test_descriptions_of_row_groups_are_not_held_as_objects(tmp_path: Path) -> None:
    """A large table has 100,000 columns of row groups, which are 3 KB each as objects."""
    schema = pa.schema({f"c{number}": pa.int64() for number in range(20)})
    table = pa.Table.from_pylist([dict.fromkeys(schema.names, 1)], schema)
    group = make_row_group(table, table.nbytes, 2)
    journal = Journal(PARQUET)
    for _ in range(500):
        journal.add(group)
    footer, peak = traced(lambda: footers.join_footers(journal, b"{}", bytes))
    assert peak < 5 * len(footer)
    path = tmp_path / "p.parquet"
    path.write_bytes(PARQUET + group.data * journal.count + footer)
    assert pq.read_metadata(path).num_row_groups == journal.count
    record, peak = traced(lambda: footers.read_record(str(path)))
    assert record == b"{}"
    assert peak < 2 * len(footer)


def traced(call: Callable[[], bytes]) -> tuple[bytes, int]:
    """Return the result of a call, and the most memory that its objects took."""
    tracemalloc.start()
    try:
        return call(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_values_of_a_footer_are_written_as_they_were_read() -> None:
    """Also those of types that pyarrow does not write for documents."""
    number, text = (5, -70), (8, b"x" * 200)  # The types of Thrift's compact protocol.
    inner = {1: (1, None), 2: (3, 200), 4: (9, (3, [1] * 20)), 40: text}
    values = {1: number, 2: (12, inner), 3: number}
    assert ThriftReader(bytes(write_struct(values))).struct() == values
