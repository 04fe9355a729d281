"""Several sites: commands name outputs, do the work and print results in the same way."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import run
from support.dumps import question, write_dump

import so2docs

TAGS = '<tags>\n<row Id="1" TagName="{}" Count="1" />\n</tags>\n'


@pytest.fixture
def dumps(tmp_path: Path) -> list[Path]:
    """Two sites with posts and tags, and one without."""
    folders = [tmp_path / "dumps" / f"{site}.stackexchange.com" for site in ("beer", "tea", "x")]
    for folder in folders:
        write_dump(folder / "Posts.xml", question(1), question(2))
        (folder / "Tags.xml").write_text(TAGS.format("a"))
    (folders[2] / "Tags.xml").unlink()
    (folders[2] / "Posts.xml").unlink()
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
