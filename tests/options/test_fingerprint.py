"""Every option that changes a byte of the output changes the fingerprint of a resume."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from support.dumps import question, write_dump

import so2docs
from so2docs.options.output_form import default_output, output_form
from so2docs.options.request import Fingerprint, build_options
from so2docs.options.table import OPTIONS, Options

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
    "elasticsearch_index": ["others"],
    "split": ["1MB", "3files", "year", "train=0.9,test=0.1"],
}
"""Other values of each option that decides the output."""

NEEDED: dict[str, dict[str, Any]] = {
    "settings": {"recipe": "chunks"},
    "without_linked": {"recipe": "qa", "split": "train=0.9,test=0.1"},
    "all_tags": {"tags": ["a", "b"]},
    "elasticsearch_index": {"format": "elasticsearch"},
}
NESTED_BY = {"tables", "site"}
"""Options that affect the output through facts derived from them: nested tables, site field."""


def fingerprint(**keywords: Any) -> Fingerprint:
    site_field = keywords.pop("site_field", None)
    form = output_form(default_output(keywords), keywords)
    return Fingerprint.of(build_options(keywords, form, site_field, core="python"))


def test_each_option_has_other_values_or_only_decides_how_it_runs() -> None:
    decide = {name for name, entry in OPTIONS.items() if entry.decides != "run"}
    assert OTHERS.keys() == decide - NESTED_BY
    assert OPTIONS.keys() - decide == {
        *("core", "jobs", "chunk_bytes", "spill_budget", "progress", "work_dir"),
        *("keep_spill", "update", "force", "restart", "report", "card"),
    }


def test_another_value_is_another_conversion() -> None:
    for name, values in OTHERS.items():
        needed = NEEDED.get(name, {})
        usual = fingerprint(**needed)
        others = [fingerprint(**needed, **{name: value}) for value in values]
        assert len({str(asdict(one)) for one in (usual, *others)}) == 1 + len(others), name
        for other in others:
            assert other.differences(usual, of_spill_only=False), name
            # A spill without malformed rows serves `errors="skip"`, too, but not the reverse.
            assert usual.differences(other, of_spill_only=False) or name == "errors", name
            of_spill = OPTIONS[name].decides == "spill" or name == "site_field"
            if name != "recipe":  # Some recipes need another form of the bodies.
                assert bool(other.differences(usual, of_spill_only=True)) is of_spill, name


def test_the_host_of_attribution_is_remembered() -> None:
    one, other = Options(host="beer.stackexchange.com"), Options()
    assert Fingerprint.of(one).differences(Fingerprint.of(other), of_spill_only=False)


def test_a_spill_of_other_filters_is_refused(tmp_path: Path) -> None:
    rows = [question(number, AnswerCount=number % 5) for number in range(1, 21)]
    dump, output = write_dump(tmp_path / "Posts.xml", *rows), tmp_path / "q.jsonl"
    so2docs.convert(dump, output, min_answers=3, keep_spill=True)
    with pytest.raises(so2docs.SpillError, match=r"different: min_answers"):
        so2docs.convert(dump, output, min_answers=1, force=True)
