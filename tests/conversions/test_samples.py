"""Every way to convert a sample gives the expected documents, byte for byte."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.dumps import left_by, strays_of, unpacked
from support.golden import compare
from support.oracle import AnswersBy, nest
from support.places import LONG, SAMPLES

import so2docs

SAMPLE_NAMES = sorted(path.stem for path in SAMPLES.glob("*.xml"))
CASES: list[tuple[str, AnswersBy]] = [*((name, "id") for name in SAMPLE_NAMES), ("votes", "votes")]
WAYS: list[dict[str, Any]] = [
    {"core": core, "jobs": 1, "chunk_bytes": size}
    for core in ("auto", "python")
    for size in (None, 300)
]
IN_WORKERS: dict[str, Any] = {"jobs": 2, "chunk_bytes": 300}

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


@pytest.mark.parametrize(("name", "answers_by"), CASES)
def test_files_and_counts_with_any_chunks(name: str, answers_by: AnswersBy, tmp_path: Path) -> None:
    """The expected files are those of the oracle, and each conversion writes them and an index."""
    oracle, files = nest(SAMPLES / f"{name}.xml", answers_by), set()
    documents = SAMPLES / f"{name}{'' if answers_by == 'id' else '.by-votes'}.jsonl"
    strays = SAMPLES / f"{name}.strays.jsonl"
    for content, expected in zip(oracle.contents, (documents, strays), strict=True):
        if content or expected == documents:
            compare(content.decode(), expected)
    output = tmp_path / "questions.jsonl.gz"
    # This sample has files of both kinds.
    for way in [*WAYS, *[IN_WORKERS] * (LONG or name == "strays")]:
        source = SAMPLES / f"{name}.xml"
        report = so2docs.convert(source, output, answers_by=answers_by, force=True, **way)
        for path, expected in ((output, documents), (strays_of(output), strays)):
            assert unpacked(path).splitlines(True) == unpacked(expected).splitlines(True)
        for count in ("rows", "questions", "answers", "repaired_characters"):
            assert getattr(report, count) == getattr(oracle, count)
        assert {reason: n for reason, n in report.strays.items() if n} == oracle.strays_by_reason
        assert {kind: n for kind, n in report.other_types.items() if n} == oracle.other_types
        files.add(tuple(left_by(output).items()))
    assert len(files) == 1
    side_files = {".questions.jsonl.gz.index", *[strays_of(output).name] * strays.exists()}
    assert {path for path, _ in files.pop()} == {output.name, *side_files}


def test_every_sample_is_described() -> None:
    readme = (SAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"[{name}.xml]({name}.xml)" in readme for name in SAMPLE_NAMES)


@pytest.mark.usefixtures("core")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_same_documents_from_any_layout(layout: str, tmp_path: Path) -> None:
    dump = tmp_path / "Posts.xml"
    output = tmp_path / "questions.jsonl.gz"
    dump.write_bytes(LAYOUTS[layout]((SAMPLES / "posts.xml").read_bytes().decode("utf-8-sig")))
    so2docs.convert(dump, output, jobs=1, chunk_bytes=300, force=True)
    assert unpacked(output) == (SAMPLES / "posts.jsonl").read_bytes()
