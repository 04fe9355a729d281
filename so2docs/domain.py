"""Rules of the sites that are not in dumps: licences, dates, order of answers. Pure."""

from __future__ import annotations

import re
from hashlib import blake2b

_LICENSES = (("2018-05-02", "4.0"), ("2011-04-08", "3.0"), ("", "2.5"))
"""First day (UTC) of each version of CC BY-SA, for content created from then on:
https://stackoverflow.com/help/licensing."""

_NAME = "CC BY-SA "
_DAY = r"\d{4}-\d\d-\d\d"
_LICENSE_DAY = re.compile(_DAY, re.ASCII)
_DATE = re.compile(rf"{_DAY}T\d\d:\d\d:\d\d(\.\d{{1,3}})?", re.ASCII)
_TYPED_DATE = re.compile(rf"{_DAY}(T\d\d:\d\d(:\d\d(\.\d{{1,3}})?)?)?", re.ASCII)

SCORE_BINS: tuple[tuple[str, int | None, int | None], ...] = (
    ("below 0", None, -1),
    ("0", 0, 0),
    ("1", 1, 1),
    ("2", 2, 2),
    ("3-4", 3, 4),
    ("5-9", 5, 9),
    ("10-24", 10, 24),
    ("25-99", 25, 99),
    ("100+", 100, None),
)
"""Ranges of scores, finer where most scores are: label, lowest and highest score, both included."""


def license_at(date: object) -> str | None:
    """The licence of content, by its creation date, in the form of the dump.

    Args:
        date: Creation date in the form of the dump; only the day matters.

    Returns:
        A licence such as `CC BY-SA 4.0`; None without a date.
    """
    if not isinstance(date, str) or not _LICENSE_DAY.match(date):
        return None
    return _NAME + next(version for start, version in _LICENSES if date >= start)


def license_url(name: str) -> str | None:
    """The address of a licence in dumps; None for any other."""
    version = name.removeprefix(_NAME)
    if name == version or version not in {licence for _, licence in _LICENSES}:
        return None
    return f"https://creativecommons.org/licenses/by-sa/{version}/"


def licenses() -> list[tuple[str, str]]:
    """Every licence, the latest first, with its first day (empty for the oldest)."""
    return [(_NAME + version, start) for start, version in _LICENSES]


def rank_by_votes(answer_id: int, score: int, accepted_id: int | None) -> tuple[bool, int]:
    """Sort key of an answer: the accepted one first, then by falling score.

    Args:
        answer_id: Its id.
        score: Its score.
        accepted_id: Id of the accepted answer; without one, None or the id of the question.
    """
    return answer_id != accepted_id, -score


def is_date(text: str) -> bool:
    """Whether a value is a date in the form of dumps: UTC, without a zone."""
    return _DATE.fullmatch(text) is not None


def is_typed_date(text: str) -> bool:
    """Whether a user's input is a day or a date in the form of the dump."""
    return _TYPED_DATE.fullmatch(text) is not None


FIRST_FABRICATED_ID = 1_000_000_001
"""Lowest id of rows that the publisher made up.

Two releases, of 2025-06-30 and after, have a question and an answer like that on every site; posts
themselves are numbered by the site, and Stack Overflow, the largest, is far from here."""


def is_sampled(question_id: int, share: int) -> bool:
    """Whether a question is in the sample of this share, of 2^64.

    Depends on the id only: the first eight bytes of the BLAKE2b hash of its decimal digits, read as
    a big-endian number, are below the share. So a sample is the same from every dump, and part of
    every larger one.
    """
    digest = blake2b(b"%d" % question_id, digest_size=8).digest()
    return int.from_bytes(digest, "big") < share


def split_place(question_id: int) -> int:
    """The position of a question between 0 and 2^64, which decides its split.

    The hash differs from that of samples; otherwise a sample of 10 % would be in the first split.
    """
    digest = blake2b(b"%d" % question_id, digest_size=8, person=b"split").digest()
    return int.from_bytes(digest, "big")
