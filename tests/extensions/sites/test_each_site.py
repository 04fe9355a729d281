"""Commands on several dumps, or on folders of outputs, do the same for each site as for one."""

from __future__ import annotations

import gzip
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import COMMAND, run
from support.dumps import answer, question, row, write_dump
from support.interruptions import wait_for
from support.messages import heard
from support.places import SAMPLES

import so2docs
from so2docs.errors import RESUMES, STARTS_OVER, OptionError, OutputError


def posts(questions: int, score: int = 1) -> list[bytes]:
    """Make the rows of a site: questions with odd numbers as ids, and an answer to each."""
    rows = []
    for number in range(1, 2 * questions, 2):
        rows.append(question(number, Title=f"Question {number}", Score=score * (number == 3)))
        rows.append(answer(number + 1, number, Body=f"<p>{number}</p>"))
    return rows


def quarter(folder: Path, sites: dict[str, list[bytes]], end: str = ".jsonl.gz") -> Path:
    """Make a folder of outputs."""
    folder.mkdir(parents=True, exist_ok=True)
    for site, rows in sites.items():
        dump = write_dump(folder.parent / f"{folder.name}.dumps" / site / "Posts.xml", *rows)
        so2docs.convert(dump.parent, folder / f"{site}{end}", jobs=1)
    return folder


