"""Row groups, read back by pyarrow and DuckDB: every kind of column, at every depth."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow.parquet as pq
import pytest
from support.table_sites import SITE

import so2docs
from so2docs.extensions.parquet import footer
from so2docs.extensions.parquet.format import Parquet, RecordParquet
from so2docs.extensions.parquet.row_group import RowGroup, milliseconds, plan_shredding
from so2docs.merge import Document
from so2docs.options.table import OutputForm
from so2docs.output.segments import Journal, Segment
from so2docs.parse import core

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


def row_group(form: RecordParquet, records: list[dict[str, Any]]) -> Segment:
    pending = form.open_segment(0)
    for number, record in enumerate(records):
        json = orjson.dumps(record)
        pending.add(Document(number, [json[:-1]], len(json)))
    return pending.end()


def written(groups: list[list[dict[str, Any]]], path: Path) -> RecordParquet:
    """Write a file with a row group for each list of records."""
    form = RecordParquet(OutputForm("parquet", "none"))
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


def test_ids_mark_the_ends_of_pages() -> None:
    """An earlier record that is longer moves no later page."""
    form = RecordParquet(OutputForm("parquet", "none"))
    form.record_schema = SCHEMA

    def first_ids(of_first: int) -> set[int]:
        sizes = [of_first, *[9_000] * 999]
        records = [{"id": n, "text": "a" * size, "many": []} for n, size in enumerate(sizes)]
        _, places = footer.read_note(row_group(form, records).note)
        _, (_, pages) = places[1][1]  # The column of texts; the ids have only one page.
        return {first_row for page in pages for _, first_row in [page[3]]}

    pages = first_ids(9_000)
    assert len(pages) > 4
    assert len(pages & first_ids(100_000)) > len(pages) // 2


@pytest.mark.parametrize(
    ("record", "column"),
    [
        ({"id": "1", "many": []}, "id"),
        ({"id": 1 << 63, "many": []}, "id"),
        ({"id": 1}, "many"),
        ({"id": 1, "many": {}}, "many"),
        ({"id": 1, "many": [{"n": True}]}, "n"),
        ({"id": 1, "many": [], "one": {"n": 1, "tags": [1]}}, "tags"),
        ({"id": 1, "many": [], "one": []}, "one"),
    ],
)
def test_a_record_that_does_not_fit_its_columns(
    record: dict[str, Any], column: str, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match=f"does not fit the schema of its recipe: .*{column}"):
        written([[record]], tmp_path / "r.parquet")


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        ("1970-01-01T00:00:00.001", 1),
        ("1970-01-02", 86_400_000),
        ("1969-12-31 23:59:59.9", -100),
        ("2008-07-31T21:42:52.667", 1_217_540_572_667),
        ("2008-07-31T21:42", 1_217_540_520_000),
    ],
)
def test_times(time: str, expected: int) -> None:
    assert milliseconds([time, None, time]) == [expected, None, expected]


@pytest.mark.parametrize(
    "time",
    ["", "yesterday", "2008-02-30", "2008-07-31T21:42:52.6671", "2008-07-31T21:42:52Z", "20080731"],
)
def test_other_texts_are_no_times(time: str) -> None:
    with pytest.raises(ValueError, match=r"time|day|month"):
        milliseconds(["2008-07-31", time])


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
        (False, ("PLAIN", "RLE"), False),
        (True, ("PLAIN", "RLE", "RLE_DICTIONARY"), True),
    }
    assert lists == {f"{path}tags.list.element" for path in ("", "one.")}


def test_columns_of_one_schema_are_planned_once() -> None:
    """A process that converts many sites keeps one plan, not one for each site."""
    forms = [RecordParquet(OutputForm("parquet", "none")) for _ in range(2)]
    for form in forms:
        form.record_schema = PLANNED
    assert plan_shredding(forms[0].columns) is plan_shredding(forms[1].columns) is not None


needs_core = pytest.mark.skipif(core.compiled is None, reason="needs the compiled core")
PLANNED: dict[str, Any] = {
    **SCHEMA,
    "properties": {name: kind for name, kind in SCHEMA["properties"].items() if name != "number"},
}


def encoded(lines: bytes, *, is_compiled: bool) -> Segment | None:
    """Encode records as a row group; None if the compiled core leaves them to the reference."""
    form = RecordParquet(OutputForm("parquet", "none"))
    form.record_schema = PLANNED
    group = RowGroup(form.columns, form.level, form.sorted_by, is_compiled=is_compiled)
    if not is_compiled:
        form.add_page(group, [orjson.loads(line) for line in io.BytesIO(lines)])
    elif not group.add_lines(lines):
        return None
    return group.segment(len(lines), 0)


@needs_core
@pytest.mark.parametrize("size", [1, 8, 400])
def test_the_compiled_core_encodes_the_same_rows(size: int) -> None:
    rng = random.Random(size)
    records = [random_record(number, rng) for number in range(size)]
    records[-1] |= {"number": [{"}": '",]}'}, -1.5, "\\"], "text": '"\\/\b\f\n\r\t\x00\x1f'}
    lines = b"".join(orjson.dumps(record) + b"\n" for record in records)
    assert (compiled := encoded(lines, is_compiled=True)) is not None
    assert compiled == encoded(lines, is_compiled=False)


ESCAPED = rb'{"id":0,"text":"\u00e4\ud834\udd1e\/\u0000","many":[],"deep":[[-1,2],null,[]]}' + b"\n"


@needs_core
def test_the_compiled_core_decodes_every_escape() -> None:
    assert (compiled := encoded(ESCAPED, is_compiled=True)) is not None
    assert compiled == encoded(ESCAPED, is_compiled=False)


@needs_core
@pytest.mark.parametrize(
    "line",
    [
        *(
            b'{"id":%s,"many":[]}' % value
            for value in (b"1.0", b"1e3", b"-0", b"true", b'"1"', b"null", b"9" * 19, b"[]", b"")
        ),
        *(
            b'{"id":1,"many":[],"text":%s}' % value
            for value in (b"1", rb'"\ud834"', rb'"\udd1e"', rb'"\ud834\u0041"', rb'"\x"', b'"\t"')
        ),
        b'{"many":[]}',
        b'{"id":1}',
        b'{"id":1,"many":{}}',
        b'{"id":1,"many":[null,]}',
        b'{"id":1,"many":[{}]}',
        b'{"id":1,"id":2,"many":[]}',
        b'{"id":1,"many":[],"one":[]}',
        b'{"id":1,"many":[],"flag":1}',
        rb'{"id":1,"many":[],"\u0061":1}',
        b'{"id":1,"many":[],"other":[}',
        b'{"id":1,"many":[]},',
        *(ESCAPED[:end] for end in range(1, len(ESCAPED) - 1)),
    ],
)
def test_the_compiled_core_leaves_other_rows_to_the_reference(line: bytes) -> None:
    assert encoded(line + b"\n", is_compiled=True) is None


@needs_core
def test_a_plan_that_is_wrong_is_rejected() -> None:
    leaf = (0, b"a", True, 0, ())
    for plan in [(10, b"", False, 0, ()), (5, b"", False, 1, ()), (7, b"", False, 0, (leaf,) * 65)]:
        with pytest.raises(ValueError, match="plan"):
            core.shred(b"{}\n", plan)
    assert core.shred(b"{}\n", leaf) is None


@needs_core
@pytest.mark.parametrize("tables", [(), ("comments", "links", "votes", "users")])
def test_the_compiled_core_encodes_the_same_documents(tables: tuple[str, ...]) -> None:
    form = Parquet(OutputForm("parquet", "none"), tables=tables)
    documents = [*so2docs.documents(SITE, nest=list(tables), jobs=1)]
    documents += [
        documents[0] | {"New": 1, "": "ä"},
        documents[0] | {"Answers": [{"Id": 1, "A": -1}]},
    ]
    for document in documents:
        groups = [RowGroup(form.columns, 1, "Id", is_compiled=it) for it in (True, False)]
        line = orjson.dumps(document)
        assert groups[0].add_lines(line + b"\n")
        form.add_page(groups[1], [orjson.loads(line)])
        compiled, reference = (group.segment(len(line), 0) for group in groups)
        assert compiled == reference
    for misfit in ({"New": 1.5}, {"New": "\n"}, {"New": []}, {"New": True}, {"Score": "1"}):
        assert not groups[0].add_lines(orjson.dumps(documents[0] | misfit) + b"\n")
