"""Which rows existed at a moment: one rule for the rows of all tables.

A row existed if it is dated then or earlier. Dates are compared as text, to the millisecond, so an
impossible date such as 2016-02-30 sorts among the others. A row without a date did not exist.
"""

from __future__ import annotations

from so2docs.domain import last_moment
from so2docs.options.table import Options

_LENGTH = len("2016-12-10T00:00:00.000")


def find_moments(options: Options) -> tuple[str, str]:
    """Return the last moment of `as_of`, and that of later questions: the same, if not given."""
    as_of = options.filters.as_of
    assert as_of is not None
    return last_moment(as_of), last_moment(options.transform.later_until or as_of)


def existed(date: str | None, moment: str) -> bool:
    """Whether a row with this date existed at a moment, in the format of the dump."""
    return date is not None and date[:_LENGTH] <= moment


def read_dates(data: bytes, name: str) -> list[bytes] | None:
    """Read the dates of the rows of a slice; None if rows lack them or may be written differently.

    Splitting is three times as fast as a regular expression.
    """
    dates = [part[:_LENGTH] for part in data.split(b' %b="' % name.encode())[1:]]
    # No value contains a raw `<`. A reference may stand for any character of a date.
    return None if len(dates) != data.count(b"<") or b"&" in b"".join(dates) else dates
