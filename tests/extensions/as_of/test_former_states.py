"""States of a small invented site on several dates, compared with reviewed files.

The comments in the tables of `samples/former` say what each group of its posts is for.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.golden import compare
from support.places import SAMPLES
from support.restored import check_any_way, restore, split_posts

import so2docs
from so2docs.options.choices import Core

FORMER = SAMPLES / "former"
STATES: dict[str, dict[str, Any]] = {
    "2016-02-29": {},
    "2016-02-29-dropped": {"drop_posts": [307]},
    "2020-01-02": {},
    "2020-01-04": {},
    "2020-01-08": {},
    "2020-02-01": {},
    "2020-04-01": {},
    "2020-04-01-answered": {"min_answers": 2},
    "2020-05-01": {},
    "2020-06-01": {},
    "2020-06-01-answered": {"min_answers": 2},
    "2020-07-01": {},
    "2022-01-01": {},
}


def state(dump: Path, output: Path, **options: Any) -> tuple[so2docs.Report, str]:
    """Return the report and the documents, with counts of rows as the last line."""
    report = so2docs.convert(dump, output, **options)
    counts = {name: getattr(report, name) for name in ("filtered", "restored", "unchanged")}
    end = json.dumps({"strays": report.strays, **counts})
    return report, f"{output.read_text(encoding='utf-8')}{end}\n"


@pytest.mark.parametrize("name", STATES)
def test_documents_of_a_date(name: str, core: Core, tmp_path: Path) -> None:
    """Nested rows change nothing else."""
    options = {"as_of": name[:10], "core": core, **STATES[name]}
    _, text = state(FORMER, tmp_path / "q.jsonl", nest="comments,votes,history", **options)
    compare(text, str(FORMER / "states" / f"{name}.jsonl"))
    nested = split_posts(map(json.loads, text.splitlines()[:-1]))
    plain = restore(FORMER, **options)
    assert plain == {id_: {key: nested[id_][key] for key in plain[id_]} for id_ in nested}


def test_the_state_without_a_history_and_votes(core: Core, tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    shutil.copytree(FORMER, dump, ignore=lambda *_: {"states", "PostHistory.xml", "Votes.xml"})
    with pytest.raises(so2docs.OptionError, match=r"needs PostHistory\.xml"):
        so2docs.documents(dump, as_of="2020-02-01")
    options: dict[str, Any] = {"as_of": "2020-02-01", "if_present": True, "core": core}
    _, text = state(dump, tmp_path / "q.jsonl", **options)
    compare(text, str(FORMER / "states" / "posts-alone.jsonl"))


def test_the_same_bytes_in_any_way(tmp_path: Path) -> None:
    def convert(source: Path, path: Path, **way: Any) -> tuple[so2docs.Report, str]:
        nest = "comments,votes,history"
        return state(source, path.with_suffix(".jsonl"), as_of="2020-04-01", nest=nest, **way)

    check_any_way(FORMER, tmp_path, convert, (300, 600))
