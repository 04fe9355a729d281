"""zstd from the standard library of Python 3.14 and later, or from its backport.

A decompressor cannot be used again, so each frame costs about 15 microseconds: read frames of tens
of kilobytes or more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

if sys.version_info >= (3, 14):
    from compression.zstd import (
        CompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdError,
        compress,
        decompress,
        get_frame_info,
    )
else:
    from backports.zstd import (
        CompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdError,
        compress,
        decompress,
        get_frame_info,
    )

__all__ = [
    "CompressionParameter",
    "ZstdDecompressor",
    "ZstdError",
    "compress",
    "decompress",
    "frame_compressor",
    "get_frame_info",
]


def frame_compressor(
    level: int, options: dict[CompressionParameter, int] | None = None
) -> Callable[[bytes | bytearray], bytes]:
    """Make a function that compresses bytes to a frame, which states their size.

    Args:
        level: Compression level.
        options: Further parameters.
    """
    parameters: dict[int, int] = {int(name): value for name, value in (options or {}).items()}
    parameters[CompressionParameter.compression_level] = level
    compressor = ZstdCompressor(options=parameters)
    return partial(compressor.compress, mode=ZstdCompressor.FLUSH_FRAME)
