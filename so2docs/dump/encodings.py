"""Dumps in other encodings than UTF-8, decoded as they are read.

What an encoding does not allow becomes U+FFFD and is counted, as in a dump of UTF-8.
"""

from __future__ import annotations

import codecs
import re

from so2docs.dump.source import BLOCK_BYTES, Reader
from so2docs.errors import DumpError

HEAD_BYTES = 1024
"""A declaration is within the first bytes of a dump."""

# Longest first: the mark of UTF-32 starts with that of UTF-16.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_UNMARKED = {b"<\x00": "utf-16-le", b"\x00<": "utf-16-be"}
_DECLARATION = re.compile(rb"""\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']""")
_NOT_OF_TEXT = (
    "idna",
    "punycode",
    "unicode_escape",
    "unicode-escape",
    "raw_unicode",
    "raw-unicode",
)
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def detect_encoding(name: str, head: bytes) -> str | None:
    """The encoding of a dump (XML 1.0, appendix F); None if it is UTF-8.

    Args:
        name: Name of the dump, for messages.
        head: Its first `HEAD_BYTES` bytes.

    Raises:
        DumpError: The declaration names an encoding that Python does not know.
    """
    for mark, encoding in _MARKS.items():
        if head.startswith(mark):
            return None if encoding == "utf-8" else encoding
    for start, encoding in _UNMARKED.items():
        if head.startswith(start):
            return encoding
    declared = _DECLARATION.match(head)
    if declared is None:
        return None
    label = declared[1].decode()
    try:
        encoding = codecs.lookup(label).name
        # Some names are not of text encodings: "undefined", "hex", or "idna" for names of hosts.
        "<?xml".encode(encoding)
        codecs.getincrementaldecoder(encoding)(errors="replace").decode(b"<", final=True)
        is_known = not encoding.startswith(_NOT_OF_TEXT)
    except (LookupError, TypeError, ValueError):
        is_known = False
    if not is_known:
        raise DumpError(
            name,
            f"is declared to be encoded as {label}, which is not a known encoding",
            advice="convert it to UTF-8 first",
        ) from None
    # A declaration that can be read byte by byte is wrong if it says UTF-16: .NET writes such.
    ascii_like = "<?xml".encode(encoding) == b"<?xml"
    return None if encoding in ("utf-8", "ascii") or not ascii_like else encoding


class Decoded:
    """A reader that gives UTF-8, whatever the other one gives.

    Attributes:
        repaired: Characters replaced so far.
    """

    def __init__(self, reader: Reader, encoding: str) -> None:
        self._reader = reader
        decoder = codecs.getincrementaldecoder(encoding)
        self._decoder = decoder(errors="replace")
        self._counter = decoder(errors="ignore")
        self._held = b""
        self._ended = False
        self.repaired = 0

    def read(self, size: int, /) -> bytes:
        """At most `size` bytes, none at the end."""
        while not self._held and not self._ended:
            data = self._reader.read(min(size, BLOCK_BYTES))
            self._ended = not data
            # Half a character of UTF-7 is replaced and counted with the row that it is in.
            self._held = self._decode(data).encode(errors="surrogatepass")
        given, self._held = self._held[:size], self._held[size:]
        return given

    def _decode(self, data: bytes) -> str:
        state = self._decoder.getstate()
        text = self._decoder.decode(data, self._ended)
        if _REPLACEMENT in text:
            # Those of the dump itself are left when errors are passed over.
            self._counter.setstate(state)
            kept = self._counter.decode(data, self._ended).count(_REPLACEMENT)
            self.repaired += text.count(_REPLACEMENT) - kept
        return text
