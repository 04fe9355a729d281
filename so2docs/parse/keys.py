"""Keys of records, which allow sorting records without parsing their JSON.

A record is a post, or a row that belongs to a post. A key is four 64-bit integers. The bucket of a
question holds the keys and the JSON of its records, each in the order of the dump.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator

BUCKET_BITS = 14
"""Number of low bits of a question id that differ within a bucket. The records of 2^14 question ids
have about 20 MB of JSON, which one worker sorts in memory."""

QUESTION, ANSWER = 1, 2
REJECTED_QUESTION, REJECTED_ANSWER = 3, 4
"""Kinds of posts rejected by a filter; they keep their key, but lose their JSON."""

LISTED = 15
"""Kind of a mark: a keep list, whose number is the rank, names this post."""

KEY = struct.Struct("<qqqq")
"""A key: question id, post id, rank, size of the JSON << 4 | kind.

The rank of an answer is its `Score`, or 0 if it has none. The rank of a question is its
`AcceptedAnswerId`, or else the question's id, which no answer has.
"""

BY_OPTED_OUT = ""
"""Name of the member that marks history rows by listed users; no attribute has an empty name.
Documents do not contain the mark, and marked rows without a document are left out."""

PAIR = struct.Struct("<qq")
"""The question id and post id at the start of a key, which are used to map posts."""


def walk(keys: bytes) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Yield question id, post id, rank and kind of each record, and start and end of its JSON."""
    end = 0
    for question_id, post_id, rank, size_and_kind in KEY.iter_unpack(keys):
        start, end = end, end + (size_and_kind >> 4)
        yield question_id, post_id, rank, size_and_kind & 15, start, end


def integers(data: bytes | bytearray) -> array[int]:
    """Unpack keys into 64-bit integers; keys are little-endian on every machine."""
    numbers = array("q", bytes(data))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


def kinds_in(keys: bytes) -> list[int]:
    """List the kinds of the records with these keys."""
    return [size_and_kind & 15 for size_and_kind in integers(keys)[3::4]]


def as_bytes(numbers: array[int]) -> bytes:
    """Pack 64-bit integers into the bytes of keys; the inverse of `integers`."""
    if sys.byteorder == "big":
        numbers = array("q", numbers)
        numbers.byteswap()
    return numbers.tobytes()
