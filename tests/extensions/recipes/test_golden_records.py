"""The records of each recipe, with each of its settings, for the threads of a small invented site.

The expected files in `samples/threads/records` were compared with an independent implementation and
read by eye.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.formats_read_back import jsonl, without_nulls
from support.golden import THREADS, compare

import so2docs
from so2docs.extensions.recipes.catalog import NAMES

RECORDS = THREADS / "records"
SITE = "tea.stackexchange.com"
RECIPES: dict[str, dict[str, Any]] = {
    "attribution": {"attribution": True, "nest": ["comments", "users"]},
    "preferences": {"recipe": "preferences"},
    "pairs": {"recipe": "pairs"},
    "pairs-margin": {"recipe": "pairs", "settings": "min_margin=2"},
    "pairs-best": {"recipe": "pairs", "settings": {"best": True}},
    "pairs-conversational": {"recipe": "pairs", "settings": {"form": "conversational"}},
    "pairs-paired": {"recipe": "pairs", "settings": {"form": "paired", "best": True}},
    "qa": {"recipe": "qa"},
    "qa-accepted": {"recipe": "qa", "accepted": True},
    "qa-best": {"recipe": "qa", "settings": {"best": True}},
    "messages": {"recipe": "messages", "nest": "comments"},
    "messages-system": {"recipe": "messages", "settings": {"system": "Be brief."}},
    "thread": {"recipe": "thread", "nest": "comments"},
    "thread-best": {"recipe": "thread", "settings": {"best": True}},
    "chunks": {"recipe": "chunks"},
    "chunks-short": {"recipe": "chunks", "settings": {"max_length": 200, "overlap": 40}},
    "hub": {"recipe": "hub"},
    "triplets": {"recipe": "triplets:TRIPLETS"},
    "blocks": {"recipe": "blocks:BLOCKS"},
    "edits": {"recipe": "edits:EDITS"},
    "texts-both": {"recipe": "texts:title_body"},
    "texts-best": {"recipe": "texts:titlebody_best_voted_answer"},
    "texts-title": {"recipe": "texts:title_best_voted_answer"},
    "texts-worst": {"recipe": "texts:titlebody_best_and_down_voted_answer"},
}
SETS: dict[str, dict[str, Any]] = {
    "beir": {"recipe": "beir"},
    "beir-accepted": {"recipe": "beir", "accepted": True},
    "beir-linked": {"recipe": "beir", "settings": "links=linked"},
    "beir-both": {"recipe": "beir", "settings": {"links": "both"}},
    "duplicates": {"recipe": "duplicates"},
}


def convert(output: Path, options: dict[str, Any], **more: Any) -> so2docs.Report:
    site = None if options.get("recipe") == "hub" else SITE
    return so2docs.convert(THREADS, output, site=site, **options, **more)


def test_every_recipe_has_records() -> None:
    used = {options.get("recipe") for options in (*RECIPES.values(), *SETS.values())}
    assert used >= {*NAMES}


@pytest.mark.parametrize("name", RECIPES)
def test_records(name: str, tmp_path: Path) -> None:
    options = RECIPES[name]
    report = convert(tmp_path / "q.jsonl", options, jobs=1)
    [made] = [path for path in tmp_path.glob("*.jsonl") if path.name[0] != "."]
    compare(made.read_text(encoding="utf-8"), f"records/{name}.jsonl")
    assert report.recipe is None or report.records == len(jsonl(made))


@pytest.mark.parametrize("name", [name for name in RECIPES if name != "attribution"])
def test_records_as_parquet(name: str, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    convert(tmp_path / "q.parquet", RECIPES[name], jobs=1, chunk_bytes=2000)
    [made] = tmp_path.glob("*.parquet")
    rows = [without_nulls(row) for row in pq.read_table(made).to_pylist()]
    assert rows == [without_nulls(row) for row in jsonl(RECORDS / f"{name}.jsonl")]


def compare_set(folder: Path, name: str) -> None:
    files = {
        str(p.relative_to(folder)) for p in folder.rglob("*") if p.suffix in (".jsonl", ".tsv")
    }
    for file in files:
        compare((folder / file).read_text(encoding="utf-8"), f"records/{name}/{file}")
    assert files == {str(p.relative_to(RECORDS / name)) for p in (RECORDS / name).rglob("*.*")}


@pytest.mark.parametrize("name", SETS)
def test_files_of_a_set(name: str, tmp_path: Path) -> None:
    report = convert(tmp_path / "set", SETS[name], jobs=1, chunk_bytes=2000)
    compare_set(tmp_path / "set", name)
    again = convert(tmp_path / "set", SETS[name])
    assert (again.is_new, again.records, again.files) == (False, report.records, 4)
