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
_read_size = size(100_000, "1GB; or a number such as 8files, year, month, or train=0.9,test=0.1")


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
    return Split(size=_read_size(name, text))


def _parse_shares(name: str, text: str) -> str:
    pairs = [pair.strip().partition("=") for pair in text.split(",")]
    try:
        by_name = {key.strip(): Decimal(part.strip()) for key, _, part in pairs}
        names_fit = len(by_name) == len(pairs) and all(map(_NAME.fullmatch, by_name))
        if not names_fit or min(by_name.values()) <= 0 or sum(by_name.values()) != 1:
            raise ValueError
    except (InvalidOperation, ValueError):
        raise OptionError(
            f"{flag(name)} is {text!r}; it must be lower-case names with shares that add up to "
            "1, such as train=0.9,validation=0.05,test=0.05"
        ) from None
    return ",".join(f"{key}={part}" for key, part in by_name.items())
