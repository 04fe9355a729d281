"""Another package adds a format, a recipe and a source, which are found by name."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from support.command import run_python
from support.places import SAMPLES

import so2docs
from so2docs.registry import EXTENSIONS, Registry

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


@pytest.mark.parametrize("group", EXTENSIONS)
def test_references_to_extensions_of_this_package(group: str) -> None:
    extensions = Registry(group, lambda name, item: item)
    for name in EXTENSIONS[group]:
        assert extensions[name] is not None


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


RUN = """
import json, sys
from so2docs import cli
print(json.dumps([cli.run(arguments) for arguments in json.loads(sys.argv[1])]))
"""


def commands(theirs: Path, cwd: Path, *lines: str) -> tuple[list[int], str]:
    """Run commands in one process; return their exit codes and messages."""
    done = run_python(
        "-c",
        RUN,
        json.dumps([line.split() for line in lines]),
        cwd=cwd,
        env={"PYTHONPATH": str(theirs)},
    )
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_formats_recipes_and_sources(theirs: Path, tmp_path: Path) -> None:
    dump = (SAMPLES / "posts.xml").read_bytes()
    (tmp_path / "Posts.xml").write_bytes(dump)
    (tmp_path / "posts.turned").write_bytes(b"TURN" + bytes(byte ^ 255 for byte in dump))
    codes, messages = commands(
        theirs,
        tmp_path,
        "convert Posts.xml -o q.numbered.gz -q -j 2",
        "convert Posts.xml -o named.gz --format numbered -q",
        "convert Posts.xml titles.jsonl --recipe titles -q",
        "convert Posts.xml plain.jsonl --recipe plain -q",
        "convert Posts.xml qa.jsonl --recipe qa --site a.com -q",
        "convert posts.turned turned.jsonl -q",
    )
    assert (codes, messages) == ([0] * 6, "")
    expected = (SAMPLES / "posts.jsonl").read_bytes()
    for name in ("q.numbered.gz", "named.gz"):
        lines = gzip.decompress((tmp_path / name).read_bytes()).splitlines()
        assert lines == [b"%d %b" % (len(line), line) for line in expected.splitlines()]
    for name in ("titles", "plain"):
        titles = [record["title"] for record in so2docs.read(tmp_path / f"{name}.jsonl")]
        assert titles == [question["Title"] for question in so2docs.read(tmp_path / "turned.jsonl")]
    so2docs.convert(tmp_path / "Posts.xml", tmp_path / "ours.jsonl", recipe="qa", site="a.com")
    assert (tmp_path / "qa.jsonl").read_bytes() == (tmp_path / "ours.jsonl").read_bytes()
    assert (tmp_path / "turned.jsonl").read_bytes() == expected
    with pytest.raises(so2docs.DumpError):  # The other package is not installed.
        so2docs.convert(tmp_path / "posts.turned", tmp_path / "other.jsonl")


def test_refuses_invalid_plugins(theirs: Path, tmp_path: Path) -> None:
    dump = SAMPLES / "posts.xml"
    names = ("wrong", "gone", "tiltes")
    codes, messages = commands(
        theirs, tmp_path, *(f"convert {dump} --recipe {name}" for name in names)
    )
    assert codes == [2, 2, 2]
    for words in (
        "wrong, which another package registers in so2docs.recipes (theirs:NEITHER), cannot",
        "cannot be used: module 'theirs' has no attribute 'Gone'",
        "duplicates, titles, plain, wrong, gone, or package.module",
    ):
        assert words in messages
