"""Every option that changes a byte of the output changes the fingerprint of a resume."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from support.dumps import question, write_dump

import so2docs
from so2docs.options.conversion import Options
from so2docs.options.field_paths import Fields
from so2docs.options.filters import Filters
from so2docs.options.fingerprint import Fingerprint
from so2docs.options.output_form import OutputForm
from so2docs.recipes.finding import RecipeChoice

CHANGED: dict[type, dict[str, list[Any]]] = {
    Options: {
        "answers_by": ["votes"],
        "level": [1],
        "skip_malformed": [True],
        "site_field": [("Site", "beer"), ("Site", "ale")],
        "body": ["text"],
        "nest": [("comments",)],
        "recipe": [RecipeChoice("pairs"), RecipeChoice("qa"), RecipeChoice("qa", best=True)],
        "attribution": [True],
        "host": ["beer.stackexchange.com"],
    },
    Filters: {
        "tags": [("python",), ("c",)],
        "all_tags": [True],
        "min_score": [1, 0],
        "min_answer_score": [1, 0],
        "min_answers": [1, 0],
        "max_body": [1],
        "drop_fabricated": [True],
        "answered": [True],
        "accepted": [True],
        "since": ["2020-01-01"],
        "until": ["2020-01-01"],
        "sample": [1 << 60],
        "limit": [1],
        "fields": [Fields(("Id",)), Fields(None, ("Body",))],
    },
    OutputForm: {
        "format": ["json"],
        "compression": ["zstd"],
        "index": ["others"],
        "split_bytes": [10**6],
        "split_files": [3],
        "split_by": ["year"],
    },
}
"""Other values of each field; each makes another output."""

ONLY_RUN = {
    "jobs": "the output is the same for any number of workers",
    "progress": "is shown, not written",
    "core": "both write the same bytes",
    "chunk_bytes": "a spill keeps the chunks that it was begun with",
    "spill_budget": "how blocks are compressed, which readers of the spill tell by themselves",
    "strict": "decides whether a conversion fails, not what it writes",
    "is_looked_up": "follows from the recipe, which is remembered",
    "form": "its fields are tested one by one",
    "filters": "its fields are tested one by one",
}


@pytest.mark.parametrize("kind", CHANGED)
def test_every_option_is_in_the_fingerprint(kind: type) -> None:
    names = {field.name for field in fields(kind)}
    assert names == CHANGED[kind].keys() | (names & ONLY_RUN.keys())
    for name, values in CHANGED[kind].items():
        prints = [Fingerprint.of(options_with(kind, **{name: value})) for value in values]
        prints.append(Fingerprint.of(Options()))
        assert len({str(one.to_json()) for one in prints}) == len(prints), name
        for one in prints[:-1]:
            # A spill without malformed rows serves `skip_malformed`, too, but not the reverse.
            assert one.differences(prints[-1], of_spill_only=False), name
            assert prints[-1].differences(one, of_spill_only=False) or name == "skip_malformed"


def test_every_filter_but_the_limit_is_remembered_with_the_spill() -> None:
    usual = Fingerprint.of(Options())
    for name, values in CHANGED[Filters].items():
        for value in values:
            other = Fingerprint.of(options_with(Filters, **{name: value}))
            assert bool(usual.differences(other, of_spill_only=True)) is (name != "limit"), name


def options_with(kind: type, **changed: Any) -> Options:
    if kind is Filters:
        return Options(filters=Filters(**changed))
    if kind is OutputForm:
        return Options(form=OutputForm(**changed))
    return replace(Options(), **changed)


def test_a_spill_of_other_filters_is_refused(tmp_path: Path) -> None:
    rows = [question(number, AnswerCount=number % 5) for number in range(1, 21)]
    dump, output = write_dump(tmp_path / "Posts.xml", *rows), tmp_path / "q.jsonl"
    so2docs.convert(dump, output, min_answers=3, keep_spill=True)
    with pytest.raises(so2docs.SpillError, match=r"different: min_answers"):
        so2docs.convert(dump, output, min_answers=1, force=True)
