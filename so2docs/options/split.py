"""How an output is split into files: by size, by number, by date or by shares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from so2docs.errors import OptionError, flag
from so2docs.options.choices import SplitBy
from so2docs.options.option import WHOLE, at_least, size

MOST_FILES = 10_000
UNDATED = "undated"
"""Label of the file for questions without a date, if files are split by date."""

_FILES = re.compile(r"(\d+) ?files?")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_LEAST_BYTES = 100_000
_EXAMPLE = "train=0.9,validation=0.05,test=0.05"
_read_size = size(1, "1GB")


@dataclass(frozen=True, slots=True)
class Split:
    """How an output is split; at most one attribute is set, and none for a single file.

    Attributes:
        size: Maximum size of a file, in bytes.
        files: Number of files.
        by: Period of the questions in a file.
        shares: Names with shares of the questions that add up to 1, such as
            `train=0.9,test=0.1`.
    """

    size: int | None = None
    files: int | None = None
    by: SplitBy | None = None
    shares: str | None = None

    def __bool__(self) -> bool:
        return self != Split()

    def __str__(self) -> str:
        if self.files is not None:
            return f"{self.files}files"
        return str(self.by or self.shares or self.size or "")

    @property
    def is_by_question(self) -> bool:
        """Whether the question alone determines the file of a document."""
        return self.by is not None or self.shares is not None

    @property
    def ends(self) -> list[tuple[str, int]]:
        """The names of the shares with the ends of their ranges, in units of 1 / 2^64."""
        ends, end = [], Decimal(0)
        for pair in filter(None, (self.shares or "").split(",")):
            name, _, part = pair.partition("=")
            end += Decimal(part)
            ends.append((name, int(end * WHOLE)))
        return ends

    def labels(self, *, with_total: bool) -> str:
        """Return a regular expression for the labels in file names.

        Args:
            with_total: Whether the names of numbered files end in the number of files.
        """
        if self.shares is not None:
            return "|".join(name for name, _ in self.ends)
        if self.by is None:
            return r"\d{5,}-of-\d{5,}|\d{5,}" if with_total else r"\d{5,}"
        return (r"\d{4}" if self.by == "year" else r"\d{4}-\d\d") + f"|{UNDATED}"


def parse_split(name: str, value: str | None) -> Split:
    """Parse a size, a number of files, a period, or names with shares.

    Raises:
        OptionError: The value is none of these.
    """
    if value is None:
        return Split()
    text = value.strip()
    if text in ("year", "month"):
        return Split(by="year" if text == "year" else "month")
    if "=" in text:
        return Split(shares=_parse_shares(name, text))
    if match := _FILES.fullmatch(text):
        return Split(files=at_least(1, MOST_FILES)(name, int(match[1])))
    return Split(size=_parse_size(name, text))


def _parse_size(name: str, text: str) -> int | None:
    try:
        amount = _read_size(name, text)
    except OptionError:
        raise OptionError(
            f"{flag(name)} is {text!r}; it must be a size such as 1GB, a number of files such as "
            f"8files, year, month, or shares such as {_EXAMPLE}"
        ) from None
    if amount is not None and amount < _LEAST_BYTES:
        hint = f"; for a number of files, give {text}files" if text.isdecimal() else ""
        raise OptionError(
            f"{flag(name)} is {text!r}; a size must be at least {_LEAST_BYTES:,} bytes{hint}"
        )
    return amount


def _parse_shares(name: str, text: str) -> str:
    by_name: dict[str, Decimal] = {}
    for pair in text.split(","):
        key, _, part = map(str.strip, pair.partition("="))
        try:
            if not _NAME.fullmatch(key) or key in by_name or Decimal(part) <= 0:
                raise ValueError
        except (InvalidOperation, ValueError):
            raise OptionError(
                f"{flag(name)} is {text!r}, but {pair.strip()!r} is not a new name in lower case "
                f"with a share above 0, as in {_EXAMPLE}"
            ) from None
        by_name[key] = Decimal(part)
    if (total := sum(by_name.values())) != 1:
        raise OptionError(
            f"{flag(name)} is {text!r}; the shares add up to {total}, not to 1 as in {_EXAMPLE}"
        )
    return ",".join(f"{key}={part}" for key, part in by_name.items())
