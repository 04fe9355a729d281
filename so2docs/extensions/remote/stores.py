"""Files in object stores and other systems with a driver for fsspec."""

from __future__ import annotations

import io
import zlib
from typing import Any, BinaryIO, cast

from so2docs.errors import OptionError
from so2docs.extensions.remote.files import RemoteFile


class Stores:
    """Files in all stores that fsspec has a driver for."""

    def open(self, url: str) -> BinaryIO:
        """Open a file; reads fetch ranges."""
        system, name = find_system(url)
        return cast(BinaryIO, _wrap(system.open(name, "rb", cache_type="none")))

    def identify(self, url: str, file: BinaryIO | None) -> tuple[int, int]:
        """Return the size of a file, and a checksum of what the store says of its version."""
        system, name = find_system(url)
        info = system.info(name)
        marks = [str(info.get(m, "")) for m in ("ETag", "etag", "LastModified", "mtime", "md5")]
        return int(info["size"]), zlib.crc32("|".join(marks).encode())

    def glob(self, pattern: str) -> list[str]:
        """List the URLs that match a pattern."""
        system, name = find_system(pattern)
        return [system.unstrip_protocol(path) for path in system.glob(name)]

    def list_folder(self, folder: str) -> list[str]:
        """List the names in a folder."""
        system, name = find_system(folder)
        return [path.rstrip("/").rpartition("/")[2] for path in system.ls(name, detail=False)]


STORES = Stores()


def find_system(url: str) -> tuple[Any, str]:
    """Return the fsspec file system of a URL, and the name of the file in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise OptionError(
            f"{url}: reading a URL needs fsspec: pip install fsspec and the driver for its store, "
            "such as s3fs or gcsfs"
        ) from None
    try:
        system, name = url_to_fs(url)
    except (ImportError, ValueError) as error:
        scheme = url.partition("://")[0]
        raise OptionError(
            f"{url}: cannot be read, since {scheme}:// needs a driver for fsspec ({error}); "
            "install it, or download the file first"
        ) from None
    # Drivers cache listings, which become stale when other processes write files.
    system.invalidate_cache()
    return system, name


def _wrap(file: Any) -> RemoteFile:
    """Wrap a file that fsspec opened without a cache."""

    def fetch(start: int, stop: int) -> bytes:
        file.seek(start)
        data: bytes = file.read(stop - start)
        if not data:
            raise EOFError
        return data

    return RemoteFile(fetch, file.seek(0, io.SEEK_END), close=file.close)
