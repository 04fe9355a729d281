"""All commands that write files keep the same contract.

Files of unknown origin stay without `--force`, up-to-date files stay unchanged, other inputs need
`--update`, inputs are never overwritten, a name has one writer, and a command that fails or is
killed leaves no file under a final name; run again, it ends with the files of an undisturbed run.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.command import Done, run
from support.dumps import question, row, write_dump
from support.interruptions import kill_command
from support.places import limited_files, version

import so2docs
from so2docs.output.new_files import output_lock

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows locks no files here")
COMMANDS = {
    "lines": ("convert dump made.jsonl", "made.jsonl"),
    "parquet": ("convert dump made.parquet", "made.parquet"),
    "split": ("convert dump made.jsonl --split 2files", "made-00001.jsonl"),
    "set": ("convert dump made --recipe beir", "made/corpus.jsonl"),
    "tables": ("tables dump made --only posts", "made/Posts.parquet"),
    "csv": ("tables dump made --only posts --format csv", "made/Posts.csv.gz"),
    "flat": ("tables dump made --only posts --format sqlite", "made/tables.db"),
    "sqlite": ("sqlite dump made.db", "made.db"),
    "diff": ("diff old.jsonl new.jsonl made.jsonl", "made.jsonl"),
}
"""For each kind of output, a command and a file that it writes."""
each_command = pytest.mark.parametrize("kind", COMMANDS)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump with links, and two outputs."""
    folder = tmp_path_factory.mktemp("inputs")
    links = [row(Id=n, PostId=n, RelatedPostId=1, LinkTypeId=3) for n in (2, 3, 4)]
    write_dump(folder / "dump" / "PostLinks.xml", *links)
    for name in ("old", "new"):
        chance = random.Random(name)
        bodies = ["".join(chance.choices("abcdefgh ", k=500)) for _ in range(150)]
        posts = [question(n, Title="t", Body=body, Score=1) for n, body in enumerate(bodies, 1)]
        write_dump(folder / "dump" / "Posts.xml", *posts)
        so2docs.convert(folder / "dump", folder / f"{name}.jsonl", jobs=1)
    return folder


@pytest.fixture
def folder(inputs: Path, tmp_path: Path) -> Path:
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    return tmp_path


def do(kind: str, folder: Path, *options: str, code: int = 0) -> Done:
    done = run(*COMMANDS[kind][0].split(), *options, "--jobs", "1", cwd=folder, code=code)
    assert "Traceback" not in done.stderr
    return done


def files(folder: Path, kind: str) -> dict[str, bytes]:
    """Return the contents of the files of a command; databases contain the time."""
    paths = [path for path in folder.rglob("*") if "made" in str(path) and path.is_file()]
    return {
        str(path.relative_to(folder)): path.read_bytes() if kind != "sqlite" else b""
        for path in paths
    }


@each_command
def test_a_file_of_unknown_origin_stays_without_force(kind: str, folder: Path) -> None:
    file = folder / COMMANDS[kind][1]
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"mine")
    refused = do(kind, folder, "-q", code=1)
    assert refused.stderr.count("\n") == 1
    assert "--force" in refused.stderr
    assert file.read_bytes() == b"mine"
    do(kind, folder, "--force")
    assert file.read_bytes() != b"mine"


@each_command
def test_files_are_kept_while_their_inputs_are_the_same(kind: str, folder: Path) -> None:
    file = folder / COMMANDS[kind][1]
    source = folder / ("old.jsonl" if kind == "diff" else "dump/Posts.xml")
    do(kind, folder)
    before = version(file)
    for options in ((), ("--update",)):
        assert "up to date" in do(kind, folder, *options).stderr
        assert version(file) == before
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    assert "--update" in do(kind, folder, code=1).stderr
    do(kind, folder, "--update")
    assert kind == "sqlite" or file.read_bytes() == whole
    source.write_bytes(source.read_bytes().replace(b"Score", b"Scope", 1))
    before = version(file)
    refused = do(kind, folder, code=1)
    assert "another input" in refused.stderr
    assert "--update" in refused.stderr
    assert version(file) == before
    do(kind, folder, "--update")
    assert version(file) != before


@each_command
def test_a_failed_command_keeps_the_existing_files(kind: str, folder: Path) -> None:
    source = folder / ("old.jsonl" if kind == "diff" else "dump/Posts.xml")
    do(kind, folder)
    before = files(folder, kind)
    source.write_bytes(source.read_bytes()[:20_000])
    do(kind, folder, "--force", code=1)
    left = files(folder, kind)
    assert {name: left[name] for name in before} == before


@pytest.mark.parametrize("kind", ["lines", "parquet", "sqlite", "diff"])
@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_no_input_is_overwritten_through_a_link(kind: str, make: object, folder: Path) -> None:
    source = folder / ("new.jsonl" if kind == "diff" else "dump/Posts.xml")
    before = source.read_bytes()
    (os.symlink if make is os.symlink else os.link)(source, folder / COMMANDS[kind][1])
    refused = do(kind, folder, "--force", "-q", code=1)
    assert "is also an input; choose another" in refused.stderr
    assert source.read_bytes() == before


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in COMMANDS if kind != "split"])
def test_a_link_leads_to_the_file(kind: str, exists: bool, folder: Path) -> None:
    """As an output on another disk."""
    file = folder / COMMANDS[kind][1]
    (folder / "disk").mkdir()
    file.parent.mkdir(exist_ok=True)
    file.symlink_to(folder / "disk" / "file")
    if exists:
        (folder / "disk" / "file").write_bytes(b"mine")
    do(kind, folder, *["--force"] * exists)
    assert file.is_symlink()
    assert (folder / "disk" / "file").stat().st_size > 4
    assert "up to date" in do(kind, folder).stderr


@pytest.mark.parametrize("kind", [kind for kind in COMMANDS if kind != "set"])
def test_a_name_has_one_writer(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=count(0, 100).__next__, sleep=lambda seconds: None)
    monkeypatch.setattr("so2docs.output.new_files.time", clock)  # The wait ends at once.
    locked = folder / ("made.jsonl" if kind == "split" else COMMANDS[kind][1])
    locked.parent.mkdir(exist_ok=True)
    with output_lock(str(locked)):
        refused = do(kind, folder, "-q", code=1)
        assert "another so2docs process is writing it and holds " in refused.stderr
        assert refused.stderr.count("\n") == 1
    do(kind, folder)


@each_command
def test_after_a_kill_the_same_command_ends_with_the_same_files(kind: str, folder: Path) -> None:
    calm = folder / "calm"
    shutil.copytree(folder, calm)
    do(kind, calm)
    command, file = COMMANDS[kind]
    kill_command(
        "os.rename", rf"\b{Path(file).name}$", *command.split(), "--jobs", "1", folder=folder
    )
    assert not (folder / file).exists()
    do(kind, folder)
    (folder / "calm").rename(calm := folder.parent / f"{folder.name}-calm")
    assert files(folder, kind) == files(calm, kind)


@each_command
def test_on_a_full_disk_the_error_is_one_line(kind: str, folder: Path) -> None:
    with limited_files(2_000 if kind in ("set", "diff") else 20_000):
        refused = do(kind, folder, "-q", code=1)
    assert refused.stderr.count("\n") == 1
    assert "again" in refused.stderr or "starts over" in refused.stderr
    assert not (folder / COMMANDS[kind][1]).exists()
    do(kind, folder)
    assert (folder / COMMANDS[kind][1]).exists()
