"""The path of a database is checked against every other file."""

import os
import shutil
from pathlib import Path

import pytest
from support.places import SAMPLES

import so2docs


def test_does_not_overwrite_other_files(tmp_path: Path) -> None:
    output = tmp_path / "Posts.xml"
    shutil.copyfile(SAMPLES / "posts.xml", output)
    before = output.read_bytes()
    os.symlink(output, tmp_path / "same.db")
    os.link(output, tmp_path / "linked.db.part")
    for name in ("same.db", "linked.db"):
        with pytest.raises(so2docs.OutputError, match="choose another output"):
            so2docs.to_sqlite(output, tmp_path / name, force=True)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.db")
        with pytest.raises(so2docs.OutputError, match=r"pipe\.db: is a device"):
            so2docs.to_sqlite(output, tmp_path / "pipe.db", force=True)
    assert output.read_bytes() == before
