"""Every way to convert a sample gives the expected documents, byte for byte."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.dumps import strays_of, unpacked
from support.oracle import AnswersBy, nest
from support.places import LONG, SAMPLES

import so2docs

pytestmark = pytest.mark.usefixtures("core")

SAMPLE_NAMES = sorted(path.stem for path in SAMPLES.glob("*.xml"))
CASES: list[tuple[str, AnswersBy]] = [*((name, "id") for name in SAMPLE_NAMES), ("votes", "votes")]
WAYS = [(1, None), (1, 300), (3, 300)]
"""Jobs and size of chunks."""

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


def check(folder: Path, name: str, answers_by: AnswersBy) -> dict[str, bytes]:
    """Compare all files of a converted sample with the expected ones, and return them."""
    output = folder / "questions.jsonl.gz"
    expected = {
        output: SAMPLES / (f"{name}.jsonl" if answers_by == "id" else f"{name}.by-votes.jsonl")
    }
    if (strays := SAMPLES / f"{name}.strays.jsonl").exists():
        expected[strays_of(output)] = strays
    index = output.with_name(f".{output.name}.index")
    assert sorted(folder.iterdir()) == sorted([*expected, index])
    for actual, expected_text in expected.items():
        assert unpacked(actual).splitlines(True) == expected_text.read_bytes().splitlines(True)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(("name", "answers_by"), CASES)
def test_files_and_counts_with_any_chunks(name: str, answers_by: AnswersBy, tmp_path: Path) -> None:
    oracle, files = nest(SAMPLES / f"{name}.xml", answers_by), []
    # This sample has files of both kinds.
    for jobs, chunk_bytes in WAYS if LONG or name == "strays" else WAYS[:2]:
        folder = tmp_path / str(len(files))
        folder.mkdir()
        report = so2docs.convert(
            SAMPLES / f"{name}.xml",
            folder / "questions.jsonl.gz",
            jobs=jobs,
            chunk_bytes=chunk_bytes,
            answers_by=answers_by,
        )
        files.append(check(folder, name, answers_by))
        assert (report.rows, report.questions, report.answers) == (
            oracle.rows,
            oracle.questions,
            oracle.answers,
        )
        assert {reason: n for reason, n in report.strays.items() if n} == oracle.strays_by_reason
        assert {kind: n for kind, n in report.other_types.items() if n} == oracle.other_types
        assert report.repaired_characters == oracle.repaired_characters
    assert all(one == files[0] for one in files)


def test_every_sample_is_described() -> None:
    readme = (SAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"[{name}.xml]({name}.xml)" in readme for name in SAMPLE_NAMES)


@pytest.mark.parametrize(("name", "answers_by"), CASES)
def test_expected_files_equal_the_oracle(name: str, answers_by: AnswersBy) -> None:
    oracle = nest(SAMPLES / f"{name}.xml", answers_by)
    documents = SAMPLES / f"{name}{'' if answers_by == 'id' else '.by-votes'}.jsonl"
    strays = SAMPLES / f"{name}.strays.jsonl"
    assert documents.read_bytes() == b"".join(oracle.document_lines())
    assert (strays.read_bytes() if strays.exists() else b"") == b"".join(oracle.stray_lines())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_same_documents_from_any_layout(layout: str, tmp_path: Path) -> None:
    dump = tmp_path / "Posts.xml"
    output = tmp_path / "questions.jsonl.gz"
    dump.write_bytes(LAYOUTS[layout]((SAMPLES / "posts.xml").read_bytes().decode("utf-8-sig")))
    so2docs.convert(dump, output, jobs=1, chunk_bytes=300, force=True)
    assert unpacked(output) == (SAMPLES / "posts.jsonl").read_bytes()
