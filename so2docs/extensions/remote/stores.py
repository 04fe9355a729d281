"""Files with URLs: on web servers, and in the stores that fsspec has a driver for."""

from __future__ import annotations

import io
import zlib
from contextlib import nullcontext
from typing import Any, BinaryIO

from so2docs.dump.storage import is_http
from so2docs.extensions.remote.remote_file import RemoteFile
from so2docs.extensions.remote.web_server import open_http
from so2docs.plugin import OptionError


def open_file(url: str) -> RemoteFile:
    """Open a file; reads fetch ranges."""
    return open_http(url) if is_http(url) else _open_in_store(url)


def identify(url: str, file: BinaryIO | None) -> tuple[int, int]:
    """Return the size of a file, which may be open, and a checksum of its version, or 0."""
    if is_http(url):
        # If the file is open, each range request has already checked the version.
        with nullcontext(file) if isinstance(file, RemoteFile) else open_http(url) as remote:
            return remote.size, remote.identity
    system, name = find_system(url)
    info = system.info(name)
    marks = [str(info.get(m, "")) for m in ("ETag", "etag", "LastModified", "mtime", "md5")]
    return int(info["size"]), zlib.crc32("|".join(marks).encode())


def glob(pattern: str) -> list[str]:
    """List the URLs that match a pattern."""
    system, name = find_system(pattern)
    return [system.unstrip_protocol(path) for path in system.glob(name)]


def list_folder(folder: str) -> list[str]:
    """List the names in a folder; web servers list no files."""
    if is_http(folder):
        return []
    system, name = find_system(folder)
    return [path.rstrip("/").rpartition("/")[2] for path in system.ls(name, detail=False)]


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


def _open_in_store(url: str) -> RemoteFile:
    system, name = find_system(url)
    file = system.open(name, "rb", cache_type="none")

    def fetch(start: int, stop: int) -> bytes:
        file.seek(start)
        data: bytes = file.read(stop - start)
        if not data:
            raise EOFError
        return data

    return RemoteFile(fetch, file.seek(0, io.SEEK_END), close=file.close)
