"""The next command removes the files of a killed command, and no others."""

import os
import sys
from pathlib import Path

import pytest
from support.dumps import some_rows, write_dump
from support.interruptions import kill_command
from support.places import SAMPLES

import so2docs
from so2docs.output.new_files import temporary_folder
from so2docs.store import disk

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows locks no files here")

COMMANDS = {
    "convert to stdout": (["convert", "old.xml", "-", "-q", "--work-dir", "work"], r"\.blocks$"),
    "inspect": (["inspect", "old.xml", "--work-dir", "work"], "work/so2docs-"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    for name in ("old", "new"):
        write_dump(tmp_path / f"{name}.xml", *some_rows(30 + len(name)))
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_the_next_command_removes_the_temporary_folder_of_a_killed_one(
    name: str, folder: Path
) -> None:
    command, at = COMMANDS[name]
    ours = folder / "work" / "so2docs-data"
    ours.mkdir()
    kill_command("open", at, *command, folder=folder)
    names = {path.name for path in (folder / "work").iterdir()} - {ours.name}
    assert len(names) == 2  # The folder and its lock.
    with temporary_folder(str(folder / "work")) as temporary:
        assert {path.name for path in (folder / "work").iterdir()} == {
            ours.name,
            Path(temporary).name,
            f".{Path(temporary).name}.lock",
        }
    assert list((folder / "work").iterdir()) == [ours]


def test_a_temporary_folder_in_use_stays(tmp_path: Path) -> None:
    with temporary_folder(str(tmp_path)) as first:
        (Path(first) / "file").touch()
        with temporary_folder(str(tmp_path)) as second:
            assert Path(first, "file").exists()
            assert first != second
    assert list(tmp_path.iterdir()) == []


def test_a_shortage_before_the_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_SPILL_SHARE", 1e15)
    with pytest.raises(so2docs.DiskFullError, match="for the spill"):
        so2docs.convert(SAMPLES / "posts.xml", tmp_path / "q.jsonl")
    assert os.listdir(tmp_path) == []


def test_a_piped_dump_leaves_nothing(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", *some_rows(3000, body_bytes=1000))
    with pytest.raises(so2docs.RecipeError), dump.open("rb") as file:
        so2docs.convert(file, tmp_path / "q.jsonl", recipe="test_leftovers:fail_at_the_end", jobs=1)
    assert os.listdir(tmp_path) == ["Posts.xml"]


def fail_at_the_end(question: dict[str, object]) -> dict[str, object]:
    if int(str(question["Id"])) > 100_000:
        raise ValueError
    return {"Id": question["Id"]}
