"""Characters that XML does not allow -> U+FFFD, in the bytes of a slice. Pure."""

from __future__ import annotations

import re

# XML 1.0, [2] Char: every character but these may occur in a document, raw or as a reference.
_REFERENCE = re.compile(rb"&#(?:x([0-9A-Fa-f]+)|([0-9]+));")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_REPLACEMENT_BYTES = _REPLACEMENT.encode()


def repair(data: bytes) -> tuple[bytes, int]:
    """Replace what an XML document may not contain by U+FFFD.

    Forbidden are (XML 1.0, [2] Char) control characters but tab, line feed and carriage return,
    surrogates, U+FFFE, U+FFFF and what lies beyond U+10FFFF, as bytes or as references; and bytes
    that are not UTF-8.

    Args:
        data: Any bytes.

    Returns:
        The repaired bytes and the number of characters replaced.
    """
    count = 0

    def reference(match: re.Match[bytes]) -> bytes:
        nonlocal count
        # Nine digits are more than any allowed number has; int() of millions of digits takes hours.
        digits = (match[1] or match[2]).lstrip(b"0")[:9] or b"0"
        if _is_allowed(int(digits, 16 if match[1] else 10)):
            return match[0]
        count += 1
        return _REPLACEMENT_BYTES

    try:
        data.decode()
    except UnicodeDecodeError:
        kept = data.count(_REPLACEMENT_BYTES)
        data = data.decode(errors="replace").encode()
        count += data.count(_REPLACEMENT_BYTES) - kept
    data, controls = _CONTROL.subn(_REPLACEMENT_BYTES, data)
    return _REFERENCE.sub(reference, data), count + controls


def _is_allowed(code: int) -> bool:
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )
