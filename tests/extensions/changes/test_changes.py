"""`diff` agrees with an independent comparison, and its changes lead to the new output."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.command import run, run_python
from support.dumps import row, write_dump
from support.messages import heard
from support.site_over_time import Site, as_text

import so2docs
from so2docs.output.formats import Format

Posts = list[dict[str, Any]]
EVENINGS = Site(seed=2).evenings


def evening(day: int) -> Posts:
    """Return the posts of a made-up site at the end of a day."""
    return [*EVENINGS[day].values()]


def changed(posts: Posts, post_id: int, **attributes: Any) -> Posts:
    return [post | attributes if post["Id"] == post_id else post for post in posts]


def dump(path: Path, posts: Posts) -> Path:
    return write_dump(path, *(row(**as_text(post)) for post in posts))


def output(path: Path, posts: Posts, **options: Any) -> Path:
    so2docs.convert(dump(path.with_suffix(".xml"), posts), path, jobs=1, **options)
    return path


def documents(path: Path) -> dict[int, dict[str, Any]]:
    return {document["Id"]: document for document in so2docs.read(path)}


def compared(old: Path, new: Path) -> list[dict[str, Any]]:
    """Compute the changes in memory."""
    before, after = documents(old), documents(new)
    changes: list[dict[str, Any]] = []
    for number in sorted({*before, *after}):
        one, other = before.get(number), after.get(number)
        if one == other:
            continue
        if other is None:
            changes.append({"op": "deleted", "Id": number})
        elif one is None:
            changes.append({"op": "added", "Id": number, "document": other})
        else:
            answers = [{a["Id"]: a for a in document["Answers"]} for document in (one, other)]
            keys = {k for k in {*one, *other} - {"Answers"} if one.get(k) != other.get(k)}
            both = answers[0].keys() & answers[1].keys()
            changes.append(
                {
                    "op": "changed",
                    "Id": number,
                    "fields": sorted(keys),
                    "answers": {
                        "added": sorted(answers[1].keys() - both),
                        "edited": sorted(i for i in both if answers[0][i] != answers[1][i]),
                        "deleted": sorted(answers[0].keys() - both),
                    },
                    "document": other,
                }
            )
    return changes


def apply(state: dict[int, dict[str, Any]], changes: Path) -> dict[int, dict[str, Any]]:
    """Apply a changes file to documents by id."""
    *lines, end = so2docs.read(changes)
    assert end == {"op": "end", "changes": len(lines)}
    for change in lines:
        if change["op"] == "deleted":
            del state[change["Id"]]
        else:
            assert (change["op"] == "changed") == (change["Id"] in state)
            state[change["Id"]] = change["document"]
    return state


def in_order(change: dict[str, Any]) -> dict[str, Any]:
    if change["op"] == "changed":
        change["fields"] = sorted(change["fields"])
        change["answers"] = {name: sorted(ids) for name, ids in change["answers"].items()}
    return change


LAST_QUESTION = max(post["Id"] for post in evening(28) if post["PostTypeId"] == 1)
AN_ANSWER = next(post["Id"] for post in evening(28) if post["PostTypeId"] == 2)
PAIRS: dict[str, tuple[Posts, Posts]] = {
    "a day": (evening(20), evening(21)),
    "three weeks": (evening(7), evening(28)),
    "backwards": (evening(28), evening(7)),
    "one score": (evening(28), changed(evening(28), LAST_QUESTION, Score=99)),
    "an answer moved": (evening(28), changed(evening(28), AN_ANSWER, ParentId=LAST_QUESTION)),
    "all equal": (evening(9), evening(9)),
    "all changed": (evening(9), [post | {"Score": 99} for post in evening(9)]),
    "nothing in common": (
        [post for post in evening(28) if post.get("ParentId", post["Id"]) % 2],
        [post for post in evening(28) if not post.get("ParentId", post["Id"]) % 2],
    ),
    "to nothing": (evening(9), []),
    "from nothing": ([], evening(9)),
}


@pytest.mark.parametrize(
    ("pair", "extension"),  # The old output is compressed with gzip.
    [*((pair, ".jsonl.gz") for pair in PAIRS), ("a day", ".jsonl.zst"), ("a day", ".jsonl")],
)
def test_changes_equal_the_oracle_and_give_the_new_output(
    pair: str, extension: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs have many segments, most of them equal if few questions change."""
    monkeypatch.setattr(Format, "segment_bytes", 4000)
    posts = PAIRS[pair]
    old = output(tmp_path / "old.jsonl.gz", posts[0])
    new = output(tmp_path / f"new{extension}", posts[1])
    with so2docs.open(old) as docs:
        assert docs.index.count > (10 if "one" in pair else 0) - (not posts[0])
    with so2docs.diff(old, new) as changes:
        actual = [in_order(change) for change in changes]
    assert actual == compared(old, new)
    summary = changes.summary
    assert summary.questions.added + summary.questions.changed + summary.questions.deleted == len(
        actual
    )
    assert summary.unchanged == len(documents(old).keys() & documents(new).keys()) - (
        summary.questions.changed
    )
    written = tmp_path / f"changes{extension}"
    so2docs.diff(old, new).write(written)
    assert apply(documents(old), written) == documents(new)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Path, Path]:
    old = output(tmp_path / "old.jsonl.gz", evening(7))
    return old, output(tmp_path / "new.jsonl.gz", evening(28))


