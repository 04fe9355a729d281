"""A resumed conversion of an archive decompresses few of the committed blocks again."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.dumps import dump_of, left_by, some_rows, write_dump
from support.interruptions import Stop
from support.messages import heard
from support.packed import seven_zip_of_bzip2, seven_zip_of_lzma2
from support.places import LONG
from support.range_server import serving
from support.table_sites import write_large_site

import so2docs
from so2docs.dump import bzip2, lzma2
from so2docs.dump.layers import Place
from so2docs.dump.seven_zip import SevenZip
from so2docs.spill import Spill

BLOCK_BYTES = 100_000
CHUNK_BYTES = 30_000
EVERY = 1 if LONG else 12

Pack = Callable[[Path, pytest.MonkeyPatch, dict[str, bytes]], Path]


def of_lzma2(path: Path, patch: pytest.MonkeyPatch, files: dict[str, bytes]) -> Path:
    return seven_zip_of_lzma2(path, patch, files, BLOCK_BYTES)


class Decoded:
    """Counts the blocks that decoders decode, in any thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.blocks = 0
        monkeypatch.setattr(lzma2, "_LEAST_UNPACKED", 1)
        for owner, name in ((bzip2._Reader, "_read_block"), (lzma2._Decoding, "run")):
            monkeypatch.setattr(owner, name, self._count(getattr(owner, name)))

    def _count(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: object) -> Any:
            self.blocks += 1
            return method(*arguments)

        return counted


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Decoded:
    return Decoded(monkeypatch)


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A site of 0.6 MB whose posts are in the middle."""
    folder, _ = write_large_site(tmp_path_factory.mktemp("site"), copies=60)
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
    decoded: Decoded,
    tmp_path: Path,
    output: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After two stops, the bytes are the same; later stops decode fewer blocks again."""
    archive = pack(tmp_path / "tea.7z", monkeypatch, files)
    convert(archive, output, nest="all")
    expected, whole = left_by(output), decoded.blocks
    counts, heard_later = [], False
    for commits in range(1, 200, EVERY):
        if not stop_after(commits, monkeypatch, archive, output, nest="all", force=True):
            break
        if not stop_after(2, monkeypatch, archive, output, nest="all", force=True):
            break
        decoded.blocks = 0
        messages = convert(archive, output, nest="all", force=True)
        assert left_by(output) == expected
        counts.append(decoded.blocks)
        heard_later = heard_later or any(" from byte " in line for line in messages)
    assert len(counts) > 1
    assert counts == sorted(counts, reverse=True)
    assert counts[0] <= whole
    assert counts[-1] <= 2 < whole
    assert heard_later


@pytest.mark.parametrize("commits", [4, 19])
def test_stopped_in_a_bzip2_file(
    commits: int, decoded: Decoded, tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = some_rows(3000, body_bytes=200, dense=True)
    data = write_dump(tmp_path / "Posts.xml", *rows).read_bytes()
    source = tmp_path / "Posts.xml.bz2"
    half = len(data) // 2
    source.write_bytes(bz2.compress(data[:half], 1) + bz2.compress(data[half:], 1))
    convert(source, output)
    expected, whole = left_by(output), decoded.blocks
    assert stop_after(commits, monkeypatch, source, output, force=True)
    decoded.blocks = 0
    messages = convert(source, output, force=True)
    assert any(" from byte " in message for message in messages)
    assert left_by(output) == expected
    assert decoded.blocks <= whole - (commits * CHUNK_BYTES) // BLOCK_BYTES + 1


def test_a_source_without_places_is_said_to_be_read_again(
    tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_dump(tmp_path / "Posts.xml", *some_rows(600, body_bytes=200)).read_bytes()
    for name, packed in {
        "a.gz": gzip.compress(data),
        "b.xz": lzma.compress(data),
        "c.bz2.gz": gzip.compress(bz2.compress(data)),
        "d.bz2": bz2.compress(data.decode().replace('"utf-8"', '"utf-16"').encode("utf-16")),
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


@pytest.mark.parametrize("pack", [seven_zip_of_bzip2, of_lzma2])
@pytest.mark.usefixtures("decoded")
def test_members_from_any_place(
    pack: Pack, files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading gives the same bytes as from the start, and checks the whole member."""
    path = pack(tmp_path / "tea.7z", monkeypatch, files)
    tried = 0
    with open(path, "rb", buffering=0) as file:
        archive = SevenZip("tea.7z", file)
        for entry in archive.entries:
            places: list[Place] = []
            data = b"".join(map(bytes, archive.read(entry, 2, None, mark=places.append)))
            assert data == files[entry.name]
            for place in places[1:]:
                parts = archive.read(entry, 2, None, place)
                assert b"".join(map(bytes, parts)) == data[max(0, place.offset) :]
                tried += 1
            if len(places) > 1:
                assert entry.crc is not None
                damaged = replace(entry, crc=entry.crc ^ 1)
                with pytest.raises(OSError, match="checksum"):
                    list(archive.read(damaged, 2, None, places[-1]))
        archive.close()
    assert tried > 5


def test_an_error_has_its_place_after_a_restart(
    decoded: Decoded, tmp_path: Path, output: Path
) -> None:
    rows = some_rows(3000, body_bytes=200, dense=True)
    rows[2900] = rows[2900].replace(b" />", b">")
    data = write_dump(tmp_path / "Posts.xml", *rows).read_bytes()
    source = tmp_path / "Posts.xml.bz2"
    source.write_bytes(bz2.compress(data, 1))
    with pytest.raises(so2docs.MalformedDumpError) as plain:
        convert(tmp_path / "Posts.xml", output)
    with pytest.raises(so2docs.MalformedDumpError) as first:
        convert(source, tmp_path / "other.jsonl.gz")
    decoded.blocks = 0
    with pytest.raises(so2docs.MalformedDumpError) as again:
        convert(source, tmp_path / "other.jsonl.gz")
    assert again.value.location == first.value.location == plain.value.location
    assert decoded.blocks <= 2


def test_a_resumed_download_fetches_only_the_rest(
    tmp_path: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    posts = dump_of(*some_rows(3000, body_bytes=1500, dense=True))
    archive = seven_zip_of_bzip2(tmp_path / "tea.7z", monkeypatch, {"Posts.xml": posts})
    with serving(archive.read_bytes()) as server:
        url = server.url("tea.7z")
        convert(url, output, chunk_bytes=200_000)
        expected, whole = left_by(output), server.sent
        assert stop_after(20, monkeypatch, url, output, chunk_bytes=200_000, force=True)
        server.sent = 0
        convert(url, output, chunk_bytes=200_000, force=True)
        assert left_by(output) == expected
        assert server.sent < whole - 1_000_000
