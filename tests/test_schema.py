"""Dumps and documents are declared once: one entry adds a table everywhere."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.command import run_python
from support.formats_read_back import jsonl

import so2docs
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


OUTPUTS = {
    "python.jsonl": "--nest comments,flags,users --core python --jobs 2 --report report.json",
    "auto.jsonl": "--nest comments,flags,users --core auto",
    "fields.jsonl": "--nest flags --fields Id,Flags.Weight,Answers.Id,Answers.Flags.Id",
    "card.jsonl": "--nest flags --card",
    "all.parquet": "--nest flags,users",
}
"""Options of `convert` by output."""
RUN = """
import json, sys
from so2docs.cli import run
for output, options in json.loads(sys.argv[1]).items():
    assert run(["convert", "dump", output, *options.split()]) == 0
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Outputs of a copy of the package with an additional table in its schema."""
    place = tmp_path_factory.mktemp("schema")
    package = Path(so2docs.__file__).parent
    shutil.copytree(package, place / "so2docs", ignore=shutil.ignore_patterns("__pycache__"))
    schema = place / "so2docs" / "schema.py"
    text = schema.read_text()
    assert text.count(BEFORE) == 1
    schema.write_text(text.replace(BEFORE, ENTRY.lstrip("\n") + BEFORE))
    dump = place / "dump"
    dump.mkdir()
    tables = {"Posts": POSTS, "Flags": FLAGS, "Users": USERS, "Comments": COMMENTS}
    for name, content in tables.items():
        (dump / f"{name}.xml").write_text(content)
    run_python("-c", RUN, json.dumps(OUTPUTS), cwd=place, env={"PYTHONPATH": str(place)})
    return place


@pytest.mark.parametrize("core", ["python", "auto"])
def test_a_new_table_is_nested(place: Path, core: str) -> None:
    question, other = jsonl(place / f"{core}.jsonl")
    assert list(question)[-3:] == ["Comments", "Flags", "Answers"]
    assert (question["Flags"], question["Answers"][0]["Flags"]) == (OF_QUESTION, OF_ANSWER)
    assert (question["Comments"], other["Flags"]) == ([], [])
    strays = json.loads((place / "report.json").read_text())["tables"]["flags"]["strays"]
    assert strays == {"flag_missing_id": 1, "flag_without_post": 1}


def test_fields_know_it(place: Path) -> None:
    answers = [{"Id": 2, "Flags": [{"Id": 7}, {"Id": 9}]}]
    assert jsonl(place / "fields.jsonl") == [
        {"Id": 1, "Flags": [{"Weight": -1}], "Answers": answers},
        {"Id": 4, "Flags": [], "Answers": []},
    ]


def test_the_json_schema_knows_it(place: Path) -> None:
    schema = json.loads((place / ".card.jsonl.manifest").read_text())["schema"]
    for post in (schema, schema["properties"]["Answers"]["items"]):
        assert "Flags" in post["required"]
        flag = post["properties"]["Flags"]["items"]["properties"]
        assert flag["PostId"] == {"type": "integer"}
        assert flag["Reasons"] == {"type": "array", "items": {"type": "string"}}


def test_parquet_has_typed_columns_for_it(place: Path) -> None:
    table = pq.read_table(place / "all.parquet")
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
