"""Workers copy the data of segments into the output, and remove the copied files."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.dumps import some_rows, write_dump

import so2docs
from so2docs.output import segments


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
