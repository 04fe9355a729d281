"""Errors of a full disk or an exceeded quota."""

import errno

import pytest

from so2docs.errors import is_full


@pytest.mark.skipif(not hasattr(errno, "EDQUOT"), reason="this system has no quotas")
def test_a_full_disk_and_an_exceeded_quota_are_told_by_code() -> None:
    for code in (errno.ENOSPC, errno.EDQUOT):
        assert is_full(OSError(code, ""))
    assert not is_full(OSError(errno.EACCES, ""))
