"""Find pictures of posts in folders and ZIP archives, by the keys in their URLs."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterable
from threading import Lock

from so2docs.errors import OptionError

_KEY = re.compile(
    r"(?:https?:)?//(?:i\.stack\.imgur\.com|i\.sstatic\.net)/([\w-]{1,64}+)[^\s\"'<>]*"
)
_TYPES = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"RIFF": "image/webp",
    b"BM": "image/bmp",
}
"""Media types of pictures by their first bytes. SVG is left out, because it can contain scripts."""
_EXTENSIONS = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_MOST_BYTES = 1 << 26


def picture_keys(texts: Iterable[str]) -> set[str]:
    """Find the keys of all pictures in texts, such as `AbC` in `i.stack.imgur.com/AbC.png`."""
    return {match[1] for text in texts for match in _KEY.finditer(text)}


def picture_key(address: str) -> str | None:
    """Return the key in the URL of a picture; None if its host is not a picture host."""
    match = _KEY.fullmatch(address)
    return match[1] if match else None


class Pictures:
    """The pictures in folders and archives."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        """List the pictures; if several have the same key, the first one is used.

        Raises:
            OptionError: A path is neither a folder nor a ZIP archive.
        """
        self._places: dict[str, tuple[str, str]] = {}
        self._archives: dict[str, zipfile.ZipFile] = {}
        self._lock = Lock()
        for path in paths:
            if os.path.isdir(path):
                for folder, _, names in os.walk(path):
                    self._add(folder, names)
                continue
            try:
                self._archives[path] = zipfile.ZipFile(path)
            except (OSError, zipfile.BadZipFile) as error:
                raise OptionError(
                    f"{path}: is neither a folder nor a ZIP archive of pictures ({error})"
                ) from error
            self._add(path, self._archives[path].namelist())

    def _add(self, place: str, names: Iterable[str]) -> None:
        for name in names:
            stem, extension = os.path.splitext(name.rsplit("/", 1)[-1])
            if extension.lower() in _EXTENSIONS:
                self._places.setdefault(stem, (place, name))

    def find(self, keys: Iterable[str]) -> list[str]:
        """Select the keys for which there is a picture."""
        return [key for key in keys if key in self._places]

    def read(self, key: str) -> tuple[bytes, str] | None:
        """Return a picture and its media type; None if it cannot be read or is of unknown type."""
        if key not in self._places:
            return None
        place, name = self._places[key]
        try:
            if archive := self._archives.get(place):
                with self._lock, archive.open(name) as member:
                    content = member.read(_MOST_BYTES)
            else:
                with open(os.path.join(place, name), "rb") as file:
                    content = file.read(_MOST_BYTES)
        except (OSError, RuntimeError, NotImplementedError, EOFError, zipfile.BadZipFile):
            return None
        types = (kind for start, kind in _TYPES.items() if content.startswith(start))
        kind = next(types, None)
        return None if kind is None else (content, kind)

    def close(self) -> None:
        """Close the archives."""
        for archive in self._archives.values():
            archive.close()
