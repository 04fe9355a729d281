"""Archives, compressed files and folders on Spark: one task each, the same lines."""

import bz2
import gzip
import lzma
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from support.dumps import LZMA2
from support.places import SAMPLES
from support.spark_runs import (
    assert_same_as_plain,
    assert_same_counts,
    errors,
    files_of,
    lines_of,
    reports,
    sparse_dump,
)

import so2docs
from so2docs import spark as on_spark


def packed_in_every_way(folder: Path, xml: bytes) -> list[Path]:
    """Write this dump as a file of each kind, and in a folder."""
    py7zr = pytest.importorskip("py7zr")
    folder.mkdir()
    (folder / "gzip.xml.gz").write_bytes(gzip.compress(xml))
    (folder / "bzip2.xml.bz2").write_bytes(bz2.compress(xml))
    (folder / "xz.xml.xz").write_bytes(lzma.compress(xml))
    (folder / "zstd.xml.zst").write_bytes(zstandard.compress(xml))
    (folder / "sixteen.xml").write_bytes(xml.decode().encode("utf-16"))
    with zipfile.ZipFile(folder / "zip.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Badges.xml", "<badges />")
        archive.writestr("Posts.xml", xml)
    with py7zr.SevenZipFile(folder / "seven.com-Posts.7z", "w", filters=LZMA2) as archive:
        archive.writestr("<badges />", "Badges.xml")
        archive.writestr(xml, "Posts.xml")
    (folder / "folder").mkdir()
    shutil.copy(folder / "gzip.xml.gz", folder / "folder" / "Posts.xml.gz")
    return sorted(folder.iterdir())


@pytest.mark.spark
def test_every_kind_of_stream(session: Any, tmp_path: Path) -> None:
    dump = sparse_dump(tmp_path / "wide" / "Posts.xml", range(1, 800_000, 1_001))
    packed = packed_in_every_way(tmp_path / "packed", dump.read_bytes())
    out = tmp_path / "out"
    report = on_spark.convert(session, packed, out, chunk_bytes=20_000)
    names = ["bzip2", "folder", "gzip", "seven.com", "sixteen", "xz", "zip", "zstd"]
    assert sorted(reports(report)) == names
    for name, path in zip(names, packed, strict=True):
        assert_same_as_plain(dump, out / name, tmp_path / name)
        plain = so2docs.convert(path, tmp_path / f"{name}.jsonl.gz", jobs=1)
        assert_same_counts(reports(report)[name], plain)
        assert reports(report)[name].dump == plain.dump
        assert reports(report)[name].dump_bytes == plain.dump_bytes


@pytest.mark.spark
def test_published_archives(session: Any, dumps: Path, tmp_path: Path) -> None:
    pytest.importorskip("py7zr")
    report = on_spark.convert(session, dumps / "archives" / "*.7z", tmp_path / "out")
    assert reports(report)
    for packed in (dumps / "archives").glob("*.7z"):
        plain = tmp_path / f"{packed.stem}.jsonl.gz"
        so2docs.convert(packed, plain, jobs=1)
        assert lines_of(tmp_path / "out" / packed.stem) == lines_of(tmp_path, plain.name)


@pytest.mark.spark
def test_streams_by_url(session: Any, tmp_path: Path) -> None:
    packed_in_every_way(tmp_path / "packed", (SAMPLES / "strays.xml").read_bytes())
    urls = [f"file://{tmp_path}/packed/{name}" for name in ("gzip.xml.gz", "seven.com-Posts.7z")]
    on_spark.convert(session, urls, tmp_path / "out")
    for name in ("gzip", "seven.com"):
        assert_same_as_plain(SAMPLES / "strays.xml", tmp_path / "out" / name, tmp_path / name)


@pytest.mark.spark
def test_a_bad_stream_fails_with_the_message_of_the_plain_command(
    session: Any, tmp_path: Path
) -> None:
    xml = sparse_dump(tmp_path / "wide.xml", range(1, 9_000, 3)).read_bytes()
    malformed = sparse_dump(tmp_path / "bad.xml", range(1, 9_000, 3), malformed=6_001).read_bytes()
    folder = tmp_path / "in"
    folder.mkdir()
    packed = gzip.compress(xml)
    (folder / "good.xml.gz").write_bytes(packed)
    (folder / "cut.xml.gz").write_bytes(packed[: len(packed) // 2])
    (folder / "damaged.xml.gz").write_bytes(packed[:-8] + b"checksum")
    (folder / "unfinished.xml.gz").write_bytes(gzip.compress(xml[:-300]))
    (folder / "malformed.xml.gz").write_bytes(gzip.compress(malformed))
    (folder / "rar.xml.gz").write_bytes(b"Rar!\x1a\x07" + xml)
    (folder / "empty.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    (folder / "nothing").mkdir()
    sites = sorted(folder.iterdir())
    out = tmp_path / "out"
    report = on_spark.convert(session, sites, out, on_error="skip", chunk_bytes=10_000)
    assert list(reports(report)) == ["good"]
    assert len(errors(report)) == len(sites) - 1
    for source in sites:
        name = source.name.partition(".")[0]
        if name == "good":
            continue
        message = errors(report)[name]
        with pytest.raises(so2docs.DumpError) as plain:
            so2docs.convert(source, tmp_path / f"{name}.jsonl.gz", jobs=1, chunk_bytes=10_000)
        assert type(message) is type(plain.value)
        assert str(message).partition("; a small")[0] == str(plain.value).partition("; a small")[0]
        if plain.value.excerpt is not None:
            assert (out / name / "_error.xml").read_bytes() == plain.value.excerpt
    assert not [name for name in files_of(out) if "part-" in name and not name.startswith("good")]
