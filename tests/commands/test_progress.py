"""Bars end at 100 % after success, and the summary tells all there is to tell."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import tqdm.auto
from support.places import SAMPLES

import so2docs
from so2docs.progress import bar


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every bar that is shown, as it was left."""
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
    for description, done, total in bars:
        assert done == total > 0, description
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
    so2docs.stats(tmp_path / "0.jsonl.gz", progress=True)
    check(bars)


@pytest.mark.parametrize("form", ["zip", "7z"])
def test_of_an_archive_only_what_is_read_counts(form: str, bars: list[Any], tmp_path: Path) -> None:
    names = ("Posts", "Comments", "Users")
    files = [SAMPLES / "site" / f"{name}.xml" for name in names]
    archive = tmp_path / f"site.{form}"
    if form == "7z":
        with pytest.importorskip("py7zr").SevenZipFile(archive, "w") as packed:
            for file in files:
                packed.write(file, file.name)
    else:
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in files:
                packed.write(file, file.name)
    nest = ["comments", "users"]
    so2docs.convert(archive, tmp_path / "q.jsonl", nest=nest, jobs=1, progress=True)
    totals = [total for description, _, total in bars if description.startswith("reading")]
    assert sorted(totals) == sorted(file.stat().st_size for file in files)
    check(bars)


def test_bars_name_the_dump_among_several(bars: list[Any], tmp_path: Path) -> None:
    for site in ("beer", "chess"):
        shutil.copy(SAMPLES / "posts.xml", tmp_path / f"{site}.xml")
    dumps = sorted(tmp_path.glob("*.xml"))
    so2docs.convert_all(dumps, tmp_path / "out", jobs=1, progress=True)
    assert [description.split(":")[0] for description, _, _ in bars] == ["beer"] * 2 + ["chess"] * 2


def test_a_bar_that_failed_is_left_as_it_was(bars: list[Any]) -> None:
    failing = ExitStack()
    failing.enter_context(bar("failing", 100)).update(30)
    assert not failing.__exit__(ValueError, ValueError(), None)
    with bar("too much", 100) as shown:
        shown.update(300)
    with bar("unknown", 0) as shown:
        shown.update(7)
    assert [(done, total) for _, done, total in bars] == [(30, 100), (100, 100), (7, 7)]


def test_summary_counts_strays_of_tables(tmp_path: Path) -> None:
    report = so2docs.convert(SAMPLES / "site", tmp_path / "q.jsonl.gz", nest="all", jobs=1)
    strays = dict(report.lines())["strays"]
    total = sum(sum(table.strays.values()) for table in report.tables.values())
    assert total > 0
    assert strays.startswith(f"{total + sum(report.strays.values()):,} (")
    assert "vote_without_post" in strays


def test_summary_tells_sizes_and_names(tmp_path: Path) -> None:
    packed = tmp_path / "Posts.xml.gz"
    packed.write_bytes(gzip.compress((SAMPLES / "posts.xml").read_bytes()))
    report = so2docs.convert(packed, tmp_path / "q.jsonl.gz", split=3, jobs=1)
    lines = dict(report.lines())
    assert report.file_bytes == packed.stat().st_size < report.dump_bytes
    assert f" of XML in {report.file_bytes / 1e3:.2f} kB  {packed}" in lines["dump"]
    files = sorted(tmp_path.glob("q-*.jsonl.gz"))
    assert lines["output"].endswith(f"{files[0]} to {files[-1]}, {len(files)} files")
    assert so2docs.Report.from_dict(report.as_dict()) == report


def test_summary_says_that_filters_left_nothing(tmp_path: Path) -> None:
    report = so2docs.convert(SAMPLES / "posts.xml", tmp_path / "q.jsonl.gz", tags="no-such-tag")
    assert dict(report.lines())["questions"] == "0; the filters left none of them"


def test_summary_of_a_resumed_run_has_no_rate(tmp_path: Path) -> None:
    report = so2docs.Report("Posts.xml", "q.jsonl.gz", dump_bytes=10**9, seconds=2.0)
    assert "500 MB/s" in dict(report.lines())["time"]
    report.resumed = True
    assert dict(report.lines())["time"].startswith("2.00 s (this session; resumed from an earlier")
    assert "MB/s" not in dict(report.lines())["time"]


def test_in_a_daemon_process(tmp_path: Path) -> None:
    from multiprocessing import get_context

    output = tmp_path / "q.jsonl.gz"
    process = get_context("spawn").Process(
        target=so2docs.convert,
        args=(SAMPLES / "posts.xml", output),
        kwargs={"jobs": 2},
        daemon=True,
    )
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert len(list(so2docs.read(output))) == 8
