"""The columns of a card: each has a type and a meaning."""

import re
from pathlib import Path
from typing import Any

import pytest
from support.places import CHECKOUT, SAMPLES

import so2docs
from so2docs.extensions.cards import columns
from so2docs.extensions.cards.document_schema import build_schema
from so2docs.extensions.recipes.catalog import NAMES
from so2docs.options.request import build_options, read_keywords
from so2docs.options.table import OF_CONVERT

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
    *({"recipe": name} for name in NAMES),
    {"recipe": "pairs", "settings": {"conversational": True}},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_column_has_a_meaning(way: dict[str, Any]) -> None:
    options = build_options(read_keywords(way, *OF_CONVERT), core="python")
    schema = build_schema(options)
    text = "\n".join(columns.describe_columns(way.get("recipe"), schema))
    rows = ROW.findall(text)
    assert len(rows) == text.count("\n| `")
    assert rows
    assert all(meaning for _, _, meaning in rows)
    assert {name for name, *_ in rows} >= schema.get("properties", {}).keys()


def test_every_meaning_is_used() -> None:
    used = set()
    for way in WAYS:
        options = build_options(read_keywords(way, *OF_CONVERT), core="python")
        for table in columns.describe_columns(way.get("recipe"), build_schema(options)):
            for path, *_ in ROW.findall(table):
                used |= {path, path.rpartition(".")[2]}
    assert columns.MEANINGS.keys() <= used


def test_outputs_with_the_same_columns_share_a_table(tmp_path: Path) -> None:
    for name, keywords in {
        "a.jsonl": {"recipe": "qa", "site": "a.example"},
        "b.jsonl.gz": {"recipe": "qa", "site": "b.example"},
        "c.parquet": {},
    }.items():
        so2docs.convert(SAMPLES / "posts.xml", tmp_path / name, card=True, **keywords)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert card.count("| column | type | meaning |") == 2
    assert "`a.jsonl` and 1 other output:" in card
    assert "| `completion` | text | answer to the question |" in card
    assert "| `metadata.authors` | list of object | authors with name and URL |" in card
    assert "| `CreationDate` | date | date of creation, in UTC |" in card


@pytest.mark.parametrize(
    ("recipe", "form", "column", "other"),
    [
        ("pairs", "paired", "attribution.response_j", "prompt"),
    ],
)
def test_a_setting_that_changes_the_columns(
    recipe: str, form: str, column: str, other: str, tmp_path: Path
) -> None:
    output, settings = tmp_path / "out.jsonl", {"form": form}
    so2docs.convert(SAMPLE, output, recipe=recipe, settings=settings, card=True)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    meanings = {path: meaning for path, _, meaning in ROW.findall(card)}
    assert meanings[column]
    assert other not in meanings
    assert all(meanings.values())
    assert re.search(rf"^  - name: \"?{column.partition('.')[0]}\"?$", card, re.MULTILINE)


def test_the_meanings_of_a_users_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The schema gives them; names of columns do not."""
    (tmp_path / "titled.py").write_text(
        """
import so2docs
TEXT = {"type": "string"}
RECIPE = so2docs.Recipe(
    "titled",
    lambda question: [{"title": question["Title"], "shown": "x"}],
    {
        "type": "object",
        "properties": {"title": TEXT, "shown": {**TEXT, "description": "a | <b>\\nand b"}},
        "required": ["title", "shown"],
    },
)
"""
    )
    monkeypatch.syspath_prepend(tmp_path)
    output = tmp_path / "out.parquet"
    so2docs.convert(SAMPLES / "posts.xml", output, recipe="titled:RECIPE", card=True)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "| `title` | text |  |\n" in card
    assert r"| `shown` | text | a \| &lt;b&gt; and b |" in card
