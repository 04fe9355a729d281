"""The budget for uncompressed spill (default, requested or changed) never affects the output."""

from pathlib import Path
from typing import Any

import pytest
from support.dumps import left_by, some_rows, write_dump
from support.places import SAMPLES

import so2docs
from so2docs.store.blocks import default_budget


def test_a_full_disk_leaves_no_budget() -> None:
    assert default_budget(0) == 0
    assert default_budget(1000) == 500


BUDGETS = ["0", "150kB", 400_000, "1GB", None]
"""From least to most."""


def test_same_bytes_with_any_budget(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", *some_rows(3000, body_bytes=400, dense=True))
    contents, compressed = [], []
    for number, budget in enumerate(BUDGETS):
        (tmp_path / str(number)).mkdir()
        output = tmp_path / str(number) / "questions.jsonl.gz"
        jobs = 2 if budget == 400_000 else 1
        report = so2docs.convert(dump, output, jobs=jobs, chunk_bytes=100_000, spill_budget=budget)
        contents.append(left_by(output))
        compressed.append(report.spill_compressed_bytes)
        assert f"({report.spill_compressed_bytes / 1e3:.2f} kB compressed)" in str(report) or not (
            1000 <= report.spill_compressed_bytes < 1_000_000
        )
    assert all(one == contents[0] for one in contents)
    assert compressed[0] > compressed[1] > compressed[2] > compressed[3] == compressed[4] == 0


def test_tables_use_the_budget_too(tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    options: Any = {"nest": "all", "chunk_bytes": 900, "force": True}
    lines = set()
    for budget in (0, 2000, "1GB"):
        report = so2docs.convert(SAMPLES / "site", output, spill_budget=budget, **options)
        assert (report.spill_compressed_bytes == 0) == (budget == "1GB")
        lines.add(output.read_bytes())
    assert len(lines) == 1


def test_a_budget_changed_during_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dump = write_dump(tmp_path / "Posts.xml", *some_rows(2000, body_bytes=400, dense=True))
    expected, output = (tmp_path / name / "q.jsonl.gz" for name in ("expected", "out"))
    for path in (expected, output):
        path.parent.mkdir()
    so2docs.convert(dump, expected, jobs=1, spill_budget=0)
    budgets = iter(["1GB", 0, 300_000])
    commit = so2docs.spill.Spill.commit

    def stopping(self: so2docs.spill.Spill, *arguments: Any, **keywords: Any) -> None:
        commit(self, *arguments, **keywords)
        if len(self.tallies()) in (3, 6):
            raise KeyboardInterrupt

    monkeypatch.setattr("so2docs.spill.Spill.commit", stopping)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            so2docs.convert(dump, output, jobs=1, chunk_bytes=100_000, spill_budget=next(budgets))
    report = so2docs.convert(dump, output, jobs=1, chunk_bytes=100_000, spill_budget=next(budgets))
    assert report.resumed
    assert 0 < report.spill_compressed_bytes < report.spill_bytes - 250_000
    assert left_by(output) == left_by(expected)
