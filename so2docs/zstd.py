"""zstd from the standard library of Python 3.14 and later, or from its backport.

A decompressor cannot be used again, so each frame costs about 15 microseconds: read frames of tens
of kilobytes or more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

if sys.version_info >= (3, 14):
    from compression import zstd as _library
else:
    from backports import zstd as _library

CompressionParameter = _library.CompressionParameter
ZstdDecompressor = _library.ZstdDecompressor
ZstdError = _library.ZstdError
compress = _library.compress
decompress = _library.decompress
get_frame_info = _library.get_frame_info


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
    compressor = _library.ZstdCompressor(options=parameters)
    return partial(compressor.compress, mode=compressor.FLUSH_FRAME)
