"""Workers copy the data of segments into the output, and remove the copied files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.dumps import some_rows, write_dump

import so2docs
from so2docs.errors import OutputError
from so2docs.output import segments
from so2docs.output.compression import compress
from so2docs.output.file import Output
from so2docs.output.new_files import NewFiles
from so2docs.output.segments import Segment
from so2docs.pipeline.second_pass import PendingCopies
from so2docs.processes.pool import Workers


def test_the_main_process_neither_copies_nor_removes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dump = write_dump(tmp_path / "Posts.xml", *some_rows(600))
    so2docs.convert(dump, tmp_path / "one.jsonl", jobs=1)

    def refuse(*arguments: object) -> int:
        raise AssertionError(arguments)

    unlink = Path.unlink

    def unlink_other(path: Path, missing_ok: bool = False) -> None:
        assert not path.name.startswith("segments.")
        unlink(path, missing_ok)

    with monkeypatch.context() as context:
        context.setattr(segments, "_copy_in_kernel", refuse)
        context.setattr(Path, "unlink", unlink_other)
        so2docs.convert(dump, tmp_path / "two.jsonl", jobs=2, chunk_bytes=30_000)
    assert (tmp_path / "two.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()


def stored(path: Path, offset: int, size: int) -> Segment:
    return Segment(0, offset, size, size, 0, 0, path=str(path))


def test_all_copies_are_made_once_settled(tmp_path: Path) -> None:
    source, path = tmp_path / "segments.0", str(tmp_path / "x")
    part = Output(NewFiles(path), path, "none")
    source.write_bytes(b"0123456789" * 1000)
    part.append(compress(b"<", "none", 0))
    with Workers(2) as workers:
        copies = PendingCopies(workers)
        for offset, size in ((0, 4000), (4000, 3000), (0, 1000)):
            copies.add(part.place(stored(source, offset, size)))
        part.append(compress(b">", "none", 0))
        copies.send([str(source)])
        copies.settle()
        assert not source.exists()
        expected = b"<" + b"0123456789" * 800 + b">"
        assert (tmp_path / ".x.part" / "x").read_bytes() == expected
        copies.add(part.place(stored(source, 0, 10)))
        copies.send([])
        with pytest.raises(OutputError, match=r"x\.part/x: cannot be written: No such file"):
            copies.settle()
