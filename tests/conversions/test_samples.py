"""Every way to convert a sample gives the expected documents, byte for byte."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.command import run
from support.dumps import strays_of, unpacked
from support.oracle import AnswersBy, nest
from support.places import SAMPLES

import so2docs

pytestmark = pytest.mark.usefixtures("core")

SAMPLE_NAMES = sorted(path.name for path in SAMPLES.glob("*.xml"))


@dataclass(frozen=True, slots=True)
class Way:
    """A way to convert a dump: library or command, jobs and chunks."""

    jobs: int
    chunk_bytes: int | None = None
    command: bool = False

    def __str__(self) -> str:
        door = "command" if self.command else "library"
        return f"{door}-jobs{self.jobs}" + (f"-chunk{self.chunk_bytes}" if self.chunk_bytes else "")

    def convert(self, dump: Path, output: Path, answers_by: AnswersBy = "id") -> None:
        if self.command:
            arguments = ["--jobs", str(self.jobs), "--answers-by", answers_by]
            assert run("convert", dump, output, *arguments).returncode == 0
        else:
            so2docs.convert(
                dump,
                output,
                jobs=self.jobs,
                chunk_bytes=self.chunk_bytes,
                answers_by=answers_by,
            )


WAYS = [
    Way(jobs=1),
    Way(jobs=1, chunk_bytes=300),
    Way(jobs=1, chunk_bytes=2000),
    Way(jobs=3),
    Way(jobs=3, chunk_bytes=300),
    Way(jobs=3, command=True),
]

Golden = Callable[..., None]

# Copies of the demo sample, as other programs would have written it.
LAYOUTS: dict[str, Callable[[str], bytes]] = {
    "no-bom": lambda text: text.encode(),
    "lf": lambda text: text.replace("\r\n", "\n").encode("utf-8-sig"),
    "one-line": lambda text: text.replace("\r\n", "").encode(),
    "final-newline": lambda text: (text + "\r\n").encode("utf-8-sig"),
    "blank-lines": lambda text: text.replace("\r\n", "\n\n\n").encode(),
    "no-declaration": lambda text: text.split("\r\n", 1)[1].encode(),
    "other-root": lambda text: text.replace("posts>", "table>").encode(),
    "doctype": lambda text: text.replace("<posts>", "<!DOCTYPE posts>\n<posts>").encode(),
    "external-dtd": lambda text: text.replace(
        "<posts>", '<!DOCTYPE posts SYSTEM "posts-that-is-not-there.dtd">\n<posts>'
    ).encode(),
    "row-in-a-comment": lambda text: text.replace(
        "<posts>", '<!-- such as <row Id="1" PostTypeId="1" /> -->\n<posts>'
    ).encode(),
    "utf-16-le": lambda text: text.replace('"utf-8"', '"utf-16"').encode("utf-16"),
    "utf-16-be": lambda text: b"\xfe\xff" + text.replace('"utf-8"', '"utf-16"').encode("utf-16-be"),
}


@pytest.fixture(params=WAYS, ids=str)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """Convert a sample in one of the ways; compare all files with the expected ones."""
    way: Way = request.param

    def check(name: str, answers_by: AnswersBy = "id") -> None:
        output = tmp_path / "out" / "questions.jsonl.gz"
        output.parent.mkdir()
        way.convert(SAMPLES / f"{name}.xml", output, answers_by)
        expected = {
            output: SAMPLES / (f"{name}.jsonl" if answers_by == "id" else f"{name}.by-votes.jsonl")
        }
        if (strays := SAMPLES / f"{name}.strays.jsonl").exists():
            expected[strays_of(output)] = strays
        index = output.with_name(f".{output.name}.index")
        assert sorted(output.parent.iterdir()) == sorted([*expected, index])
        for actual, expected_text in expected.items():
            assert unpacked(actual).splitlines(True) == expected_text.read_bytes().splitlines(True)

    return check


def test_posts(golden: Golden) -> None:
    golden("posts")


def test_old_tags(golden: Golden) -> None:
    golden("old-tags")


def test_grouped(golden: Golden) -> None:
    golden("grouped")


def test_layout(golden: Golden) -> None:
    golden("layout")


def test_values(golden: Golden) -> None:
    golden("values")


def test_repaired(golden: Golden) -> None:
    golden("repaired")


def test_strays(golden: Golden) -> None:
    golden("strays")


def test_votes(golden: Golden) -> None:
    golden("votes")


def test_answers_by_votes(golden: Golden) -> None:
    golden("votes", answers_by="votes")


def test_empty(golden: Golden) -> None:
    golden("empty")


def test_every_sample_is_tested_and_described() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    readme = (SAMPLES / "README.md").read_text(encoding="utf-8")
    for name in SAMPLE_NAMES:
        assert f'golden("{Path(name).stem}")' in tests
        assert f"[{name}]({name})" in readme


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_expected_files_are_those_of_the_oracle(name: str) -> None:
    oracle = nest(SAMPLES / name)
    strays = (SAMPLES / name).with_suffix(".strays.jsonl")
    assert (SAMPLES / name).with_suffix(".jsonl").read_bytes() == b"".join(oracle.document_lines())
    assert (strays.read_bytes() if strays.exists() else b"") == b"".join(oracle.stray_lines())


def test_expected_file_by_votes_is_that_of_the_oracle() -> None:
    oracle = nest(SAMPLES / "votes.xml", answers_by="votes")
    expected = (SAMPLES / "votes.by-votes.jsonl").read_bytes()
    assert expected == b"".join(oracle.document_lines())
    assert expected != (SAMPLES / "votes.jsonl").read_bytes()


@pytest.mark.parametrize("chunk_bytes", [None, 300])
@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_report_counts_every_row(name: str, chunk_bytes: int | None, tmp_path: Path) -> None:
    oracle = nest(SAMPLES / name)
    output = tmp_path / "questions.jsonl.gz"
    report = so2docs.convert(SAMPLES / name, output, jobs=1, chunk_bytes=chunk_bytes)
    assert (report.rows, report.questions, report.answers) == (
        oracle.rows,
        oracle.questions,
        oracle.answers,
    )
    assert {reason: n for reason, n in report.strays.items() if n} == oracle.strays_by_reason
    assert {kind: n for kind, n in report.other_types.items() if n} == oracle.other_types
    assert report.repaired_characters == oracle.repaired_characters


@pytest.mark.parametrize("name", SAMPLE_NAMES)
def test_same_compressed_bytes_whichever_way(name: str, tmp_path: Path) -> None:
    contents = set()
    for way in (WAYS[0], WAYS[1], WAYS[4]):  # The other ways differ only in the entry point.
        output = tmp_path / str(way) / "questions.jsonl.gz"
        output.parent.mkdir()
        way.convert(SAMPLES / name, output)
        contents.add(
            tuple((path.name, path.read_bytes()) for path in sorted(output.parent.iterdir()))
        )
    assert len(contents) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
def test_same_documents_from_any_layout(layout: str, tmp_path: Path) -> None:
    dump = tmp_path / "Posts.xml"
    output = tmp_path / "questions.jsonl.gz"
    dump.write_bytes(LAYOUTS[layout]((SAMPLES / "posts.xml").read_bytes().decode("utf-8-sig")))
    for chunk_bytes in (None, 300):
        so2docs.convert(dump, output, jobs=1, chunk_bytes=chunk_bytes, force=True)
        assert unpacked(output) == (SAMPLES / "posts.jsonl").read_bytes()


@pytest.mark.parametrize("command", [False, True], ids=["library", "command"])
def test_strays_of_an_earlier_conversion_do_not_stay(command: bool, tmp_path: Path) -> None:
    output = tmp_path / "questions.jsonl.gz"
    so2docs.convert(SAMPLES / "strays.xml", output, jobs=1)
    assert strays_of(output).exists()
    if command:
        assert run("convert", SAMPLES / "posts.xml", output, "--force").returncode == 0
    else:
        so2docs.convert(SAMPLES / "posts.xml", output, jobs=1, force=True)
    assert unpacked(output) == (SAMPLES / "posts.jsonl").read_bytes()
    assert not strays_of(output).exists()
