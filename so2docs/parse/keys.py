"""Keys: what the passes, the spill and the merge know of a record without parsing its JSON.

A record is a post, or what belongs to one. Its key is four 64-bit integers; key and JSON are in
the bucket of its question, each in the order of the dump.
"""

from __future__ import annotations

import struct
import sys
from array import array

BUCKET_BITS = 14
"""A bucket holds 2^14 question ids: about 20 MB of JSON, what one worker sorts in memory."""

QUESTION, ANSWER = 1, 2
REJECTED_QUESTION, REJECTED_ANSWER = 3, 4
"""Kinds of posts that a filter has rejected: their key stays, their JSON does not."""

KEY = struct.Struct("<qqqq")
"""question id, post id, rank, size of the JSON << 4 | kind.

The rank orders answers by votes. It is the `Score` of an answer, 0 if it has none; and the
`AcceptedAnswerId` of a question, or its own id, which no answer in its document has.
"""

PAIR_BYTES = 16
"""A key starts with question id and post id, which the check for repeated ids takes."""


def integers(data: bytes | bytearray) -> array[int]:
    """The 64-bit integers of some keys, which are little-endian on every machine."""
    numbers = array("q", bytes(data))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def as_bytes(numbers: array[int]) -> bytes:
    """Integers in the form of keys."""
    if sys.byteorder == "big":
        numbers = array("q", numbers)
        numbers.byteswap()
    return numbers.tobytes()
