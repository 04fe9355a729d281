"""The columns of a card: each has a type and a meaning."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.manifests import schema_of
from support.places import CHECKOUT, SAMPLES

import so2docs
from so2docs.extensions.cards import columns
from so2docs.extensions.json_schema import describe_record
from so2docs.extensions.recipes.catalog import NAMES, load_recipe

SAMPLE = CHECKOUT / "so2docs" / "sample" / "sample.stackexchange.com.7z"
ROW = re.compile(r"^\| `([^`]+)` \| ([a-z ]+) \| (.*) \|$", re.MULTILINE)
EVERYTHING = {
    "nest": "all,badges,closings,history-text",
    "attribution": True,
    "site": "a.example",
    "site_field": "Site",
}
WAYS: list[dict[str, Any]] = [
    {},
    {"as_of": "2020-01-01"},
    EVERYTHING,
]
RECORDS = [
    *(load_recipe(name).record for name in NAMES),
    *(file and file.record for name in NAMES for file in load_recipe(name).files.values()),
    *(changes.get("record") for changes in load_recipe("pairs").variants.values()),
]


@pytest.mark.parametrize("way", [*WAYS, *filter(None, RECORDS)], ids=str)
def test_every_column_has_a_meaning(way: Any) -> None:
    schema = schema_of(**way) if isinstance(way, dict) else describe_record(way)
    text = columns.describe_columns(None, schema)
    rows = ROW.findall(text)
    assert len(rows) == text.count("\n| `")
    assert rows
    assert all(meaning for _, _, meaning in rows)
    assert {name for name, *_ in rows} >= schema.get("properties", {}).keys()


def test_every_meaning_is_used() -> None:
    used = set()
    for way in WAYS:
        for path, *_ in ROW.findall(columns.describe_columns(None, schema_of(**way))):
            used |= {path, path.rpartition(".")[2]}
    assert columns.MEANINGS.keys() <= used


def test_the_meanings_of_a_users_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The type of the records gives them; names of columns do not."""
    (tmp_path / "titled.py").write_text(
        """
from typing import Annotated, TypedDict
import so2docs
class Titled(TypedDict):
    title: str
    shown: Annotated[str, "a | <b>\\nand b"]
def make(question):
    yield {"title": question["Title"], "shown": "x"}
RECIPE = so2docs.Recipe("titled", make, Titled)
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    output = tmp_path / "out.parquet"
    so2docs.convert(SAMPLES / "posts.xml", output, recipe="titled:RECIPE", card=True)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| `title` | text |  |\n" in card
    assert r"| `shown` | text | a \| &lt;b&gt; and b |" in card
