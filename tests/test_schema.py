"""Dumps and documents are declared once: one entry adds a table everywhere."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.command import run_python

import so2docs
from so2docs.parse import core
from so2docs.schema import DUMP, TABLES, TYPES, paths

ENTRY = """
    Table(
        "flags",
        "Flags.xml",
        "flag",
        {
            "Id": INTEGER,
            "PostId": INTEGER,
            "CreationDate": DATE,
            "Weight": INTEGER,
            "Reasons": TEXTS,
            "UserId": INTEGER,
        },
        required=("Id", "PostId"),
        sequence=11,
        key="Flags",
        users={"UserId": "User"},
    ),
"""
"""A table that no dump has, as an entry of the schema."""

BEFORE = '    Table(\n        "users",\n'

POSTS = """\
<?xml version="1.0" encoding="utf-8"?>
<posts>
<row Id="1" PostTypeId="1" CreationDate="2020-01-01T00:00:00.000" Title="a" Tags="&lt;b&gt;" />
<row Id="2" PostTypeId="2" ParentId="1" CreationDate="2020-01-02T00:00:00.000" Score="3" />
<row Id="4" PostTypeId="1" CreationDate="2020-01-03T00:00:00.000" Title="none" />
</posts>
"""
FLAGS = """\
<?xml version="1.0" encoding="utf-8"?>
<flags>
<row Id="7" PostId="2" CreationDate="2020-02-01T00:00:00.000" Weight="5" UserId="3" New="x" />
<row Id="8" PostId="1" CreationDate="2020-02-02T00:00:00.000" Weight="-1" />
<row Id="9" PostId="2" Weight="x" />
<row Id="10" PostId="99" Weight="1" />
<row PostId="1" Weight="1" />
</flags>
"""
USERS = '<users>\n<row Id="3" Reputation="5" DisplayName="Ann" />\n</users>\n'
COMMENTS = '<comments>\n<row Id="5" PostId="2" Score="0" Text="t" />\n</comments>\n'

ANN = {"Id": 3, "Reputation": 5, "DisplayName": "Ann"}
OF_QUESTION = [{"Id": 8, "PostId": 1, "CreationDate": "2020-02-02T00:00:00.000", "Weight": -1}]
OF_ANSWER = [
    {
        "Id": 7,
        "PostId": 2,
        "CreationDate": "2020-02-01T00:00:00.000",
        "Weight": 5,
        "UserId": 3,
        "New": "x",
        "User": ANN,
    },
    {"Id": 9, "PostId": 2, "Weight": "x"},
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with an additional table in its schema, and a dump with this table."""
    place = tmp_path_factory.mktemp("schema")
    package = Path(so2docs.__file__).parent
    shutil.copytree(package, place / "so2docs", ignore=shutil.ignore_patterns("__pycache__"))
    schema = place / "so2docs" / "schema.py"
    text = schema.read_text()
    assert text.count(BEFORE) == 1
    schema.write_text(text.replace(BEFORE, ENTRY.lstrip("\n") + BEFORE))
    dump = place / "dump"
    dump.mkdir()
    for name, content in (("Posts", POSTS), ("Flags", FLAGS), ("Users", USERS)):
        (dump / f"{name}.xml").write_text(content)
    (dump / "Comments.xml").write_text(COMMENTS)
    return place


def run(place: Path, *arguments: object) -> str:
    """Run a command of this copy, or Python code with `-c`; return what it prints."""
    program = [] if arguments[0] == "-c" else ["-m", "so2docs"]
    result = run_python(*program, *arguments, cwd=place, env={"PYTHONPATH": str(place)})
    return result.stdout


def documents(place: Path, *arguments: object) -> list[dict[str, Any]]:
    """Convert with these options; return the documents."""
    lines = run(place, "convert", "dump", "-", *arguments)
    return [json.loads(line) for line in lines.splitlines()]


@pytest.mark.parametrize(("way", "jobs"), [("python", 2), ("compiled", 1)])
def test_a_new_table_is_nested(place: Path, way: str, jobs: int) -> None:
    if way == "compiled" and core.built() == "python":
        pytest.skip("no compiled core")
    options = ("--core", way, "--jobs", jobs, "--force")
    rows = documents(place, "--nest", "comments,flags,users", *options)
    question, other = rows
    assert list(question)[-3:] == ["Comments", "Flags", "Answers"]
    assert (question["Flags"], question["Answers"][0]["Flags"]) == (OF_QUESTION, OF_ANSWER)
    assert (question["Comments"], other["Flags"]) == ([], [])
    run(place, "convert", "dump", "out.jsonl", "--nest", "flags", "--report", "out.json", *options)
    strays = json.loads((place / "out.json").read_text())["tables"]["flags"]["strays"]
    assert strays == {"flag_missing_id": 1, "flag_without_post": 1}


def test_fields_know_it(place: Path) -> None:
    rows = documents(
        place, "--nest", "flags", "--fields", "Id,Flags.Weight,Answers.Id,Answers.Flags.Id"
    )
    assert rows == [
        {
            "Id": 1,
            "Flags": [{"Weight": -1}],
            "Answers": [{"Id": 2, "Flags": [{"Id": 7}, {"Id": 9}]}],
        },
        {"Id": 4, "Flags": [], "Answers": []},
    ]


def test_the_json_schema_knows_it(place: Path) -> None:
    run(place, "convert", "dump", "s.jsonl", "--nest", "flags", "--card")
    schema = json.loads((place / ".s.jsonl.manifest").read_text())["schema"]
    for post in (schema, schema["properties"]["Answers"]["items"]):
        assert "Flags" in post["required"]
        flag = post["properties"]["Flags"]["items"]["properties"]
        assert flag["PostId"] == {"type": "integer"}
        assert flag["Reasons"] == {"type": "array", "items": {"type": "string"}}


def test_parquet_has_typed_columns_for_it(place: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    run(place, "convert", "dump", "out.parquet", "--nest", "flags,users", "--force")
    table = parquet.read_table(place / "out.parquet")
    flag = table.schema.field("Flags").type.value_type
    assert str(flag.field("Weight").type) == "int64"
    assert str(flag.field("CreationDate").type) == "timestamp[ms, tz=UTC]"
    assert str(flag.field("Reasons").type) == "list<element: string>"
    [answer] = table.column("Answers").to_pylist()[0]
    assert [nested["Weight"] for nested in answer["Flags"]] == [5, None]
    assert answer["Flags"][0]["User"]["DisplayName"] == "Ann"
    assert json.loads(answer["Flags"][1]["Other"]) == {"Weight": "x"}


def test_names_have_one_type_wherever_they_occur() -> None:
    """In database columns and for dates of MongoDB, types depend only on names."""
    for path, part in paths():
        for name, kind in part.attributes.items():
            assert TYPES[name] == kind, f"{path}.{name}"


def test_tables_have_places_of_their_own() -> None:
    sequences = [table.sequence for table in TABLES.values()]
    assert len(set(sequences)) == len(sequences)
    assert all(0 < table.kind < 16 for table in TABLES.values() if table.key)
    assert {"posts", "tags", "badges", "history", *TABLES} >= DUMP.keys()