@pytest.fixture
def quarters(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders with four sites: changed, unchanged, removed and added."""
    old = quarter(tmp_path / "2024-04", {"beer": posts(4), "coffee": posts(3), "gone": posts(2)})
    new = quarter(
        tmp_path / "2024-07", {"beer": posts(6, score=9), "coffee": posts(3), "new": posts(5)}
    )
    return old, new


def states(results: list[so2docs.SiteResult]) -> dict[str, str]:
    return {result.site: result.state for result in results}


def table(text: str) -> dict[str, list[str]]:
    """Return the lines of a printed table, by site."""
    lines = text[text.index("site ") :].splitlines()
    return {line.split()[0]: line.split()[1:] for line in lines}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def outputs(folder: Path) -> list[str]:
    """Return the names of the files in a folder, except side files."""
    return sorted(name for name in contents(folder) if not name.startswith("."))


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_site_is_compared(quarters: tuple[Path, Path], jobs: int, tmp_path: Path) -> None:
    old, new = quarters
    changes = tmp_path / "changes"
    results = so2docs.for_each_site(so2docs.diff, (old, new), changes, jobs=jobs)
    expected = {"beer": "changed", "coffee": "unchanged", "gone": "gone", "new": "new"}
    assert states(results) == expected
    beer, _, removed, added = (result.result for result in results)
    assert isinstance(beer, so2docs.Summary)
    assert (beer.questions.added, beer.questions.changed, beer.unchanged) == (2, 1, 3)
    assert removed is None
    assert isinstance(added, so2docs.Summary)
    assert (added.questions.added, added.answers.added, added.old_path) == (5, 5, "")
    assert outputs(changes) == ["beer.jsonl.gz", "coffee.jsonl.gz", "new.jsonl.gz"]
    before = contents(changes)
    again = states(so2docs.for_each_site(so2docs.diff, (old, new), changes, jobs=jobs))
    assert again == dict.fromkeys(("beer", "coffee", "new"), "up to date") | {"gone": "gone"}
    assert contents(changes) == before
    lines = gzip.decompress((changes / "beer.jsonl.gz").read_bytes()).splitlines()
    alone = list(so2docs.diff(old / "beer.jsonl.gz", new / "beer.jsonl.gz"))
    assert [json.loads(line) for line in lines[:-1]] == alone


@pytest.mark.long
def test_a_broken_site_does_not_stop_the_others(
    quarters: tuple[Path, Path], tmp_path: Path
) -> None:
    old, new = quarters
    (new / "beer.jsonl.gz").write_bytes((new / "beer.jsonl.gz").read_bytes()[:200])
    changes = tmp_path / "changes"
    result = run("diff", old, new, changes, "--jobs", "2", code=3)
    assert "beer.jsonl.gz: is damaged" in result.stderr
    assert [line[0] for line in table(result.stderr).values()] == [
        *("state", "failed", "unchanged", "gone", "new"),
        *("5", "sites:"),
    ]
    assert result.stderr.splitlines()[-1] == "4 sites: 1 unchanged, 1 gone, 1 new, 1 failed"
    assert outputs(changes) == ["coffee.jsonl.gz", "new.jsonl.gz"]
    result = run("inspect", new, code=3)
    assert "beer.jsonl.gz: is damaged" in result.stderr
    counted = table(result.stderr)
    assert counted["beer"] == ["failed"]
    assert counted["total"][:2] == ["8", "8"]


@pytest.mark.long
def test_a_site_that_failed_is_not_gone(quarters: tuple[Path, Path], tmp_path: Path) -> None:
    old, new = quarters
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "Posts.xml").write_text("<posts>\n<row ")
    so2docs.convert_all([tmp_path / "gone"], new)
    results = so2docs.for_each_site(so2docs.diff, (old, new))
    assert states(results) == {
        "beer": "changed",
        "coffee": "unchanged",
        "gone": "failed",
        "new": "new",
    }
    assert "no output, because the conversion failed: " in str(results[2].error)
    result = run("diff", old, new, tmp_path / "changes")
    assert (result.returncode, "Posts.xml: is truncated" in result.stderr) == (3, True)
    (marker,) = new.glob(".*.failed")
    marker.unlink()
    assert states(so2docs.for_each_site(so2docs.diff, (old, new)))["gone"] == "gone"


@pytest.mark.long
def test_a_site_that_failed_before_is_not_just_new(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "tea" / "Posts.xml", question(1))
    other = write_dump(tmp_path / "milk" / "Posts.xml", question(1))
    good = dump.read_bytes()
    for quarter, content in (("1", b"<html>"), ("2", good), ("3", None)):
        if content is None:
            shutil.rmtree(dump.parent)
        else:
            dump.write_bytes(content)
        sources = [folder for folder in (dump.parent, other.parent) if folder.exists()]
        result = run("convert", *sources, "--output-dir", tmp_path / quarter, "-q", cwd=tmp_path)
        assert result.returncode == (3 if quarter == "1" else 0)
    failed, gone = (
        run("diff", tmp_path / old, tmp_path / new, tmp_path / f"c{new}", "-q", "--json")
        for old, new in (("1", "2"), ("2", "3"))
    )
    assert "so2docs: tea: is new after failed: questions deleted since" in failed.stderr
    assert "so2docs: tea: is gone" in gone.stderr
    for result, state in ((failed, "new after failed"), (gone, "gone")):
        milk, tea = json.loads(result.stdout)
        assert (result.returncode, milk["state"], tea["state"]) == (0, "unchanged", state)
        assert (milk["note"], tea["note"] != "") == ("", True)
    assert not [*(tmp_path / "2").glob(".*.failed")]


def test_interrupted_counts_start_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **keywords: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("so2docs.extensions.inspection.sites.inspect", interrupted)
    with pytest.raises(KeyboardInterrupt) as end:
        so2docs.for_each_site(so2docs.inspect, [SAMPLES / "posts.xml"], jobs=1)
    assert str(end.value) == STARTS_OVER


def test_formats_side_by_side(quarters: tuple[Path, Path], tmp_path: Path) -> None:
    """Of an output in several formats, the JSON lines are read; Parquet alone is reported."""
    pytest.importorskip("pyarrow")
    old, new = quarters
    quarter(new, {"beer": posts(6), "tea": posts(2)}, ".parquet")
    (new / "beer.jsonl.gz").unlink()
    quarter(new, {"beer": posts(6, score=9)}, ".jsonl.zst")
    for name in ("README.md", "report.json", "notes.txt"):
        (new / name).write_text("{}")
    result = run("diff", old, new, tmp_path / "changes", "--jobs", "1", code=3)
    assert "tea.parquet: is Parquet" in result.stderr
    assert table(result.stderr)["beer"] == ["changed", "2", "1", "0", "3"]
    quarter(new, {"beer": posts(6)}, ".jsonl")
    assert states(so2docs.for_each_site(so2docs.inspect, [new], jobs=1))["beer"] == "failed"
    result = run("inspect", new, "--jobs", "1")
    assert "beer.jsonl and beer.jsonl.zst are outputs of the same site" in result.stderr


@pytest.mark.long
def test_dates_in_names(tmp_path: Path) -> None:
    site = "beer.stackexchange.com"
    old = quarter(tmp_path / "old", {f"{site}-2024-04": posts(4), "other": posts(2)})
    new = quarter(tmp_path / "new", {f"2024-07_{site}": posts(5), "others": posts(2)})
    actual = states(so2docs.for_each_site(so2docs.diff, (old, new), tmp_path / "changes"))
    assert actual == {site: "changed", "other": "gone", "others": "new"}
    # The parts of a split output do not count as one output.
    split = quarter(tmp_path / "split", {f"{site}-2023": posts(2), f"{site}-2024": posts(3)})
    assert [one.site for one in so2docs.for_each_site(so2docs.inspect, [split])] == [
        f"{site}-2023",
        f"{site}-2024",
    ]


def test_the_first_quarter(quarters: tuple[Path, Path], tmp_path: Path) -> None:
    """Compared with an empty folder, all sites are new."""
    _, new = quarters
    empty = tmp_path / "empty"
    empty.mkdir()
    results = so2docs.for_each_site(so2docs.diff, (empty, new), tmp_path / "changes", jobs=1)
    assert set(states(results).values()) == {"new"}
    lines = gzip.decompress((tmp_path / "changes" / "beer.jsonl.gz").read_bytes()).splitlines()
    documents = [json.loads(line)["document"] for line in lines[:-1]]
    assert documents == list(so2docs.read(new / "beer.jsonl.gz"))


def test_each_function_says_what_it_takes(quarters: tuple[Path, Path]) -> None:
    old, _ = quarters
    for function, sources, folder, message in (
        (so2docs.read, old, (), "give one of: convert, diff, inspect, tables, to_sqlite"),
        (so2docs.inspect, [old], ("out",), "inspect writes no files; leave out out"),
        (so2docs.tables, quarters, (), "go to a folder; give its name"),
        (so2docs.diff, quarters, ("",), "go to a folder"),
        (so2docs.diff, (old, ""), (), "the name is empty"),
    ):
        with pytest.raises((OptionError, OutputError), match=message):
            so2docs.for_each_site(function, sources, *folder)


def test_warnings_are_one_line_for_each_kind_with_quiet(tmp_path: Path) -> None:
    """Each kind of warning is one line with the number of sites; errors name their site."""
    dumps = [tmp_path / f"site{number}" for number in range(4)]
    for dump in dumps:
        write_dump(dump / "Posts.xml", *posts(2))
    for jobs in ("1", "2"):
        command = ["convert", *dumps, "--output-dir", tmp_path / jobs, "--jobs", jobs, "--quiet"]
        result = run(*command, "--nest", "votes,links", "--if-present", "--min-score", "99")
        parts = [line.partition(", as site0: ") for line in result.stderr.splitlines()]
        assert [before for before, _, _ in parts] == ["so2docs: 4 sites"] * 3
        subjects = ("links", "votes", "empty")
        assert [word for _, _, text in parts for word in subjects if word in text] == [*subjects]


def test_messages_name_their_site(quarters: tuple[Path, Path]) -> None:
    """Log messages name their site, also from a worker."""
    old, new = quarters
    for path in old.glob(".*.index"):
        path.unlink()
    with heard() as messages:
        so2docs.for_each_site(so2docs.diff, (old, new), jobs=2)
    assert [text.split(":")[0] for text in messages] == ["beer", "coffee"]


@pytest.mark.parametrize("named", ["", "tea: ", "out/tea.jsonl: "])
def test_errors_name_their_site_once(named: str) -> None:
    result = so2docs.SiteResult("tea", "out", "failed", error=OutputError(f"{named}is damaged"))
    assert str(result) == f"{named or 'tea: '}is damaged"


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_stopped(number: int, tmp_path: Path) -> None:
    """Ctrl-C leaves no partial files, and the same command completes the work."""
    rows = posts(6000)
    old = quarter(tmp_path / "old", {"site0": posts(3000)})
    new = quarter(tmp_path / "new", {"site0": rows})
    for folder in (old, new):
        for name in list(contents(folder)):
            for site in range(1, 8):
                shutil.copy(folder / name, folder / name.replace("site0", f"site{site}"))
    changes = tmp_path / "changes"
    command = [*COMMAND, "diff", str(old), str(new), str(changes), "--jobs", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    wait_for(lambda: process.poll() is not None or list(changes.glob("*.gz")))
    process.send_signal(number)
    _, stderr = process.communicate()
    assert b"Traceback" not in stderr
    if len(list(changes.glob("*.gz"))) == 8:
        pytest.skip("all was done before the signal came")
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert stderr.splitlines()[-1].endswith(f"; {RESUMES}".encode())
        records = {f".{name}.record" for name in outputs(changes)}
        assert {path.name for path in changes.iterdir() if path.name.startswith(".")} == records
    results = so2docs.for_each_site(so2docs.diff, (old, new), changes, jobs=2)
    assert "up to date" in states(results).values()
    for name in outputs(changes):
        assert contents(changes)[name] == contents(changes)[outputs(changes)[0]]


@pytest.fixture
def dumps(tmp_path: Path) -> list[Path]:
    """Two sites with posts and tags, and a name without a site."""
    folders = [tmp_path / "dumps" / f"{site}.stackexchange.com" for site in ("beer", "tea", "x")]
    for folder in folders[:2]:
        write_dump(folder / "Posts.xml", question(1), question(2))
        write_dump(folder / "Tags.xml", row(Id=1, TagName="a", Count=1))
    return folders


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_tables_of_several_dumps(jobs: int, dumps: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    results = so2docs.for_each_site(so2docs.tables, dumps, out, jobs=jobs)
    assert [one.state for one in results] == ["made", "made", "failed"]
    for dump, result in zip(dumps[:2], results, strict=False):
        assert result.result.columns()["rows"] == 3
        so2docs.tables(dump, tmp_path / "alone", jobs=1)
        for name in ("Posts.parquet", "Tags.parquet"):
            alone, together = (path / name for path in (tmp_path / "alone", out / dump.name))
            assert alone.read_bytes() == together.read_bytes()
    again = so2docs.for_each_site(so2docs.tables, dumps[:2], out, jobs=jobs)
    assert [one.state for one in again] == ["up to date"] * 2
    words = ("tables", *dumps[:2], "--output-dir", out, "--jobs", "1", "--since", "2020")
    other = run(*words, code=1)
    assert other.stderr.splitlines()[-1] == "2 sites: 2 failed"
    assert run(*words, "--update").stderr
    with pytest.raises(so2docs.OptionError, match="since"):
        so2docs.for_each_site(so2docs.tables, dumps[:2], out, since="never", jobs=1)


def test_a_database_with_several_tables_counts_once(dumps: list[Path], tmp_path: Path) -> None:
    [result] = so2docs.for_each_site(so2docs.tables, dumps[:1], tmp_path / "out", format="sqlite")
    assert len(result.result) == 2
    size = (tmp_path / "out" / dumps[0].name / "tables.db").stat().st_size
    assert result.result.columns()["bytes"] == size
