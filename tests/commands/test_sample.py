"""`so2docs sample`: dumps included in the package."""

from pathlib import Path

from support.command import run
from support.places import SAMPLES

import so2docs
from so2docs.schema import DUMP


def test_writes_a_table_and_a_site(tmp_path: Path) -> None:
    result = run("sample", tmp_path / "new")
    names = ["Posts.xml", "sample.stackexchange.com.7z"]
    assert result.stderr.split() == [str(tmp_path / "new" / name) for name in names]
    posts, archive = (tmp_path / "new" / name for name in names)
    assert posts.read_bytes() == (SAMPLES / "posts.xml").read_bytes()
    inspection = so2docs.inspect(archive)
    assert len(inspection.tables) == len(DUMP) == 8
    (file,) = inspection.files
    assert "license.txt" in file.members
    assert (file.license or "").startswith("This sample is made up")
    report = so2docs.convert(archive, tmp_path / "q.jsonl", nest=["all", "history-text", "badges"])
    assert (report.questions, report.answers, report.strays.total()) == (8, 11, 0)
    assert report.tables["badges"].nested == report.tables["badges"].rows > 0
    archive.unlink()  # As if a run was killed between its renames.
    assert run("sample", tmp_path / "new").returncode == 0
    assert archive.is_file()
    posts.write_bytes(b"mine")
    again = run("sample", tmp_path / "new", code=1)
    assert "Posts.xml: exists; " in again.stderr
    assert run("sample", tmp_path / "new", "--force", "-q").returncode == 0
