"""Bars end at 100 % after success, and the summary is complete."""

from __future__ import annotations

import gzip
import re
import shutil
import threading
from contextlib import ExitStack, suppress
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import tqdm.auto
from support.command import run
from support.interruptions import stopped_between_passes
from support.packed import seven_zip, zipped
from support.places import SAMPLES

import so2docs
from so2docs.progress import Progress, bar


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Description, final position and total of every bar."""
    left: list[Any] = []
    closing = tqdm.auto.tqdm.close

    def close(self: Any) -> None:
        if not self.disable:
            left.append((self.desc, self.n, self.total))
        closing(self)

    monkeypatch.setattr(tqdm.auto.tqdm, "close", close)
    return left


def check(bars: list[Any]) -> None:
    assert bars
    for description, position, total in bars:
        assert position == total > 0, description
    bars.clear()


def test_bars_end_at_exactly_all(bars: list[Any], tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(SAMPLES / "site", site)
    packed = tmp_path / "Posts.xml.gz"
    packed.write_bytes(gzip.compress((SAMPLES / "posts.xml").read_bytes()))
    cases: list[tuple[Path, dict[str, Any]]] = [
        (SAMPLES / "posts.xml", {}),
        (SAMPLES / "posts.xml", {"limit": 1}),
        (SAMPLES / "posts.xml", {"tags": "bread"}),
        (packed, {}),
        (site, {"nest": "all"}),
    ]
    for number, (dump, options) in enumerate(cases):
        output = tmp_path / f"{number}.jsonl.gz"
        so2docs.convert(dump, output, jobs=1, progress=True, **options)
        check(bars)
    so2docs.inspect_output(tmp_path / "0.jsonl.gz", progress=True)
    check(bars)


@pytest.mark.parametrize("form", ["zip", "7z"])
def test_progress_counts_only_the_bytes_read_from_an_archive(
    form: str, bars: list[Any], tmp_path: Path
) -> None:
    names = ("Posts", "Comments", "Users")
    files = [SAMPLES / "site" / f"{name}.xml" for name in names]
    archive = (seven_zip if form == "7z" else zipped)(tmp_path / f"site.{form}", files)
    nest = ["comments", "users"]
    so2docs.convert(archive, tmp_path / "q.jsonl", nest=nest, jobs=1, progress=True)
    xml = sum(file.stat().st_size for file in files)
    # For a stream, reading counts twice as much as writing.
    assert [total for _, _, total in bars] == [3 * xml]
    check(bars)


def test_one_bar_for_several_dumps(
    bars: list[Any], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for site in ("beer", "chess"):
        shutil.copy(SAMPLES / "posts.xml", tmp_path / f"{site}.xml")
    dumps = sorted(tmp_path.glob("*.xml"))
    for jobs, description in ((1, "chess: writing: "), (2, "2 sites")):
        so2docs.convert_all(dumps, tmp_path / "out", jobs=jobs, progress=True, force=True)
        assert [text.removesuffix(": ") for text, _, _ in bars] == [description.rstrip(": ")]
        check(bars)
    assert "beer: writing:  " in capsys.readouterr().err


def test_one_bar_for_all_steps_of_a_conversion(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def shown(**options: Any) -> list[str]:
        stream = StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        so2docs.convert(site, tmp_path / "q.jsonl", nest="all", progress=True, jobs=1, **options)
        lines = stream.getvalue().split("\r")
        assert lines[-1].startswith("writing: 100%")
        assert lines[-1].endswith(" 00:00 left\n")
        return [line for line in lines if line]

    site = tmp_path / "site"
    shutil.copytree(SAMPLES / "site", site)
    lines = shown(chunk_bytes=1000)
    shares = [int(line.split("%")[0].split()[-1]) for line in lines]
    steps = [line.split(":")[0] for line in lines]
    assert shares == sorted(shares)
    assert list(dict.fromkeys(steps)) == [
        "reading",
        *(f"reading {name}" for name in ("comments", "links", "votes", "users")),
        "writing",
    ]
    before = next(share for step, share in zip(steps, shares, strict=True) if step == "writing")
    assert 40 < before < 60
    # Work of an earlier session counts as done, but its time does not count.
    with stopped_between_passes():
        shown(chunk_bytes=1000, force=True)
    again = shown(chunk_bytes=1000, force=True)
    assert int(again[-2].split("%")[0].split()[-1]) >= before


def test_a_function_is_called_with_the_progress(bars: list[Any], tmp_path: Path) -> None:
    """The progress of every function ends at its total, and no bar is shown."""
    calls: list[tuple[int, int | None, str]] = []

    def report(done: int, total: int | None, unit: str) -> None:
        calls.append((done, total, unit))

    site = tmp_path / "site"
    shutil.copytree(SAMPLES / "site", site)
    output = tmp_path / "q.jsonl"
    for convert in (
        partial(so2docs.convert, site, output, force=True, nest="all", chunk_bytes=1000),
        partial(so2docs.convert_all, [site], tmp_path / "out", force=True),
        partial(so2docs.tables, site, tmp_path / "tables", only=["posts"], force=True),
        partial(so2docs.to_sqlite, site, tmp_path / "q.db", force=True),
    ):
        calls.clear()
        convert(jobs=1, progress=report)
        [total] = {total for _, total, unit in calls if unit == calls[-1][2]}
        done = [done for done, _, unit in calls if unit == calls[-1][2]]
        assert done == sorted(done)
        assert done[-1] == total
    assert bars == []
    with pytest.raises(so2docs.OptionError, match="progress is 'yes'; it must be true, false or a"):
        so2docs.convert(site, output, progress="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_an_exception_of_the_function_cancels_the_conversion(jobs: int, tmp_path: Path) -> None:
    """No output is left and no worker, and the same call resumes to the same bytes."""

    class CancelledError(Exception):
        pass

    def cancel(done: int, total: int | None, unit: str) -> None:
        assert total is not None
        if done > total * 0.3:
            raise CancelledError

    site, output = SAMPLES / "site", tmp_path / "q.jsonl"
    settings: dict[str, Any] = {"nest": "all", "chunk_bytes": 1000, "jobs": jobs}
    before = {*threading.enumerate()}
    with pytest.raises(CancelledError):
        so2docs.convert(site, output, progress=cancel, **settings)
    assert {*threading.enumerate()} == before  # Each worker process has a thread.
    assert [path.name for path in tmp_path.iterdir()] == ["q.jsonl.spill"]
    assert so2docs.convert(site, output, **settings).resumed
    so2docs.convert(site, tmp_path / "whole.jsonl", **settings)
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_a_failed_bar_stays_unchanged(bars: list[Any]) -> None:
    failing = ExitStack()
    failing.enter_context(bar("failing", 100)).update(30)
    assert not failing.__exit__(ValueError, ValueError(), None)
    with bar("too much", 100) as progress_bar:
        progress_bar.update(300)
    with bar("unknown", 0) as progress_bar:
        progress_bar.update(7)
    with Progress(shown=True) as progress:
        with progress.step("of a pipe", 0, None) as progress_bar:
            progress_bar.update(7)
        progress.plan(30)
        with progress.step("a third", 10, 2) as progress_bar:
            progress_bar.update(1)
        progress.plan(40)
        with progress.step("half of the rest", 20, 5, 5):
            pass
        with progress.step("what is left", None, 0):
            pass
    with suppress(ValueError), Progress(shown=True) as progress:
        progress.plan(100)
        with progress.step("failing", 50, 10) as progress_bar:
            progress_bar.update(4)
            raise ValueError
    positions = [(position, total) for _, position, total in bars]
    assert positions.pop() == (20, 100)
    assert positions[3:] == [(7, 7), (30, 30)]
    assert positions[:3] == [(30, 100), (100, 100), (7, 7)]


def test_summary_tells_sizes_and_names(tmp_path: Path) -> None:
    packed = tmp_path / "Posts.xml.gz"
    packed.write_bytes(gzip.compress((SAMPLES / "posts.xml").read_bytes()))
    report = so2docs.convert(packed, tmp_path / "q.jsonl.gz", split="3files", jobs=1)
    lines = dict(report.lines())
    assert report.file_bytes == packed.stat().st_size < report.dump_bytes
    assert f" of XML in {report.file_bytes / 1e3:.2f} kB  {packed}" in lines["dump"]
    files = sorted(tmp_path.glob("q-*.jsonl.gz"))
    assert lines["output"].endswith(f"{files[0]} to {files[-1]}, {len(files)} files")
    assert so2docs.Report.from_dict(report.as_dict()) == report


def test_the_summary_reports_an_empty_output(tmp_path: Path) -> None:
    report = so2docs.convert(SAMPLES / "posts.xml", tmp_path / "q.jsonl.gz", tags="no-such-tag")
    assert dict(report.lines())["questions"] == "0; none passed the filters"


def test_summary_of_a_resumed_run_has_no_rate(tmp_path: Path) -> None:
    report = so2docs.Report("Posts.xml", "q.jsonl.gz", dump_bytes=10**9, seconds=2.0)
    assert "500 MB/s" in dict(report.lines())["time"]
    report.resumed = True
    assert dict(report.lines())["time"].startswith("2.00 s (this session; resumed from an earlier")
    assert "MB/s" not in dict(report.lines())["time"]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("so2docs.progress.LINE_SECONDS", 0)


def progress_lines(*words: object) -> list[str]:
    lines = run(*words, code=0).stderr.splitlines()
    return [line for line in lines if re.match("so2docs: (reading|writing|comparing)", line)]


@pytest.mark.usefixtures("at_once")
def test_progress_is_logged_without_a_terminal(tmp_path: Path) -> None:
    output = tmp_path / "q.jsonl"
    matches = [
        re.fullmatch(r"so2docs: (.*): (\d+)%, [\d:?]+ left", line)
        for line in progress_lines("convert", SAMPLES / "posts.xml", output, "-j", "1")
    ]
    assert {match and match[1] for match in matches} == {"reading", "writing"}
    shares = [int(match[2]) for match in matches if match]
    assert shares == sorted(shares)
    assert shares[-1] == 100
    *_, last = progress_lines("diff", output, output)
    assert last == "so2docs: comparing: 100%, 00:00 left"


@pytest.mark.usefixtures("at_once")
def test_progress_of_a_pipe_has_no_total(tmp_path: Path) -> None:
    dump = (SAMPLES / "posts.xml").read_bytes()
    done = run("convert", "-", tmp_path / "q.jsonl", "-j", "1", stdin=dump, code=0)
    assert re.search(r"so2docs: reading: [\d.]+k?B, [\d.]+[kMG]?B/s\n", done.stderr)


@pytest.mark.usefixtures("at_once")
def test_quiet_logs_no_progress(tmp_path: Path) -> None:
    assert run("convert", SAMPLES / "posts.xml", tmp_path / "q.jsonl", "-q", code=0).stderr == ""


def test_short_commands_log_no_progress(tmp_path: Path) -> None:
    assert not progress_lines("convert", SAMPLES / "posts.xml", tmp_path / "q.jsonl")


def test_the_switch_of_tqdm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`TQDM_DISABLE` is read by tqdm when it is imported, so its default is patched here."""
    monkeypatch.setattr(tqdm.auto, "tqdm", partial(tqdm.auto.tqdm, disable=True))
    monkeypatch.setattr("sys.stderr", stream := StringIO())
    so2docs.convert(SAMPLES / "posts.xml", tmp_path / "q.jsonl", progress=True, jobs=1)
    so2docs.tables(SAMPLES / "site", tmp_path / "t", only="posts", progress=True, jobs=1)
    assert "%" not in stream.getvalue()
