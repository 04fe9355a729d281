"""Outputs whose names are symbolic links, for example to another disk."""

from pathlib import Path

import pytest
from support.command import run
from support.places import SAMPLES

import so2docs

POSTS = SAMPLES / "posts.xml"


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("q.jsonl", ["convert", POSTS]),
        ("q.parquet", ["convert", POSTS]),
        ("q.db", ["sqlite", POSTS, "--only", "posts"]),
    ],
)
def test_the_file_arrives_where_the_link_leads(
    name: str, arguments: list[str], exists: bool, tmp_path: Path
) -> None:
    disk, link = tmp_path / "disk", tmp_path / name
    disk.mkdir()
    link.symlink_to(Path("disk") / name)
    if exists:
        (disk / name).write_bytes(b"")
    run(*arguments, link, "-q", *["--force"] * exists, code=0)
    expected = tmp_path / "plain"
    expected.mkdir()
    run(*arguments, expected / name, "-q", code=0)
    assert link.is_symlink()
    made = disk / name
    assert made.stat().st_size
    assert not list(tmp_path.glob(".*"))
    if name != "q.db":
        hidden = {path.name for path in expected.iterdir()}
        assert {path.name for path in disk.iterdir()} == hidden
        assert made.read_bytes() == (expected / name).read_bytes()
        assert not so2docs.convert(POSTS, link).is_new
