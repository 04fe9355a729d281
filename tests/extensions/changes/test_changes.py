"""`diff` agrees with an independent comparison, and its changes lead to the new output."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.command import run, run_python
from support.dumps import row, write_dump
from support.messages import heard

import so2docs
from so2docs.errors import OptionError
from so2docs.output.formats import Format

Posts = list[dict[str, Any]]


def site(questions: int, seed: int = 1) -> Posts:
    """Make the rows of a made-up site."""
    chance = random.Random(seed)
    posts: Posts = []
    for number in range(questions):
        question_id = number * 7 + 1
        posts.append(
            {
                "Id": question_id,
                "PostTypeId": 1,
                "CreationDate": f"2020-01-{1 + number % 28:02}T00:00:00.000",
                "Score": chance.randint(-3, 30),
                "Body": f"<p>{'word ' * chance.randint(1, 60)}{number}</p>",
                "LastActivityDate": "2020-02-01T00:00:00.000",
                "Title": f"Question {number}",
                "Tags": "<a><b>",
            }
        )
        for answer in range(chance.randint(0, 4)):
            posts.append(
                {
                    "Id": question_id + answer + 1,
                    "PostTypeId": 2,
                    "ParentId": question_id,
                    "CreationDate": "2020-01-02T00:00:00.000",
                    "Score": chance.randint(-3, 30),
                    "Body": f"<p>answer {answer} to {number}</p>",
                    "LastActivityDate": "2020-02-01T00:00:00.000",
                }
            )
    return posts


def later(posts: Posts, seed: int, share: float = 0.1) -> Posts:
    """Change a site to its state at a later date."""
    chance = random.Random(seed)
    deleted = {post["Id"] for post in posts if chance.random() < share / 4}
    questions = [post["Id"] for post in posts if post["PostTypeId"] == 1]
    posts_later: Posts = []
    for old in posts:
        post = dict(old)
        if post["Id"] in deleted or post.get("ParentId") in deleted:
            continue
        if chance.random() < share:
            post["Score"] += 1
        if chance.random() < share:
            post["Body"] += "<p>edited</p>"
        if chance.random() < share:
            post["ClosedDate"] = "2021-01-01T00:00:00.000"
        if post["PostTypeId"] == 1 and chance.random() < share:
            post["Tags"] = "<c>"
        if post["PostTypeId"] == 2 and chance.random() < share / 4:
            post["ParentId"] = chance.choice([q for q in questions if q not in deleted])
        posts_later.append(post)
    return posts_later + [
        {**post, "Id": post["Id"] + 100_000}
        for post in site(int(len(questions) * share), seed)
        if post["PostTypeId"] == 1
    ]


def dump(path: Path, posts: Posts) -> Path:
    return write_dump(path, *(row(**post) for post in posts))


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


def kept_score(posts: Posts) -> Posts:
    return [{**post, "Score": post["Score"] + 1} for post in posts]


PAIRS: dict[str, Callable[[], tuple[Posts, Posts]]] = {
    "some": lambda: (site(300), later(site(300), 2)),
    "few": lambda: (site(900), later(site(900), 3, 0.01)),
    "all equal": lambda: (site(200), site(200)),
    "all changed": lambda: (site(200), kept_score(site(200))),
    "nothing in common": lambda: (
        site(100),
        [
            {
                **p,
                "Id": p["Id"] + 9000,
                **({"ParentId": p["ParentId"] + 9000} if "ParentId" in p else {}),
            }
            for p in site(100)
        ],
    ),
    "to nothing": lambda: (site(50), []),
    "from nothing": lambda: ([], site(50)),
    "backwards": lambda: (later(site(300), 4), site(300)),
}


@pytest.mark.parametrize(
    ("pair", "extension"),  # The old output is compressed with gzip.
    [*((pair, ".jsonl.gz") for pair in PAIRS), ("few", ".jsonl.zst"), ("few", ".jsonl")],
)
def test_changes_equal_the_oracle_and_give_the_new_output(
    pair: str, extension: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs have many segments, most of them equal if few questions change."""
    monkeypatch.setattr(Format, "segment_bytes", 4000)
    posts = PAIRS[pair]()
    old = output(tmp_path / "old.jsonl.gz", posts[0])
    new = output(tmp_path / f"new{extension}", posts[1])
    with so2docs.open(old) as docs:
        assert docs.index.count > (10 if pair == "few" else 0) - (not posts[0])
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
    old = output(tmp_path / "old.jsonl.gz", site(300))
    return old, output(tmp_path / "new.jsonl.gz", later(site(300), 2))


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
    posts = site(40)
    changed = [dict(post) for post in posts]
    questions = [post for post in changed if post["PostTypeId"] == 1]
    answers = [post for post in changed if post["PostTypeId"] == 2]
    questions[0]["Score"] += 1
    questions[1]["Score"] += 1
    questions[1]["Title"] = "Another"
    answers[-1]["Score"] += 1
    old = output(tmp_path / "old.jsonl", posts)
    new = output(tmp_path / "new.jsonl", changed)
    ids = {
        number: [change["Id"] for change in so2docs.diff(old, new, ignore=number)]
        for number in ("", "Score", "Score,Answers.Score", "Answers.Score")
    }
    first, second, last = questions[0]["Id"], questions[1]["Id"], answers[-1]["ParentId"]
    assert ids == {
        "": [first, second, last],
        "Score": [second, last],
        "Score,Answers.Score": [second],
        "Answers.Score": [first, second],
    }


OTHER_OPTIONS: list[dict[str, Any]] = [
    {"fields": "Id,Title,Answers"},
    {"drop_fields": "ClosedDate,LastActivityDate"},
    {"body": "markdown"},
    {"site_field": "Site"},
    {"answers_by": "votes"},
    {"min_score": -100},
    {"tags": "a"},
    {"nest": ["comments"]},
]


@pytest.mark.parametrize("options", OTHER_OPTIONS, ids=lambda options: next(iter(options)))
def test_other_options_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    (tmp_path / "Comments.xml").write_text(
        '<comments>\n<row Id="1" PostId="1" Text="well" UserId="3" />\n</comments>\n'
    )
    old = output(tmp_path / "old.jsonl.gz", site(60))
    new = output(tmp_path / "new.jsonl.gz", later(site(60), 2), **options)
    (name,) = options
    with pytest.raises(OptionError, match=rf"converted with different options \({name}\)"):
        so2docs.diff(old, new).write(tmp_path / "changes.jsonl")
    assert not (tmp_path / "changes.jsonl").exists()


def test_another_site_is_refused(tmp_path: Path) -> None:
    paths = []
    for name in ("beer.stackexchange.com", "coffee.stackexchange.com"):
        (tmp_path / name).mkdir()
        dump(tmp_path / name / "Posts.xml", site(40))
        paths.append(tmp_path / f"{name}.jsonl")
        so2docs.convert(tmp_path / name, paths[-1])
    with pytest.raises(OptionError, match=r"the sites are not the same \(\S+, coffee"):
        list(so2docs.diff(*paths))


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
            "from so2docs.processes.worker import peak_memory\n"
            "old, new, changes = sys.argv[1:]\n"
            "so2docs.diff(old, new).write(changes)\n"
            "print(peak_memory())"
        )
        run = run_python("-c", script, *paths)
        return int(run.stdout)

    small, large = peak(10_000), peak(40_000)
    assert large < small + 5_000_000
