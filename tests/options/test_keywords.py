"""The keywords that `convert`, `convert_all` and `documents` share: names, types, and help."""

from __future__ import annotations

import inspect
import json
from datetime import UTC, date, datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.places import SAMPLES

import so2docs
from so2docs.options.signatures import spell_out
from so2docs.options.table import OF_CONVERT

DOORS = (so2docs.convert, so2docs.convert_all, so2docs.documents)


@pytest.mark.parametrize("door", DOORS)
def test_help_spells_every_keyword_out(door: Any) -> None:
    parameters = inspect.signature(door).parameters
    assert {"tags", "jobs", "nest", "core", "since"} <= set(parameters)
    arguments = inspect.getdoc(door).partition("Args:")[2].partition("Returns:")[0]  # type: ignore[union-attr]
    described = [line.split(":")[0].strip() for line in arguments.splitlines() if line[4:5] != " "]
    assert [name for name in described if name] == list(parameters)
    assert "keywords" not in parameters
    assert parameters["level"].default == 2 if "level" in parameters else True
    assert parameters["errors"].default == "repair"
    assert parameters["tags"].annotation != inspect.Parameter.empty


def test_docstrings_without_indentation() -> None:
    """Python 3.13 removes it; the import of the package must not fail then."""

    def api(**keywords: object) -> None:
        pass

    api.__doc__ = "Do.\n\nArgs:\n    keywords: All.\n\nRaises:\n    ValueError: Never.\n"
    described = inspect.getdoc(spell_out(OF_CONVERT)(api)) or ""
    assert "\n    tags: " in described
    assert "keywords: All." not in described


def ids(**keywords: Any) -> list[int]:
    return [question["Id"] for question in so2docs.documents(SAMPLES / "posts.xml", **keywords)]


def test_dates_are_dates() -> None:
    some = ids(since="2024-02-01")
    assert 0 < len(some) < len(ids())
    assert ids(since=date(2024, 2, 1)) == some
    assert ids(since=datetime(2024, 2, 1)) == some
    assert ids(since=datetime(2024, 2, 1, tzinfo=UTC)) == some
    there = timezone(timedelta(hours=5))
    assert ids(since=datetime(2024, 2, 1, 5, tzinfo=there)) == some
    assert sorted(some + ids(until=date(2024, 2, 1))) == ids()


@pytest.mark.parametrize(
    ("call", "wrong", "hint"),
    [
        (so2docs.documents, {"tag": "python"}, "did you mean tags"),
        (so2docs.convert, {"tag": "python"}, "did you mean tags"),
        (partial(so2docs.convert_all, output_dir="out"), {"tag": "x"}, "did you mean tags"),
        (partial(so2docs.diff, "old.jsonl"), {"ignored": "Score"}, "did you mean ignore"),
        (partial(so2docs.diff, "old.jsonl"), {"tag": "a"}, ""),
    ],
)
def test_unknown_keywords_are_type_errors(call: Any, wrong: dict[str, str], hint: str) -> None:
    [name] = wrong
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'.*{hint}"):
        call(SAMPLES / "posts.xml", **wrong)


def test_iterators_and_numbers_of_other_libraries_will_do() -> None:
    numpy = pytest.importorskip("numpy")
    assert len(ids(limit=numpy.int64(2))) == 2
    assert ids(tags=iter(["bread", "sourdough"])) == ids(tags=["bread", "sourdough"])


def test_a_missing_dump_is_an_error_at_the_call() -> None:
    with pytest.raises(so2docs.DumpError, match=r"nowhere\.xml: cannot be read: No such file"):
        so2docs.documents("nowhere.xml")


def test_the_site_of_documents() -> None:
    dump = SAMPLES / "posts.xml"
    assert {q["Site"] for q in so2docs.documents(dump, site_field="Site", site="beer")} == {"beer"}  # type: ignore[typeddict-item]


def test_diff_checks_its_options_at_the_call() -> None:
    with pytest.raises(so2docs.OptionError, match="there is no field"):
        so2docs.diff("old.jsonl", "new.jsonl", ignore="gone")


def test_results_are_alike(tmp_path: Path) -> None:
    output = tmp_path / "q.jsonl"
    results = [
        so2docs.convert(SAMPLES / "posts.xml", output, jobs=1, card=True),
        so2docs.to_sqlite(SAMPLES / "site", tmp_path / "q.db"),
        so2docs.inspect_output(output),
        so2docs.diff(output, output).write(tmp_path / "changes.jsonl"),
        *so2docs.convert_all([SAMPLES / "site"], tmp_path / "out", jobs=1),
    ]
    for result in results:
        assert json.loads(json.dumps(result.as_dict()))  # type: ignore[attr-defined]
        assert str(result)
        assert "object at 0x" not in str(result)
    for stream in (so2docs.documents(SAMPLES / "posts.xml"), so2docs.rows(SAMPLES, "posts")):
        assert "object at 0x" not in repr(stream)