def test_the_filter_on_the_page_makes_bulk_actions(pair: tuple[Path, Path], tmp_path: Path) -> None:
    """The actions lead to the documents of the new output."""
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    old, new = pair
    so2docs.diff(old, new).write(tmp_path / "changes.jsonl.gz")
    page = (Path(__file__).parents[3] / "docs" / "changes.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^(gzip -cd .*? > bulk\.ndjson)$", page, re.M | re.S)
    subprocess.run(command, shell=True, check=True, cwd=tmp_path)
    state = {str(number): document for number, document in documents(old).items()}
    lines = iter((tmp_path / "bulk.ndjson").read_text(encoding="utf-8").splitlines())
    for line in lines:
        ((action, target),) = json.loads(line).items()
        assert target["_index"] == "questions"
        if action == "delete":
            del state[target["_id"]]
        else:
            state[target["_id"]] = json.loads(next(lines))
    assert state == {str(number): document for number, document in documents(new).items()}


def test_a_change_of_ignored_fields_alone_is_no_change(tmp_path: Path) -> None:
    posts = evening(9)
    first, second = [post["Id"] for post in posts if post["PostTypeId"] == 1][:2]
    answer = next(p for p in posts if p.get("ParentId", 0) > second)
    last = answer["ParentId"]
    later = changed(changed(posts, first, Score=99), second, Score=99, Title="Another")
    old = output(tmp_path / "old.jsonl", posts)
    new = output(tmp_path / "new.jsonl", changed(later, answer["Id"], Score=99))
    ids = {
        number: [change["Id"] for change in so2docs.diff(old, new, ignore=number)]
        for number in ("", "Score", "Score,Answers.Score", "Answers.Score")
    }
    assert ids == {
        "": [first, second, last],
        "Score": [second, last],
        "Score,Answers.Score": [second],
        "Answers.Score": [first, second],
    }


def test_missing_provenance_is_reported(pair: tuple[Path, Path]) -> None:
    old, new = pair
    with heard() as messages:
        changes = list(so2docs.diff(old, new))
        assert messages == []
        old.with_name(f".{old.name}.index").unlink()
        assert list(so2docs.diff(old, new)) == changes
    assert messages[-1].startswith(f"{old}: has no record")


def test_the_commands(pair: tuple[Path, Path], tmp_path: Path) -> None:
    old, new = map(str, pair)

    table = run("diff", old, new, "--summary", cwd=tmp_path, code=0)
    assert "by field\n" in table.stdout
    counts = json.loads(run("diff", old, new, "--json").stdout)
    piped = run("diff", old, new, code=0)
    assert "by field\n" in piped.stderr
    lines = piped.stdout.splitlines()
    changed = sum(counts["questions"][name] for name in ("added", "changed", "deleted"))
    assert len(lines) == changed + 1
    assert json.loads(lines[-1]) == {"op": "end", "changes": changed}
    both = run("diff", old, new, "written.jsonl", "--summary", cwd=tmp_path, code=0)
    assert both.stdout == table.stdout
    assert (tmp_path / "written.jsonl").read_text().splitlines() == lines
    head = subprocess.run(
        f"{sys.executable} -m so2docs diff -q {old} {new} | head -1",
        shell=True,
        capture_output=True,
        check=True,
        cwd=tmp_path,
    )
    assert head.stdout.count(b"\n") == 1
    assert head.stderr == b""


@pytest.mark.long
def test_memory_does_not_grow_with_the_outputs(tmp_path: Path) -> None:
    def peak(questions: int) -> int:
        """Return the peak memory of a comparison, in bytes."""
        paths = [tmp_path / f"{name}{questions}.jsonl" for name in ("old", "new", "changes")]
        for path in paths[:2]:
            with path.open("w") as file:
                for number in range(1, questions):
                    text = "x" * 1500 + path.name[: number % 50 == 0]
                    file.write(f'{{"Id":{number},"Body":"{text}","Answers":[]}}\n')
        script = (
            "import so2docs, sys\n"
            "from so2docs.limits import peak_memory\n"
            "old, new, changes = sys.argv[1:]\n"
            "so2docs.diff(old, new).write(changes)\n"
            "print(peak_memory())"
        )
        run = run_python("-c", script, *paths)
        return int(run.stdout)

    small, large = peak(10_000), peak(40_000)
    assert large < small + 5_000_000
