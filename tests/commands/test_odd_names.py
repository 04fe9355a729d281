"""File names that are not UTF-8, from old disks and archives; commands read and write them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import COMMAND, run

import so2docs

E = b"caf\xe9"
DUMP = b"sample.stackexchange.com.7z"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = os.fsencode(tmp_path_factory.mktemp("names") / os.fsdecode(E))
    os.mkdir(folder)
    run("sample", os.fsdecode(folder), code=0)
    return folder


def run_in(folder: bytes, *words: bytes) -> str:
    """Run a command whose arguments are any bytes; return what it prints."""
    code = "import os, sys; from so2docs.cli import run; sys.exit(run(list(map(os.fsdecode, {}))))"
    done = subprocess.run(
        [COMMAND[0], "-c", code.format(list(words))], cwd=folder, capture_output=True, check=False
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed.decode(errors="backslashreplace")
    return printed.decode()


FLAT = (b"--format", b"csv", b"--load", b"mysql")
WAYS = {
    "tables": (b"tables", DUMP, E + b".tables"),
    "csv": (b"tables", DUMP, E + b".script", *FLAT),
    "flat database": (b"tables", DUMP, E + b".flat", b"--format", b"sqlite"),
    "report": (b"convert", DUMP, E + b".r.jsonl", b"--report", E + b".json"),
    "parquet": (b"convert", DUMP, E + b".parquet"),
    "retrieval set": (b"convert", DUMP, E + b".set", b"--recipe", b"beir"),
    "split": (b"convert", DUMP, E + b".split.jsonl", b"--split", b"2files", b"--card"),
    "several": (b"convert", DUMP, b"--output-dir", E + b".several", b"--card"),
    "odd tag": (b"convert", DUMP, E + b".none.jsonl", b"--tag", E),
    "database": (b"sqlite", DUMP, E + b".db"),
    "changes": (b"diff", E + b".jsonl", E + b".jsonl", E + b".diff.jsonl"),
}
READS = ((b"inspect", b"../" + E, b"--json"), (b"inspect",), (b"show", b"1"), (b"card",))


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_commands_write_such_names_twice(way: str, folder: bytes) -> None:
    if way == "changes":
        run_in(folder, b"convert", DUMP, E + b".jsonl")
    run_in(folder, *WAYS[way])
    assert "up to date" in run_in(folder, *WAYS[way], b"--update")


@pytest.mark.long
def test_outputs_with_such_names_are_read(folder: bytes) -> None:
    run_in(folder, b"convert", DUMP, E + b".read.jsonl", b"--card")
    for command, *options in READS:
        run_in(folder, command, *([] if b"--json" in options else [E + b".read.jsonl"]), *options)
    path = Path(os.fsdecode(folder), os.fsdecode(E) + ".read.jsonl")
    manifest = Path(f"{path.parent}/.{path.name}.manifest").read_bytes()
    assert json.loads(manifest)["files"][0]["name"] == path.name


def test_a_site_without_utf_8_in_its_name(folder: bytes, tmp_path: Path) -> None:
    site = tmp_path / os.fsdecode(E)
    site.mkdir()
    (site / "Posts.xml").write_text('<posts>\n<row Id="1" PostTypeId="1" />\n</posts>\n')
    documents = list(so2docs.documents(site, site_field="Site"))
    assert documents[0]["Site"] == "caf\ufffd"  # type: ignore[typeddict-item]


BROKEN = "a\nb"
IN_ORDER = (
    ("convert", "{}.7z", "{}.jsonl", "--card", "--report", "{}.report"),
    ("convert", "{}.7z", "{}.jsonl", "--nest", "votes"),
    ("convert", "{}.none.7z"),
    ("convert", "{}.cut.xml"),
    ("convert", "{}.7z", "--output-dir", "{}"),
    ("inspect", "{}.7z", "{}.cut.xml"),
    ("tables", "{}.7z", "{}.tables", "--format", "csv"),
    ("inspect", "{}.jsonl"),
    ("inspect", "{}"),
    ("show", "{}.jsonl", "777"),
    ("card", "{}.jsonl"),
    ("diff", "{}.jsonl", "{}.none.jsonl"),
    ("sqlite", "{}.7z", "{}.db"),
    ("sample", "{}.sample"),
)


@pytest.mark.long
def test_a_line_break_in_a_name_is_none_in_messages(samples: Path, tmp_path: Path) -> None:
    printed = []
    for name in ("a~b", BROKEN):
        folder = tmp_path / name
        run("sample", folder, code=0)
        (folder / os.fsdecode(DUMP)).rename(folder / f"{name}.7z")
        (folder / f"{name}.cut.xml").write_bytes((samples / "posts.xml").read_bytes()[:-2000])
        words = [[word.format(name) for word in command] for command in IN_ORDER]
        results = [run(*command, cwd=folder) for command in words]
        text = "".join(result.stdout + result.stderr for result in results)
        text += (folder / "README.md").read_text().partition("\n---\n")[2].partition("```")[0]
        printed.append(
            [
                re.sub(r" +\d+\.\d+$", "", line)  # Seconds.
                for line in text.splitlines()
                if not re.match("time|peak|.*MB/s", line)
            ]
        )
    assert "so2docs: a\ufffdb.none.7z: cannot be read" in "\n".join(printed[1])
    assert [line.replace("~", "\ufffd") for line in printed[0]] == printed[1]
