"""`so2docs verify` checks an output against the report of `--report`."""

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.manifests import describe_file, resealed
from support.places import SAMPLES

import so2docs

POSTS, SITE = SAMPLES / "posts.xml", SAMPLES / "site"


def convert(folder: Path, name: str = "q.jsonl.gz", **keywords: Any) -> tuple[Path, Path]:
    """Convert; return the output and the file with its report."""
    output = folder / name
    so2docs.convert(POSTS, output, report=folder / "report.json", **keywords)
    return output, folder / "report.json"


def save(folder: Path, report: so2docs.Report) -> Path:
    path = folder / "report.json"
    path.write_text(json.dumps(report.as_dict()))
    return path


def edit(report: Path, **values: Any) -> None:
    whole = json.loads(report.read_text())
    edited = {**whole, "manifest": resealed(whole["manifest"], **values)}
    report.write_text(json.dumps(edited, indent=2))


@pytest.mark.parametrize(
    ("name", "keywords", "is_read"),
    [
        ("q.jsonl.gz", {"tags": "bread", "min_score": -3}, True),
        ("q.jsonl.zst", {"split": "3files"}, True),
        ("q.json", {"split": "month"}, True),
        ("q.parquet", {}, False),
        ("q.ravendbdump", {}, False),
        ("q.jsonl", {"recipe": "qa", "site": "a.example"}, True),
    ],
    ids=str,
)
def test_verifies_complete_outputs(
    tmp_path: Path, name: str, keywords: dict[str, Any], is_read: bool
) -> None:
    output, report = convert(tmp_path, name, **keywords)
    manifest = json.loads(report.read_text())
    verified = so2docs.verify(output, report=report)
    documents = manifest["questions"] if manifest["records"] is None else manifest["records"]
    assert documents
    assert verified == so2docs.Verified(
        str(output), manifest["files"], documents if is_read else None, validated=is_read
    )
    written = sorted(path for path in tmp_path.glob("q*") if path.is_file())
    assert manifest["manifest"]["files"] == list(map(describe_file, written))
    assert not list(tmp_path.glob(".*.manifest")) + list(tmp_path.glob("README.md"))


def test_other_bytes_are_noticed_in_each_of_several_files(tmp_path: Path) -> None:
    output, report = convert(tmp_path, split="month")
    files = sorted(tmp_path.glob("q-*"))
    assert len(files) == 2
    assert so2docs.verify(output, report=report).files == len(files)
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
        with pytest.raises(so2docs.OutputError, match=f"{file.name}: does not match .* report"):
            so2docs.verify(output, report=report)
        file.unlink()
        with pytest.raises(so2docs.OutputError, match=f"{file.name}: cannot be read"):
            so2docs.verify(output, report=report)
        file.write_bytes(whole)
    assert so2docs.verify(output, report=report).documents == 8


def test_another_document_and_another_schema_are_noticed(tmp_path: Path) -> None:
    output, report = convert(tmp_path)
    lines = gzip.decompress(output.read_bytes()).splitlines(keepends=True)
    output.write_bytes(gzip.compress(b"".join(lines[:-1])))
    edit(report, files=[describe_file(output)])
    message = f"has {len(lines) - 1} questions, but its manifest says {len(lines)}"
    with pytest.raises(so2docs.OutputError, match=message):
        so2docs.verify(output, report=report)
    output, report = convert(tmp_path, force=True)
    schema = json.loads(report.read_text())["manifest"]["schema"]
    edit(report, schema={**schema, "required": ["Price"]})
    with pytest.raises(so2docs.OutputError, match=r"line 1, the document: .*Price"):
        so2docs.verify(output, report=report)


@pytest.mark.parametrize("key", ["schema", "options", "counts", "files"])
def test_another_value_in_the_manifest_of_a_report_is_noticed(tmp_path: Path, key: str) -> None:
    output, report = convert(tmp_path)
    whole = json.loads(report.read_text())
    whole["manifest"][key] = {**whole["manifest"][key], "more": 1} if key != "files" else []
    report.write_text(json.dumps(whole))
    with pytest.raises(so2docs.OutputError, match=r"report\.json: is damaged, or"):
        so2docs.verify(output, report=report)


def test_the_report_of_another_output(tmp_path: Path) -> None:
    output, report = convert(tmp_path)
    other = tmp_path / "other.jsonl.gz"
    shutil.copy(output, other)
    with pytest.raises(
        so2docs.OutputError, match=r"is the report of q\.jsonl\.gz; give the report of other"
    ):
        so2docs.verify(other, report=report)
    (tmp_path / "moved").mkdir()
    moved = tmp_path / "moved" / output.name
    output.rename(moved)
    assert so2docs.verify(moved, report=report).validated


