"""The script of docs/tutorials/many-sites.md, over three quarters."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from support.command import with_programs
from support.dumps import dump_of, question
from support.packed import seven_zip
from support.places import CHECKOUT

TUTORIALS = CHECKOUT / "docs" / "tutorials"
PAGE = (TUTORIALS / "many-sites.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^<!-- (\S+) -->\n```\w+\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
QUARTERS: dict[str, dict[str, tuple[int, ...] | None]] = {
    "2024-04": {"tea": (1, 2), "coffee": (1, 2), "closed": (1,), "oldname": (1,)},
    "2024-07": {"tea": (2, 3), "coffee": None, "newname": (1,), "milk": (5,)},
    "2024-10": {"tea": (3,), "coffee": (2,), "newname": (1,), "milk": (5, 6)},
}
"""Ids of the questions of each site in each quarter; None for an archive that is a web page."""


def update(folder: Path, code: int, *arguments: str) -> str:
    """Run the script, and return its messages."""
    done = subprocess.run(
        ["sh", TUTORIALS / "quarter.sh", *arguments],
        check=False,
        cwd=folder,
        env=with_programs(),
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == code, done.stderr
    return done.stderr


def index(folder: Path) -> dict[str, list[int]]:
    """Return the ids in the search index, by site."""
    ids: dict[str, list[int]] = {}
    with closing(sqlite3.connect(folder / "search.db")) as connection:
        for site, post in connection.execute("SELECT site, id FROM posts ORDER BY site, id"):
            ids.setdefault(site, []).append(post)
    return ids


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_the_script_of_a_quarter(tmp_path: Path) -> None:
    """Sites that fail, close, are renamed or are new; a deletion during a failed quarter."""
    assert FILES["quarter.sh"] == (TUTORIALS / "quarter.sh").read_text(encoding="utf-8")
    (tmp_path / "update_index.py").write_text(FILES["update_index.py"], encoding="utf-8")
    for quarter, sites in QUARTERS.items():
        (tmp_path / quarter).mkdir()
        for site, ids in sites.items():
            archive = tmp_path / quarter / f"{site}.7z"
            if ids is None:
                archive.write_text("<html>404</html>", encoding="utf-8")
                continue
            date = "2024-01-01T00:00:00.000"
            values = {"CreationDate": date, "Body": "b", "Tags": "|a|", "Score": 1}
            rows = (question(n, Title=f"T{n}", AnswerCount=0, **values) for n in ids)
            seven_zip(archive, {"Posts.xml": dump_of(*rows)})
        if quarter == "2024-04":
            assert update(tmp_path, 0) == ""
            # A shell completes the name of a folder with a slash.
            assert update(tmp_path, 0, f"{quarter}/") == ""
        elif quarter == "2024-07":
            messages = update(tmp_path, 1)
            assert "coffee.7z: is a web page" in messages
            assert "so2docs: no output, because the conversion failed: 2024-07/coffee" in messages
            assert "closed: is gone" in messages
            assert "oldname: is gone" in messages
            kept = {"closed": [1], "coffee": [1, 2], "oldname": [1]}
            assert index(tmp_path) == kept | {"milk": [5], "newname": [1], "tea": [2, 3]}
            databases = {path.stem for path in (tmp_path / "databases").glob("*.db")}
            assert databases == index(tmp_path).keys()
    for site in ("closed", "oldname"):
        for output in (tmp_path / "questions").glob(f"*/{site}.jsonl.gz"):
            output.unlink()
    assert update(tmp_path, 0) == ""
    kept = {"closed": [1], "oldname": [1]}
    assert index(tmp_path) == kept | {"coffee": [2], "milk": [5, 6], "newname": [1], "tea": [3]}
