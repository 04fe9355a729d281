"""Errors of a full disk or an exceeded quota."""

import errno
import os

import pytest

from so2docs.store.disk import is_full, tells_full


@pytest.mark.skipif(not hasattr(errno, "EDQUOT"), reason="this system has no quotas")
def test_a_full_disk_and_an_exceeded_quota_are_told_by_code_and_by_words() -> None:
    for code in (errno.ENOSPC, errno.EDQUOT):
        assert is_full(OSError(code, ""))
        assert tells_full(f'IO Error: Could not write file "a.part": {os.strerror(code)}')
    assert not is_full(OSError(errno.EACCES, ""))
    assert not tells_full(f'IO Error: Could not write file "a.part": {os.strerror(errno.EACCES)}')
