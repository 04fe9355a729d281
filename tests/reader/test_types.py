"""Types of documents: type checkers accept correct uses only, and documents match the types."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NotRequired, get_args, get_origin, get_type_hints

import pytest
from support.places import CHECKOUT
from support.table_sites import SITE

import so2docs
from so2docs import types
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    POST_PARTS,
    QUESTION_ATTRIBUTES,
    TYPES,
    Part,
)

TYPE_OF = {
    **dict.fromkeys(("text", "date"), str),
    **{"integer": int, "boolean": bool, "texts": list[str], "integers": list[int]},
}

SNIPPET = """\
from typing import Any

import so2docs
from so2docs.types import Answer, Question


def best(question: Question) -> Answer | None:
    ranked = sorted(question["Answers"], key=lambda answer: answer["Score"])
    return ranked[-1] if ranked else None


for question in so2docs.read("questions.jsonl.gz"):
    title: str = question["Title"]
    tags: list[str] = question["Tags"]
    closed: str | None = question.get("ClosedDate")
    for comment in question["Comments"]:
        words: list[str] = comment["Text"].split()
    found = best(question)
    score: int = 0 if found is None else found["Score"]
with so2docs.open("questions.jsonl.gz") as docs:
    for question_id, document in docs.items():
        number: int = question_id + document["Answers"][0]["ParentId"]
    ids: list[int] = list(docs)
with so2docs.documents("Posts.xml", tags="python") as made:
    bodies = [question["Body"] for question in made]
for record in so2docs.read("pairs.jsonl.gz", dict[str, Any]):
    print(record["prompt"], ids, bodies)
so2docs.convert("Posts.xml", format="parquet", nest=["comments", "users"])
so2docs.convert("Posts.xml", nest="all")
perhaps: Question | None = docs.get(1)
number_or_question: int | Question = docs.get(1, 0)
"""
MISTAKES = [
    'next(so2docs.read("q.jsonl"))["Titel"]',
    'so2docs.open("q.jsonl")[1]["Titel"]',
    'next(so2docs.documents("Posts.xml"))["Titel"]',
    'next(so2docs.read("q.jsonl"))["Score"].lower()',
    'next(so2docs.read("q.jsonl"))["Answers"][0]["Title"]',
    'next(so2docs.read("q.jsonl"))["Comments"][0]["Body"]',
    'so2docs.open("q.jsonl").get(1)["Title"]',
    'so2docs.convert("Posts.xml", format="csv")',
    'so2docs.convert("Posts.xml", nest=["comment"])',
]


def checked(command: list[str], source: str, folder: Path) -> tuple[int, str]:
    (folder / "snippet.py").write_text(source)
    result = subprocess.run(
        [*command, "snippet.py"], cwd=folder, capture_output=True, text=True, check=False
    )
    return result.returncode, result.stdout + result.stderr


@pytest.fixture(params=["mypy", "pyright"])
def checker(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    if request.param == "mypy":
        # Checkers do not follow an editable installation.
        settings = f"strict = True\nmypy_path = {CHECKOUT}\nfollow_imports = silent\n"
        (tmp_path / "mypy.ini").write_text(f"[mypy]\n{settings}")
        return [sys.executable, "-m", "mypy", "--cache-dir", str(CHECKOUT / "build" / "mypy-types")]
    path = shutil.which("pyright", path=Path(sys.executable).parent) or shutil.which("pyright")
    if path is None:
        pytest.skip("pyright is not installed")
    config = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(CHECKOUT)],
        "reportUnusedExpression": False,
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    return [path, "--pythonpath", sys.executable]


@pytest.mark.long
def test_type_checkers_accept_and_reject(checker: list[str], tmp_path: Path) -> None:
    """Errors are in the lines of mistakes, and in no line of the snippet before them."""
    snippet = SNIPPET.rstrip("\n") + "\n"
    code, printed = checked(checker, snippet + "\n".join(MISTAKES) + "\n", tmp_path)
    assert code == 1
    lines = {int(number) for number in re.findall(r"snippet\.py:(\d+):.*error", printed)}
    first = snippet.count("\n") + 1
    assert lines == set(range(first, first + len(MISTAKES))), printed


def test_every_key_is_declared_with_its_type() -> None:
    assert_declared(types.Question, QUESTION_ATTRIBUTES, POST_PARTS)
    assert_declared(types.Answer, ANSWER_ATTRIBUTES, POST_PARTS)
    assert get_type_hints(types.Question)["Answers"] == list[types.Answer]
    assert "Answers" not in get_type_hints(types.Answer)


def assert_declared(kind: Any, names: Iterable[str], parts: Iterable[Part]) -> None:
    hints = get_type_hints(kind)
    assert {name: hints[name] for name in names} == {name: TYPE_OF[TYPES[name]] for name in names}
    for part in parts:
        hint = hints[part.key]
        if part.shape == "value":
            assert hint == TYPE_OF[part.attributes[part.key]]
        elif part.shape == "counts":
            assert hint == dict[str, int]
        else:
            is_list = part.shape == "list"
            assert (get_origin(hint) is list) == is_list
            assert_declared(get_args(hint)[0] if is_list else hint, part.attributes, part.parts)


def test_documents_have_these_types(tmp_path: Path) -> None:
    """Leave out irregular rows of the sample, whose values of another type stay texts."""
    output = tmp_path / "questions.jsonl"
    so2docs.convert(SITE, output, nest="all", attribution=True, site="tea.stackexchange.com")
    odd = re.compile(rb'"(Score|ViewCount|LinkTypeId)":"')
    count = 0
    for line, question in zip(output.read_bytes().splitlines(), so2docs.read(output), strict=True):
        if not odd.search(line):
            assert_is(question, types.Question)
            count += 1
    assert count == 3


def assert_is(value: Any, kind: Any) -> None:
    if get_origin(kind) is NotRequired:
        assert_is(value, get_args(kind)[0])
    elif get_origin(kind) is list:
        for one in value:
            assert_is(one, get_args(kind)[0])
    elif get_origin(kind) is dict:
        assert all(type(count) is int for count in value.values())
    elif hasattr(kind, "__required_keys__"):
        hints = get_type_hints(kind)
        for name in value:
            if name in hints:
                assert_is(value[name], hints[name])
    else:
        assert type(value) is kind
