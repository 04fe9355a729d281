"""Segments in a temporary file give the same output as in memory."""

import os
from pathlib import Path

import pytest

from so2docs.errors import OutputError
from so2docs.options.choices import Compression
from so2docs.output import index
from so2docs.output.compression import compress
from so2docs.output.file import Output
from so2docs.output.new_files import NewFiles
from so2docs.output.segments import Segment, remove, store


def some_segments(compression: Compression) -> list[Segment]:
    return [compress(b"%d\n" % n * 100_000 * n, compression, 2, n, n) for n in range(4)]


def written(path: Path, compression: Compression, segments: list[Segment]) -> bytes:
    with NewFiles(str(path)) as files:
        file = Output(files, str(path), compression, indexed=True)
        for segment in segments:
            file.append(segment)
        file.seal()
    return b"".join(Path(name).read_bytes() for name in (path, index.index_path(str(path))))


@pytest.fixture(params=["in kernel", "by reading"])
def _copying(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy in the kernel, or as on systems that cannot."""
    if request.param == "by reading":
        monkeypatch.delattr(os, "copy_file_range", raising=False)


@pytest.mark.usefixtures("_copying")
@pytest.mark.parametrize("compression", ["gzip", "none", "zstd"])
def test_same_file_by_way_of_a_temporary_one(compression: Compression, tmp_path: Path) -> None:
    in_memory = some_segments(compression)
    temporary = tmp_path / "segments.0"
    first, rest = store(str(temporary), in_memory[:1], in_memory[1:])
    assert not any(segment.data for segment in first + rest)
    assert temporary.stat().st_size == sum(segment.size for segment in in_memory)
    actual = written(tmp_path / "found", compression, first + rest)
    assert actual == written(tmp_path / "expected", compression, in_memory)
    remove(first, rest)
    assert not temporary.exists()


@pytest.mark.usefixtures("_copying")
def test_a_truncated_temporary_file(tmp_path: Path) -> None:
    temporary = tmp_path / "segments.0"
    (stored,) = store(str(temporary), some_segments("none"))
    os.truncate(temporary, temporary.stat().st_size - 1)
    with pytest.raises(OutputError, match=r"segments.0: is truncated"):
        written(tmp_path / "questions", "none", stored)


def test_an_unwritable_temporary_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "segments.0"
    with pytest.raises(OutputError, match=f"{path}: cannot be written"):
        store(str(path), some_segments("none"))
