"""Another package adds a format, a recipe and a source, which are found by name."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.places import SAMPLES

import so2docs

MODULE = '''
"""What somebody else offers."""

import io

from so2docs import Recipe
from so2docs.options.choices import FormatTraits
from so2docs.output.formats import Format
from so2docs.dump.kinds import Kind


class Numbered(Format):
    """Documents after their lengths."""

    traits = FormatTraits((".numbered",))

    def frame(self, document):
        json = b"".join([*document.parts, b"}"])
        return [b"%d " % len(json), json, b"\\n"]


def titles(document):
    """The title of a question."""
    yield {"title": document["Title"]}


TITLES = Recipe("any", titles)


class Turned:
    def __init__(self, reader, threads):
        self._reader = reader
        reader.read(4)

    def read(self, size):
        return bytes(byte ^ 255 for byte in self._reader.read(size))


TURNED = Kind("a turned file", magic=b"TURN", open=Turned)
NEITHER = 3
'''
ENTRY_POINTS = """\
[so2docs.formats]
numbered = theirs:Numbered
[so2docs.recipes]
titles = theirs:TITLES
plain = theirs:titles
wrong = theirs:NEITHER
gone = theirs:Gone
qa = theirs:TITLES
[so2docs.sources]
turned = theirs:TURNED
"""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an installed package."""
    folder = tmp_path_factory.mktemp("theirs")
    (folder / "theirs.py").write_text(MODULE)
    about = folder / "theirs-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return folder


def command(theirs: Path, cwd: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "so2docs", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(theirs)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("options", [["--format", "numbered"], ["-o", "q.numbered.gz"]])
def test_a_format(jobs: int, options: list[str], theirs: Path, tmp_path: Path) -> None:
    dump = SAMPLES / "posts.xml"
    if "-o" not in options:
        options = [*options, "-o", "q.numbered.gz"]
    result = command(theirs, tmp_path, "convert", dump, *options, "-q", "-j", jobs)
    assert (result.returncode, result.stderr) == (0, "")
    lines = gzip.decompress((tmp_path / "q.numbered.gz").read_bytes()).splitlines()
    expected = (SAMPLES / "posts.jsonl").read_bytes().splitlines()
    assert lines == [b"%d %b" % (len(line), line) for line in expected]
    text = command(theirs, tmp_path, "convert", "--help").stdout
    assert "|parquet|numbered]" in "".join(text.split())


@pytest.mark.parametrize("name", ["titles", "plain"])
def test_a_recipe(name: str, theirs: Path, tmp_path: Path) -> None:
    dump = SAMPLES / "posts.xml"
    result = command(theirs, tmp_path, "convert", dump, "t.jsonl", "--recipe", name, "-q")
    assert (result.returncode, result.stderr) == (0, "")
    titles = [record["title"] for record in so2docs.read(tmp_path / "t.jsonl")]
    assert titles == [question["Title"] for question in so2docs.documents(dump)]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "wrong",
            "wrong, which another package registers in so2docs.recipes (theirs:NEITHER), cannot",
        ),
        ("gone", "cannot be used: module 'theirs' has no attribute 'Gone'"),
        ("tiltes", "beir, titles, plain, wrong, gone, or package.module"),
    ],
)
def test_refuses_invalid_plugins(name: str, words: str, theirs: Path, tmp_path: Path) -> None:
    result = command(theirs, tmp_path, "convert", SAMPLES / "posts.xml", "--recipe", name)
    assert result.returncode == 2
    assert words in result.stderr


def test_built_in_names_cannot_be_replaced(theirs: Path, tmp_path: Path) -> None:
    dump = SAMPLES / "posts.xml"
    options = ("--recipe", "qa", "--site", "a.com", "-q")
    result = command(theirs, tmp_path, "convert", dump, "q.jsonl", *options)
    assert result.returncode == 0

    so2docs.convert(dump, tmp_path / "ours.jsonl", recipe="qa", site="a.com", jobs=1)
    assert (tmp_path / "q.jsonl").read_bytes() == (tmp_path / "ours.jsonl").read_bytes()


def test_a_source(theirs: Path, tmp_path: Path) -> None:
    dump = (SAMPLES / "posts.xml").read_bytes()
    (tmp_path / "posts.turned").write_bytes(b"TURN" + bytes(byte ^ 255 for byte in dump))
    result = command(theirs, tmp_path, "convert", "posts.turned", "q.jsonl", "-q")
    assert (result.returncode, result.stderr) == (0, "")
    assert (tmp_path / "q.jsonl").read_bytes() == (SAMPLES / "posts.jsonl").read_bytes()
    with pytest.raises(so2docs.DumpError):  # The other package is not installed.
        so2docs.convert(tmp_path / "posts.turned", tmp_path / "other.jsonl")
