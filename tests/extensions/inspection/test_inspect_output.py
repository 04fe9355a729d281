"""`inspect_output` agrees with an independent count; its text and JSON."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.oracle import nest
from support.places import SAMPLES

import so2docs

Posts = list[dict[str, Any]]


def summarized(posts: Posts) -> dict[str, Any]:
    scores = [post["Score"] for post in posts if isinstance(post.get("Score"), int)]
    if not scores:
        return {}
    mean, median = sum(scores) / len(scores), statistics.median_low(scores)
    return {"min": min(scores), "median": median, "mean": round(mean, 3), "max": max(scores)}


def by_year(posts: Posts) -> dict[str, int]:
    return dict(
        sorted(Counter(p["CreationDate"][:4] for p in posts if "CreationDate" in p).items())
    )


def expected(questions: Posts) -> dict[str, Any]:
    answers = [answer for question in questions for answer in question["Answers"]]
    dates = [post["CreationDate"] for post in questions + answers if "CreationDate" in post]
    tags = Counter(tag for question in questions for tag in question.get("Tags", ()))
    return {
        "questions": len(questions),
        "answers": len(answers),
        "accepted": sum("AcceptedAnswerId" in question for question in questions),
        "unanswered": sum(not question["Answers"] for question in questions),
        "first_date": min(dates, default=None),
        "last_date": max(dates, default=None),
        "questions_by_year": by_year(questions),
        "answers_by_year": by_year(answers),
        "question_scores": summarized(questions),
        "answer_scores": summarized(answers),
        "tags": {tag: tags[tag] for tag in sorted(tags, key=lambda tag: (-tags[tag], tag))[:30]},
    }


def check(dump: Path, output: Path) -> None:
    so2docs.convert(dump, output, jobs=1)
    inspection = so2docs.inspect_output(output)
    values = inspection.as_dict()
    assert values.pop("path") == str(output)
    assert values.pop("bytes") == output.stat().st_size
    lines = list(so2docs.read(output, dict[str, Any]))
    sizes = [
        len(json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()) + 1
        for line in lines
    ]
    assert values.pop("json_bytes") == sum(sizes)
    assert values == expected(nest(dump).documents)
    assert f"{len(lines):,} questions" in str(inspection)


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.xml")))
def test_samples(name: str, tmp_path: Path) -> None:
    check(SAMPLES / name, tmp_path / "q.jsonl.gz")


def test_published_dumps(real_dump: Path, tmp_path: Path) -> None:
    check(real_dump, tmp_path / "q.jsonl.gz")


def test_the_command(tmp_path: Path) -> None:
    folder = tmp_path / "outputs"
    folder.mkdir()
    so2docs.convert(SAMPLES / "posts.xml", folder / "a.jsonl.gz", jobs=1)
    so2docs.convert(SAMPLES / "posts.xml", folder / "b.jsonl", fields="Id,Title", jobs=1)
    results = [so2docs.inspect_output(folder / name) for name in ("a.jsonl.gz", "b.jsonl")]
    one = run("inspect", folder / "a.jsonl.gz", code=0)
    assert (one.stdout, one.stderr) == (f"{results[0]}\n", "")
    several = run("inspect", folder, SAMPLES / "site", code=0)
    assert str(results[0]) in several.stdout
    assert str(results[1]) in several.stdout
    assert "probably the release of" in several.stdout
    assert "3 sites: 3 inspected, 0 failed" in several.stderr
    values = json.loads(run("inspect", folder, "--json", code=0).stdout)
    assert values == [result.as_dict() for result in results]


def test_records_of_a_recipe(tmp_path: Path) -> None:
    output = tmp_path / "pairs.jsonl"
    so2docs.convert(SAMPLES / "posts.xml", output, recipe="pairs", site="a.test", jobs=1)
    inspection = so2docs.inspect_output(output)
    assert (inspection.recipe, inspection.lines) == ("pairs", len(list(so2docs.read(output))))
    assert inspection.as_dict().keys() == {"path", "bytes", "json_bytes", "recipe", "records"}
    shown = run("show", output, "1", code=1)
    assert "count them with so2docs inspect" in shown.stderr
    assert run("inspect", output, code=0).stdout == f"{inspection}\n"


@pytest.mark.parametrize("lines", ['{"Id":1}\nnot JSON\n', '{"Id":1}\n[3]\n'])
def test_lines_that_are_not_documents(lines: str, tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text(lines)
    with pytest.raises(so2docs.OutputError, match=r"broken\.jsonl: line 2 is not"):
        so2docs.inspect_output(tmp_path / "broken.jsonl")