def test_reports_that_cannot_tell(tmp_path: Path) -> None:
    output, report = convert(tmp_path)
    whole = report.read_text()
    for text in ("[3]", '"text"', "[{}]", '{"manifest": 3}', whole[:-5], '{"manifest": {}}'):
        report.write_text(text)
        with pytest.raises(so2docs.OutputError, match=r"report\.json: .* again with report"):
            so2docs.verify(output, report=report)
    edit_of = {"format": 2}, {"files": []}, {"files": [{**describe_file(output), "name": "../x"}]}
    for values in edit_of:
        report.write_text(whole)
        edit(report, **values)
        with pytest.raises(so2docs.OutputError, match=r"report\.json: is .* again with report"):
            so2docs.verify(output, report=report)
    save(tmp_path, so2docs.convert(POSTS, output, force=True))
    with pytest.raises(so2docs.OutputError, match=r"has no manifest of q\.jsonl\.gz"):
        so2docs.verify(output, report=report)
    with pytest.raises(
        so2docs.OutputError, match=r"the manifest cannot be read .* give its report"
    ):
        so2docs.verify(output)


def test_standard_output_by_size_counts_and_schema(tmp_path: Path) -> None:
    command = ("convert", POSTS, "-", "-q", "--report", "r.json")
    result = run(*command, cwd=tmp_path)
    saved = tmp_path / "saved.jsonl"
    saved.write_text(result.stdout, encoding="utf-8")
    assert result.returncode == 0
    verified = run("verify", saved, "--report", tmp_path / "r.json")
    assert "1 file with the size of the manifest, 8 documents, valid" in verified.stderr
    saved.write_text(result.stdout.replace('"Id":', '"id":', 1), encoding="utf-8")
    verified = run("verify", saved, "--report", tmp_path / "r.json")
    assert verified.returncode == 1
    assert "line 1, the document: " in verified.stderr
    saved.write_text(result.stdout[:-1], encoding="utf-8")
    verified = run("verify", saved, "--report", tmp_path / "r.json")
    assert f"saved.jsonl: has {len(result.stdout.encode()) - 1} bytes, but its" in verified.stderr


def test_the_report_of_several_dumps_and_what_was_read_once(tmp_path: Path) -> None:
    shutil.copy(POSTS, tmp_path / "bread.xml")
    shutil.copy(SAMPLES / "votes.xml", tmp_path / "votes.xml")
    options = ("--output-dir", "out", "--report", "r.json", "-q")
    assert run("convert", "bread.xml", "votes.xml", *options, cwd=tmp_path).returncode == 0
    for name in ("bread", "votes"):
        output = tmp_path / "out" / f"{name}.jsonl.gz"
        assert so2docs.verify(output, report=tmp_path / "r.json").validated
    with pytest.raises(so2docs.OutputError, match="manifest of third"):
        so2docs.verify(tmp_path / "out" / "third", report=tmp_path / "r.json")
    with POSTS.open("rb") as dump:
        report = so2docs.convert(dump, tmp_path / "q.jsonl", report=tmp_path / "report.json")
    assert report.manifest is not None
    assert [(file["name"], file["content"]) for file in report.manifest["input"]] == [
        ("posts.xml", None)
    ]
    assert so2docs.verify(tmp_path / "q.jsonl", report=save(tmp_path, report)).validated


def test_a_card_says_the_same_as_the_report(tmp_path: Path) -> None:
    report = so2docs.convert(SITE, tmp_path / "q.jsonl.gz", nest="all", card=True)
    assert report.manifest == json.loads((tmp_path / ".q.jsonl.gz.manifest").read_text())
    plain = so2docs.convert(
        SITE, tmp_path / "q.jsonl.gz", nest="all", report=tmp_path / "report.json", force=True
    ).manifest
    assert plain is not None
    assert plain["input"] == [
        {name: value for name, value in file.items() if name != "sha256"}
        for file in report.manifest["input"]
    ]
    assert resealed(plain, input=[]) == resealed(report.manifest, input=[])


def test_a_retrieval_set_is_verified_by_its_report(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    so2docs.convert(SITE, tmp_path / "beir", recipe="beir", report=report)
    assert so2docs.verify(tmp_path / "beir", report=report).files == 4
    (tmp_path / "beir" / "queries.jsonl").write_bytes(b"")
    with pytest.raises(so2docs.OutputError, match=r"queries\.jsonl: has 0 bytes"):
        so2docs.verify(tmp_path / "beir", report=report)


def test_the_summary_counts_the_strays_of_tables_in_the_side_file(tmp_path: Path) -> None:
    shutil.copytree(SITE, tmp_path / "site")
    posts = (tmp_path / "site" / "Posts.xml").read_bytes()
    (tmp_path / "site" / "Posts.xml").write_bytes(re.sub(rb"<row .*/>", b"", posts))
    report = so2docs.convert(tmp_path / "site", tmp_path / "q.jsonl.gz", nest="comments")
    strays = dict(report.lines())["strays"]
    count = sum(report.tables["comments"].strays.values())
    path = tmp_path / ".q.jsonl.gz.strays.gz"
    assert strays == f"0, and {count} of other tables -> {path}"
    assert gzip.decompress(path.read_bytes()).count(b"\n") == count > 0
