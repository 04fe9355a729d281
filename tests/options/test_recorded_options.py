"""Every option that changes a byte of the output is recorded with it, and in its spill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from so2docs.options.output_form import default_output, output_form
from so2docs.options.request import build_options, read_keywords, recorded_options
from so2docs.options.table import OF_CONVERT, OPTIONS

OTHERS: dict[str, list[Any]] = {
    "site_field": [("Site", "beer"), ("Site", "ale")],
    "recipe": ["pairs", "qa"],
    "settings": [{"max_length": 500}, {"max_length": "501"}, {"tokenizer": "gpt-4"}],
    "without_linked": [True],
    "attribution": [True],
    "body": ["text"],
    "answers_by": ["votes"],
    "nest": ["comments"],
    "if_present": [True],
    "errors": ["skip"],
    "level": [1],
    "tags": ["python", "c"],
    "all_tags": [True],
    "min_score": [1, 0],
    "min_answer_score": [1, 0],
    "min_answers": [1, 0],
    "max_answers": [1, 0],
    "max_body": [1],
    "answered": [True],
    "accepted": [True],
    "since": ["2020-01-01"],
    "until": ["2020-01-01"],
    "as_of": ["2020-01-01", "2020-01-01T12:00"],
    "drop_fabricated": [True],
    "drop_users": ["1", "1,2"],
    "drop_posts": ["1", "1,2"],
    "keep_users": ["1", "1,2"],
    "keep_posts": ["1", "1,2"],
    "sample": ["1%"],
    "sample_size": [5],
    "limit": [1],
    "fields": ["Id"],
    "drop_fields": ["Body"],
    "format": ["json"],
    "compression": ["zstd"],
    "split": ["1MB", "3files", "year", "train=0.9,test=0.1"],
}
"""Other values of each option that decides the output."""

NEEDED: dict[str, dict[str, Any]] = {
    "settings": {"recipe": "chunks"},
    "without_linked": {"recipe": "qa", "split": "train=0.9,test=0.1"},
    "all_tags": {"tags": ["a", "b"]},
}
DERIVED = {"tables", "site"}
"""Options that affect the output through others that are recorded."""


def record(**keywords: Any) -> dict[str, Any]:
    site_field = keywords.pop("site_field", None)
    values = read_keywords(keywords, OF_CONVERT)
    form = output_form(default_output(values), values)
    return recorded_options(build_options(values, form, site_field, core="python"))


def test_each_option_has_other_values_or_only_decides_how_it_runs() -> None:
    decide = {name for name, entry in OPTIONS.items() if entry.decides}
    assert OTHERS.keys() == decide - DERIVED
    assert OPTIONS.keys() - decide == {
        *("core", "jobs", "chunk_bytes", "spill_budget", "progress", "work_dir"),
        *("update", "force", "restart", "report", "card"),
    }


def test_another_value_is_another_conversion() -> None:
    for name, values in OTHERS.items():
        needed = NEEDED.get(name, {})
        records = [record(**needed), *(record(**needed, **{name: value}) for value in values)]
        assert len(set(map(str, records))) == 1 + len(values), name


def test_lists_are_recorded_by_their_ids(tmp_path: Path) -> None:
    """Neither the name of the file nor the order matters, and the record has no id."""
    (tmp_path / "ids.txt").write_text("98765\n12345\n")
    recorded = record(drop_users=tmp_path / "ids.txt")
    assert recorded == record(drop_users="12345,98765")
    assert "98765" not in str(recorded)
