"""Outputs in every format record how they were made, and `convert` compares this."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.places import SAMPLES

import so2docs
from so2docs.output.product import ExistingOutputError, read_provenance
from so2docs.output.provenance import File

FORMATS = [
    ("questions.jsonl.gz", {}),
    ("questions.jsonl", {}),
    ("questions.jsonl.zst", {}),
    ("questions.json", {}),
    ("questions.ravendbdump", {}),
    ("questions.ndjson.gz", {"format": "elasticsearch"}),
    ("questions.jsonl", {"format": "mongodb"}),
    ("questions.parquet", {}),
    ("questions.jsonl.gz", {"split": "3files"}),
    ("questions.json", {"split": "2files"}),
    ("questions.parquet", {"split": "2files"}),
    ("questions.jsonl", {"split": "year"}),
    ("records.jsonl", {"recipe": "qa", "site": "beer.stackexchange.com"}),
]


def convert(source: Path, output: Path, **options: Any) -> so2docs.Report:
    return so2docs.convert(source, output, jobs=1, **options)


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A dump in a folder named after a site."""
    folder = tmp_path / "dumps" / "beer.stackexchange.com"
    folder.mkdir(parents=True)
    shutil.copyfile(SAMPLES / "posts.xml", folder / "Posts.xml")
    return folder


@pytest.mark.parametrize(("name", "options"), FORMATS)
def test_every_file_says_how_it_was_made(
    name: str, options: dict[str, Any], site: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    report = convert(site, folder / name, min_score=-5, **options)
    size = (site / "Posts.xml").stat().st_size
    documents = 0
    for path in files_of(folder):
        provenance = read_provenance(str(path))
        assert provenance is not None
        assert provenance.version == so2docs.__version__
        assert provenance.site == "alcohol.stackexchange.com"
        assert provenance.options["min_score"] == -5
        assert provenance.options["format"] == options.get("format", provenance.options["format"])
        assert [tuple(file)[:3] for file in provenance.input] == [("posts", "Posts.xml", size)]
        assert provenance.input[0].content
        if "documents" in provenance.counts:
            documents += provenance.counts["documents"]
        else:
            documents = provenance.counts["questions"]
            assert provenance.counts["rows"] == report.rows
    assert documents == report.questions
    again = convert(site, folder / name, min_score=-5, **options)
    assert not again.is_new
    assert (again.questions, again.files, again.output_bytes) == (
        report.questions,
        report.files,
        report.output_bytes,
    )
    if len(files_of(folder)) == 1 and not any(option.startswith("split") for option in options):
        assert (again.rows, again.answers) == (report.rows, report.answers)
        assert (again.strays, again.other_types) == (report.strays, report.other_types)
    with pytest.raises(ExistingOutputError, match=r"with other options \(with min_score\);"):
        convert(site, folder / name, **options)


def test_a_renamed_dump_is_the_same_dump(site: Path, tmp_path: Path) -> None:
    convert(site, tmp_path / "q.jsonl")
    other = site.with_name("renamed")
    site.rename(other)
    assert not convert(other, tmp_path / "q.jsonl").is_new


def test_the_host_of_attribution_is_remembered(tmp_path: Path) -> None:
    dump = shutil.copyfile(SAMPLES / "posts.xml", tmp_path / "Posts.xml")
    output = tmp_path / "records.jsonl"
    convert(dump, output, recipe="qa", site="beer.stackexchange.com")
    with pytest.raises(so2docs.OutputExistsError, match="site"):
        convert(dump, output, recipe="qa", site="wine.stackexchange.com")
    convert(dump, output, recipe="qa", site="beer.stackexchange.com")


def test_an_output_without_provenance(site: Path, tmp_path: Path) -> None:
    convert(site, tmp_path / "q.jsonl")
    (tmp_path / ".q.jsonl.index").unlink()
    with pytest.raises(ExistingOutputError, match="has no record of how it was made") as refused:
        convert(site, tmp_path / "q.jsonl")
    assert refused.value.state == "unknown"
    assert read_provenance(str(tmp_path / "q.jsonl")) is None


def test_standard_input_is_compared_with_nothing(site: Path, tmp_path: Path) -> None:
    data = (site / "Posts.xml").read_bytes()
    run("convert", "-", "q.jsonl", "-q", stdin=data, cwd=tmp_path, code=0)
    record = read_provenance(str(tmp_path / "q.jsonl"))
    assert record is not None
    assert record.input == (File.read_once("posts", "standard input")._replace(bytes=len(data)),)
    again = run("convert", "-", "q.jsonl", "-q", stdin=data, cwd=tmp_path, code=1)
    assert "cannot be compared, since it can be read only once" in again.stderr


def test_parquet_readers_find_it_among_the_metadata(site: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    convert(site, tmp_path / "q.parquet")
    metadata = parquet.read_schema(tmp_path / "q.parquet").metadata
    provenance = read_provenance(str(tmp_path / "q.parquet"))
    assert provenance is not None
    assert json.loads(metadata[b"so2docs"]) == provenance.as_dict()


def test_a_damaged_parquet_file_does_not_say_it(site: Path, tmp_path: Path) -> None:
    convert(site, tmp_path / "q.parquet")
    whole = (tmp_path / "q.parquet").read_bytes()
    for size in (*range(0, 40), len(whole) // 2, len(whole) - 1):
        (tmp_path / "q.parquet").write_bytes(whole[:size])
        assert read_provenance(str(tmp_path / "q.parquet")) is None


def test_an_option_of_more_than_64_bits(site: Path, tmp_path: Path) -> None:
    old, new, changes = (tmp_path / f"{name}.jsonl" for name in ("old", "new", "changes"))
    convert(site, old, sample="100%", card=True)
    convert(site, new, sample="100%")
    so2docs.diff(old, new).write(changes)
    assert not convert(site, new, sample="100%").is_new


def test_an_unreadable_index(tmp_path: Path) -> None:
    """An output without a record is refused, not replaced."""
    output = tmp_path / "q.jsonl"
    convert(SAMPLES / "posts.xml", output)
    index = tmp_path / ".q.jsonl.index"
    index.unlink()
    index.symlink_to(index.name)
    for command in (
        ["convert", SAMPLES / "posts.xml", output],
        ["diff", output, output, tmp_path / "c.jsonl"],
        ["show", output, "1"],
    ):
        result = run(*command, code=1)
        assert f"{index}: cannot be read: " in result.stderr
    assert index.is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == [index.name, "q.jsonl"]
