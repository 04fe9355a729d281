"""Errors of a full disk or an exceeded quota."""

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.dumps import question, write_dump

import so2docs
from so2docs.store.disk import is_full, lock_file, tells_full


@pytest.mark.skipif(not hasattr(errno, "EDQUOT"), reason="this system has no quotas")
def test_a_full_disk_and_an_exceeded_quota_are_told_by_code_and_by_words() -> None:
    for code in (errno.ENOSPC, errno.EDQUOT):
        assert is_full(OSError(code, ""))
        assert tells_full(f'IO Error: Could not write file "a.part": {os.strerror(code)}')
    assert not is_full(OSError(errno.EACCES, ""))
    assert not tells_full(f'IO Error: Could not write file "a.part": {os.strerror(errno.EACCES)}')


def test_a_disk_that_reports_no_size_is_not_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some FUSE file systems report 0 blocks, of which 0 are free."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=0, used=0, free=0))
    output = tmp_path / "q.jsonl"
    so2docs.convert(write_dump(tmp_path / "Posts.xml", question(1)), output, jobs=1)
    assert len(list(so2docs.read(output))) == 1


def test_a_disk_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl", reason="this system has no such locks")

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with open(tmp_path / "file", "wb") as file:
        assert not lock_file(file.fileno())
    output = tmp_path / "q.jsonl"
    so2docs.convert(write_dump(tmp_path / "Posts.xml", question(1)), output, jobs=1)
    assert len(list(so2docs.read(output))) == 1
