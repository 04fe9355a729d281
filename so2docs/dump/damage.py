"""Errors of decompressors: which of them mean that the data is damaged."""

from __future__ import annotations

from so2docs.errors import So2docsError


def is_damage(error: Exception) -> bool:
    """Whether an error that a decompressor raised while it read means that its data is damaged.

    Every library has errors of its own, and no list of them is complete: `gzip` and `bz2` raise
    `OSError`, `EOFError` and `zlib.error`, `lzma` and zstandard their own, and isal has a class
    that its modules share in some builds only. So what is not damage is listed.

    Args:
        error: Anything that reading raised; nothing else may have run.
    """
    if isinstance(error, OSError):
        return error.errno is None  # With a number, the system could not read the file.
    return not isinstance(error, So2docsError | MemoryError)
