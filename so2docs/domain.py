"""Rules of Stack Exchange sites that are not in the dumps: releases, host names, order of answers.

The module also defines the format of dates. All functions are pure.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import Any

_DAY = r"\d{4}-\d\d-\d\d"
_DATE = re.compile(rf"{_DAY}T\d\d:\d\d:\d\d(\.\d{{1,3}})?", re.ASCII)
MOMENT = re.compile(rf"({_DAY})T([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{{1,3}}))?", re.ASCII)
"""A date of a dump in parts: day, hour, minute, second and milliseconds."""

_TYPED_DATE = re.compile(rf"{_DAY}(T\d\d:\d\d(:\d\d(\.\d{{1,3}})?)?)?", re.ASCII)


def rank_by_votes(answer_id: int, score: int, accepted_id: int | None) -> tuple[bool, int]:
    """Make the sort key of an answer: the accepted answer first, then by descending score."""
    return answer_id != accepted_id, -score


def score(post: dict[str, Any]) -> int:
    """Return the score of a post: upvotes minus downvotes; 0 if the post has no score."""
    value = post.get("Score", 0)
    return value if isinstance(value, int) else 0


def rank(question: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the answers: the accepted answer first, then by descending score, then by id."""
    answers: list[dict[str, Any]] = question.get("Answers", [])
    if len(answers) < 2:
        return answers
    accepted = question.get("AcceptedAnswerId")
    return sorted(answers, key=lambda a: (*rank_by_votes(a["Id"], score(a), accepted), a["Id"]))


def is_date(text: str) -> bool:
    """Whether a value is a date in the format of dumps: UTC, without a time zone."""
    return _DATE.fullmatch(text) is not None


def is_typed_date(text: str) -> bool:
    """Whether a user's input is a day, or a date in the dump format, possibly without seconds."""
    return _TYPED_DATE.fullmatch(text) is not None


def last_moment(typed: str) -> str:
    """Return the end of a day, or a time to the millisecond, in the format of the dump."""
    midnight, last = "T00:00:00.000", "T23:59:59.999"
    day, time = typed[: len("2016-12-10")], typed[len("2016-12-10") :]
    return day + (time + midnight[len(time) :] if time else last)


_RENAMED = {
    "avp": "video",
    "beer": "alcohol",
    "cogsci": "psychology",
    "health": "medicalsciences",
    "materials": "mattermodeling",
    "moderators": "communitybuilding",
    "programmers": "softwareengineering",
    "ui": "ux",
    "writers": "writing",
}
"""Renamed sites of stackexchange.com, by former name. Archives still have the former name, except
for `programmers` and `ui`:
https://github.com/LunarWatcher/se-data-dump-transformer/blob/master/sedd/data/files_map.py."""

_FORMER_META = re.compile(r"meta\.([a-z0-9-]+)\.(stackexchange|stackoverflow)\.com")
"""Matches the hosts that meta sites had until 2017, but not meta.stackexchange.com."""


def site_host(name: str) -> str:
    """Convert a former host name, or the name of an archive, to the current host of the site.

    Examples:
        >>> site_host("beer.meta.stackexchange.com")
        'alcohol.meta.stackexchange.com'
    """
    host = _FORMER_META.sub(r"\1.meta.\2.com", name)
    site, dot, domain = host.partition(".")
    is_renamed = domain in ("stackexchange.com", "meta.stackexchange.com")
    return f"{_RENAMED.get(site, site)}{dot}{domain}" if is_renamed else host


FIRST_FABRICATED_ID = 1_000_000_001
"""Lowest id of posts made up by the publisher.

Two releases, the first of 2025-06-30, contain one such question and answer for every site. Ids of
real posts are counted per site and are far lower, even on Stack Overflow, the largest site."""


def is_sampled(question_id: int, share: int) -> bool:
    """Whether a question is in a sample; `share` is an integer in units of 1 / 2^64.

    The question is in the sample if the 64-bit BLAKE2b hash of the decimal digits of its id, read
    as a big-endian number, is below the share. Because only the id counts, a sample is the same for
    every dump, and every larger sample includes it.
    """
    return sample_place(question_id) < share


def sample_place(question_id: int) -> int:
    """Return the hash of a question, between 0 and 2^64, which decides whether a sample has it."""
    digest = blake2b(b"%d" % question_id, digest_size=8).digest()
    return int.from_bytes(digest, "big")


def split_place(question_id: int) -> int:
    """Return the position of a question between 0 and 2^64, which determines its split.

    The hash differs from that of `is_sampled`; otherwise all questions of a 10 % sample would be in
    the first split.
    """
    digest = blake2b(b"%d" % question_id, digest_size=8, person=b"split").digest()
    return int.from_bytes(digest, "big")


def share_of(question_id: int, ends: list[tuple[str, int]]) -> str:
    """Return the name of the share of a question; see `Split.ends`."""
    position = split_place(question_id)
    return next(name for name, end in ends if position < end)
