"""A resumed conversion of an archive decompresses it again, and parses only the rest."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from faults.sites import site
from support.dumps import left_by, some_rows, write_dump
from support.interruptions import Stop
from support.messages import heard
from support.packed import seven_zip_of_bzip2, seven_zip_of_lzma2
from support.places import LONG

import so2docs
from so2docs.spill import Spill

BLOCK_BYTES = 100_000
CHUNK_BYTES = 16_000
EVERY = 1 if LONG else 20

Pack = Callable[[Path, pytest.MonkeyPatch, dict[str, bytes]], Path]


def of_lzma2(path: Path, patch: pytest.MonkeyPatch, files: dict[str, bytes]) -> Path:
    return seven_zip_of_lzma2(path, patch, files, BLOCK_BYTES)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A site of 0.6 MB whose posts are in the middle."""
    folder = site(tmp_path_factory.mktemp("site"), "middle")
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.xml"))}


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "questions.jsonl.gz"


def convert(source: Path | str, output: Path, **options: Any) -> list[str]:
    with heard() as messages:
        so2docs.convert(source, output, jobs=1, **{"chunk_bytes": CHUNK_BYTES} | options)
    return messages


def stop_after(
    commits: int, monkeypatch: pytest.MonkeyPatch, source: Path | str, output: Path, **options: Any
) -> bool:
    """Convert, and stop after a number of commits; return whether it was stopped."""
    commit, count = Spill.commit, 0

    def counted(*arguments: Any, **keywords: Any) -> None:
        nonlocal count
        if count == commits:
            raise Stop
        count += 1
        commit(*arguments, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(Spill, "commit", counted)
        try:
            convert(source, output, **options)
        except Stop:
            return True
    return False


@pytest.mark.parametrize("pack", [seven_zip_of_bzip2, of_lzma2])
def test_stopped_anywhere_in_an_archive(
    pack: Pack,
    files: dict[str, bytes],
    tmp_path: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After two stops, the bytes are the same."""
    archive = pack(tmp_path / "tea.7z", monkeypatch, files)
    convert(archive, output, nest="all")
    expected = left_by(output)
    stops = 0
    for commits in range(1, 200, EVERY):
        if not stop_after(commits, monkeypatch, archive, output, nest="all", force=True):
            break
        if not stop_after(2, monkeypatch, archive, output, nest="all", force=True):
            break
        options: dict[str, Any] = {"nest": "all", "force": True, "chunk_bytes": CHUNK_BYTES}
        assert so2docs.convert(archive, output, jobs=1, **options).resumed
        assert left_by(output) == expected
        stops += 1
    assert stops > 1


def test_the_decompression_of_each_kind_is_told(
    tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_dump(tmp_path / "Posts.xml", *some_rows(600, body_bytes=200)).read_bytes()
    for name, packed in {
        "a.gz": gzip.compress(data),
        "b.bz2": bz2.compress(data),
        "b.xz": lzma.compress(data),
        "c.bz2": bz2.compress(data.decode().replace('"utf-8"', '"utf-16"').encode("utf-16")),
    }.items():
        source = tmp_path / name
        source.write_bytes(packed)
        target = output.with_name(f"{name}.jsonl")
        convert(source, target)
        expected = target.read_bytes()
        assert stop_after(2, monkeypatch, source, target, force=True)
        messages = convert(source, target, force=True)
        assert any(f"{name} from its start" in line for line in messages)
        assert target.read_bytes() == expected


def test_an_error_has_its_place_after_a_restart(tmp_path: Path, output: Path) -> None:
    rows = some_rows(3000, body_bytes=200, dense=True)
    rows[2900] = rows[2900].replace(b" />", b">")
    data = write_dump(tmp_path / "Posts.xml", *rows).read_bytes()
    source = tmp_path / "Posts.xml.bz2"
    source.write_bytes(bz2.compress(data, 1))
    with pytest.raises(so2docs.MalformedDumpError) as plain:
        convert(tmp_path / "Posts.xml", output)
    with pytest.raises(so2docs.MalformedDumpError) as first:
        convert(source, tmp_path / "other.jsonl.gz")
    with pytest.raises(so2docs.MalformedDumpError) as again:
        convert(source, tmp_path / "other.jsonl.gz")
    assert again.value.location == first.value.location == plain.value.location
