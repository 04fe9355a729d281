"""Which rows existed at a moment: one rule for the rows of all tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from so2docs.domain import last_moment
from so2docs.options.table import Options

Row = TypeVar("Row", bound=Mapping[str, Any])

_LENGTH = len("2016-12-10T00:00:00.000")


@dataclass(frozen=True, slots=True)
class Existence:
    """Tells whether a row existed at a moment: it is dated then or earlier.

    Dates are compared as text, to the millisecond, so an impossible date such as 2016-02-30 sorts
    among the others. A row without a date did not exist.

    Attributes:
        last: The moment, in the format of the dump.
    """

    last: str

    @classmethod
    def at(cls, as_of: str) -> Self:
        """Make the rule for the end of a day, or for a moment."""
        return cls(last_moment(as_of))

    @classmethod
    def of_dates(cls, options: Options) -> tuple[Self, Self]:
        """Make the rules for the date of `as_of`, and for that of later questions if requested."""
        assert options.filters.as_of is not None
        later = options.transform.later_until
        return cls.at(options.filters.as_of), cls.at(later or options.filters.as_of)

    def includes(self, date: str | None) -> bool:
        """Whether a row with this date existed."""
        return date is not None and date[:_LENGTH] <= self.last

    def select(self, rows: Iterable[Row], name: str) -> list[Row]:
        """Return the rows that existed, whose dates are in the attribute `name`."""
        return [row for row in rows if self.includes(row.get(name))]


def read_dates(data: bytes, name: str) -> list[bytes] | None:
    """Read the dates of the rows of a slice; None if rows lack them or may be written differently.

    Splitting is three times as fast as a regular expression.
    """
    dates = [part[:_LENGTH] for part in data.split(b' %b="' % name.encode())[1:]]
    # No value contains a raw `<`. A reference may stand for any character of a date.
    return None if len(dates) != data.count(b"<") or b"&" in b"".join(dates) else dates
