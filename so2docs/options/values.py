"""What users write, as what is meant: sizes, dates, shares, names. Each takes an option's name."""

from __future__ import annotations

import hashlib
import os
import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from so2docs.domain import is_typed_date
from so2docs.errors import OptionError, flag

WHOLE = 1 << 64
"""The share of all questions, of 2^64."""

_ID = re.compile(r"-?[0-9]{1,18}")
_SPLIT_NAME = re.compile(r"[a-z][a-z0-9_]{0,30}")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(b?)", re.IGNORECASE)


def at_least(least: int, most: int | None = None) -> Callable[[str, int | None], int | None]:
    """Whole numbers from `least` on, up to `most` if that is given."""

    def check(name: str, value: int | None) -> int | None:
        if value is None or (value >= least and (most is None or value <= most)):
            return value
        expected = f"{least:,} or more" if most is None else f"{least:,} to {most:,}"
        raise OptionError(f"{flag(name)} is {value}; it must be {expected}")

    return check


def size(least: int, example: str) -> Callable[[str, str | int | None], int | None]:
    """Bytes as people write them: `500MB`, `1.5 GiB`, or a plain number."""

    def read(name: str, value: str | int | None) -> int | None:
        if value is None:
            return None
        match = _SIZE.fullmatch(str(value).strip())
        if match is None:
            raise OptionError(f"{flag(name)} is {value!r}; it must be a size such as {example}")
        number, unit, binary, byte = match.groups()
        factor = (_BINARY_UNITS if binary and unit else _UNITS)[unit.lower()]
        amount = int(float(number) * factor)
        if amount < least or (byte and not unit):
            more = f", at least {least:,} bytes" if least > 1 else ""
            raise OptionError(
                f"{flag(name)} is {value!r}; it must be a size such as {example}{more}"
            )
        return amount

    return read


def names(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    """Names with commas between them, or a list of such."""
    parts = [value] if isinstance(value, str) else value
    return tuple(dict.fromkeys(entry.strip() for part in parts for entry in part.split(",")))


def tags(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    """Tags in lower case, in order."""
    tag_names = names(name, value)
    for tag in tag_names:
        if not tag or re.search(r"[<>|\s]", tag):
            raise OptionError(
                f"{flag(name)} is {tag!r}; it must be a tag such as python, or several with commas"
                " between them"
            )
    return tuple(sorted({tag.lower() for tag in tag_names}))


def point_in_time(name: str, value: str | date | None) -> str | None:
    """A year, month, day or time in the form of the dump, UTC."""
    if value is None:
        return None
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            value = value.astimezone(UTC)
        return value.replace(tzinfo=None).isoformat(timespec="milliseconds")
    text = str(value).strip().replace(" ", "T").removesuffix("Z")
    if re.fullmatch(r"\d{4}(-\d\d)?", text):
        text += "-01-01" if len(text) == len("2020") else "-01"
    try:
        if not is_typed_date(text):
            raise ValueError
        datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(
            f"{flag(name)} is {str(value)!r}; it must be a date such as 2020-01-31, 2020, or "
            "2020-01-31T12:00:00, UTC"
        ) from None
    return text


def share(name: str, value: str | float | None) -> int | None:
    """A share of the questions, of 2^64."""
    if value is None:
        return None
    text = str(value).strip()
    try:
        percent = text.endswith("%")
        part = Decimal(text.removesuffix("%")) / (100 if percent else 1)
        if not 0 < part <= 1 or (part == 1 and not percent):
            raise ValueError
    except (InvalidOperation, ValueError):
        raise OptionError(
            f"{flag(name)} is {value!r}; it must be above 0% and at most 100%, such as 1% or 0.01"
        ) from None
    return int(part * WHOLE)


def shares(name: str, value: str | None) -> str | None:
    """Names with shares that make a whole, such as `train=0.9,test=0.1`; checked, as text."""
    if value is None:
        return None
    pairs = [pair.strip().partition("=") for pair in value.split(",")]
    try:
        by_name = {key.strip(): Decimal(part.strip()) for key, _, part in pairs}
        names_fit = len(by_name) == len(pairs) and all(map(_SPLIT_NAME.fullmatch, by_name))
        if not names_fit or min(by_name.values()) <= 0 or sum(by_name.values()) != 1:
            raise ValueError
    except (InvalidOperation, ValueError):
        raise OptionError(
            f"{flag(name)} is {value!r}; it must be lower-case names with shares that add up to "
            "1, such as train=0.9,validation=0.05,test=0.05"
        ) from None
    return ",".join(f"{key}={part}" for key, part in by_name.items())


def bounds(text: str) -> list[tuple[str, int]]:
    """The names in what `shares` returned, each with the end of its range of 2^64."""
    ends, end = [], Decimal(0)
    for pair in text.split(","):
        key, _, part = pair.partition("=")
        end += Decimal(part)
        ends.append((key, int(end * WHOLE)))
    return ends


def path(name: str, value: str | os.PathLike[str] | None) -> str | None:
    """The name of a file or folder."""
    if value is None:
        return None
    if not (text := os.fspath(value)):
        raise OptionError(f"{flag(name)} is empty, as an unset variable is; give a name")
    return text


@dataclass(frozen=True, slots=True)
class IdList:
    """Ids of a file, which travel to the workers with every task.

    Attributes:
        packed: The ids as 64-bit integers, in ascending order.
    """

    packed: bytes

    @property
    def ids(self) -> frozenset[int]:
        """The ids."""
        return _unpack(self.packed)

    def __str__(self) -> str:
        digest = hashlib.sha256(self.packed).hexdigest()[:12]
        return f"{len(self.ids):,} ids, {digest}"


@lru_cache(maxsize=4)
def _unpack(packed: bytes) -> frozenset[int]:
    return frozenset(array("q", packed))


def id_list(name: str, value: str | os.PathLike[str] | None) -> IdList | None:
    """The ids in a file: one a line; empty lines and what follows `#` are ignored."""
    if (file := path(name, value)) is None:
        return None
    ids: set[int] = set()
    try:
        with open(file, encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                text = line.partition("#")[0].strip()
                if text and not _ID.fullmatch(text):
                    raise OptionError(
                        f"{flag(name)}: {file}, line {number:,} is {text[:40]!r}; each line must "
                        "be an id such as 1234"
                    )
                if text:
                    ids.add(int(text))
    except OSError as error:
        raise OptionError(f"{flag(name)}: {file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OptionError(
            f"{flag(name)}: {file} is not a text in UTF-8; each line must be an id such as 1234"
        ) from error
    return IdList(array("q", sorted(ids)).tobytes())
