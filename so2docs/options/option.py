"""Declare an option once, with everything that depends on it: its type, help, parser and effect.

The module also has parsers for the values that users give, such as sizes, dates, shares and names.
"""

from __future__ import annotations

import dataclasses
import hashlib
import operator
import os
import re
from array import array
from calendar import monthrange
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from so2docs.domain import is_typed_date
from so2docs.errors import OptionError, did_you_mean, flag

Group = Literal["Input", "Filters", "Documents", "Output", "Run"]
Where = Literal["documents", "files", "local", "convert"]
"""The functions that take an option: all that make documents, all that write files, all that run on
this machine, or only `convert` and `convert_all`."""

_KINDS = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    date: "a date",
    os.PathLike: "a path",
    Iterable: "a list of texts",
    Mapping: "a dictionary",
}
"""The checked types, and their names in messages."""


_OPTION = re.compile(r"\{(\w+)(?:=(?:(True)|([0-9]+)|(\w+)))?\}")


def spell_options(text: str) -> str:
    """Spell options such as `{nest}`, `{split=year}` and `{force=True}` as `flag` does."""

    def spell(match: re.Match[str]) -> str:
        name, switch, number, word = match.groups()
        return flag(name, True if switch else int(number) if number else word)

    return _OPTION.sub(spell, text)


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a conversion.

    Attributes:
        name: Keyword, and attribute of the declaring class; the flag has hyphens instead of
            underscores.
        group: Heading in the help of a command.
        help: Description in one sentence; options in it are in the form of
            `spell_options`.
        accepts: Type of the keyword.
        decides: Whether the option affects the output.
        default: Value if the keyword is absent.
        where: Functions that take the option.
        parse: Function that converts the name and value of the keyword to the value of the
            attribute.
        choices: Allowed values, if there are only a few.
        flags: A long flag that differs from the keyword, short flags, or both.
        metavar: Placeholder for the value in help; N for a number.
        usually: Default behaviour, if the default value does not show it.
        more: Additional information for users of the library, in the same form.
        remember: Function that converts the value of the attribute to JSON for the fingerprint;
            values that give the same output have the same JSON.
        is_rare: Whether the help of commands leaves the option out; the docs describe it.
    """

    name: str
    group: Group
    help: str
    accepts: Any
    decides: bool
    default: Any = None
    where: Where = "documents"
    parse: Callable[[str, Any], Any] | None = None
    choices: Collection[str] | None = None
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    usually: str = ""
    more: str = ""
    remember: Callable[[Any], Any] | None = None
    is_rare: bool = False

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The accepted types."""
        is_union = get_origin(self.accepts) in (UnionType, Union)
        return get_args(self.accepts) if is_union else (self.accepts,)

    @property
    def is_switch(self) -> bool:
        """Whether the flag takes no value on the command line."""
        return self.accepts is bool

    @property
    def is_repeated(self) -> bool:
        """Whether the flag may be repeated."""
        return any(get_origin(kind) is Iterable for kind in self.kinds) and not self._takes_ids

    @property
    def is_number(self) -> bool:
        """Whether the value is a whole number, and never text."""
        return int in self.kinds and str not in self.kinds

    @property
    def _takes_ids(self) -> bool:
        return Iterable[int] in self.kinds

    @property
    def spellings(self) -> list[str]:
        """All flags, long ones first; the first is the documented flag."""
        flags = sorted(self.flags, key=lambda flag: not flag.startswith("--"))
        if flags and flags[0].startswith("--"):
            return flags
        return [f"--{self.name.replace('_', '-')}", *flags]

    @property
    def summary(self) -> str:
        """The description in one sentence, for users of the command line."""
        return spell_options(self.help)

    @property
    def description(self) -> str:
        """The whole description, for users of the library."""
        usually = f"If None, {self.usually}." if self.usually else ""
        return " ".join(filter(None, [self.summary, spell_options(self.more), usually]))

    def read(self, value: Any) -> Any:
        """Check the value of the keyword, and convert it to the value of the attribute.

        Raises:
            OptionError: The value has the wrong type or is not allowed.
        """
        value = self._check_type(value)
        if self.parse is not None:
            return self.parse(self.name, value)
        if self.choices is None or value is None or value in self.choices:
            return value
        raise none_of(self.choices, self.name, value)

    def _check_type(self, value: Any) -> Any:
        """Check a type; iterators become lists, and integers such as those of NumPy `int`."""
        kinds = [get_origin(kind) or kind for kind in self.kinds if kind is not type(None)]
        if (value is None and type(None) in self.kinds) or not _KINDS.keys() >= set(kinds):
            return value  # Named choices and recipes are checked when they are read.
        is_one = isinstance(value, str | Mapping) or not isinstance(value, Iterable)
        if Iterable in kinds and not is_one:
            value = list(value)
            if self._takes_ids and all(hasattr(part, "__index__") for part in value):
                return [operator.index(part) for part in value]
        if int in kinds and hasattr(value, "__index__") and not isinstance(value, bool):
            value = operator.index(value)
        if not any(_is_a(value, kind) for kind in kinds):
            expected = " or ".join(dict.fromkeys(_KINDS[kind] for kind in kinds))
            expected = expected.replace("texts", "ids") if self._takes_ids else expected
            raise OptionError(f"{flag(self.name)} is {value!r}; it must be {expected}")
        return value


def option(group: Group, help: str, /, default: Any = None, **entry: Any) -> Any:  # noqa: A002
    """Declare a field of a dataclass as an option.

    Args:
        group: Heading in the help of a command.
        help: Description in one sentence.
        default: Default of the field.
        entry: Other attributes of `Option`. `accepts` defaults to the type of the field; options
            under all headings but `Run` affect the output by default.
            `default_keyword` is the default of the keyword, if it differs from that of the field.
    """
    entry = {"decides": group != "Run", **entry, "group": group, "help": help}
    return dataclasses.field(default=default, metadata={"option": entry})


@cache
def entries(kind: type) -> tuple[Option, ...]:
    """List the options declared by a dataclass, in order.

    The result is cached: a conversion needs it 21 times, which would take a third of the time for
    converting a tiny dump.
    """
    hints = get_type_hints(kind)
    options = []
    for field in dataclasses.fields(kind):
        if entry := dict(field.metadata.get("option", ())):
            entry = {"accepts": hints[field.name], **entry, "name": field.name}
            entry["default"] = entry.pop("default_keyword", field.default)
            option = Option(**entry)
            if option.metavar is None and int in option.kinds:
                option = dataclasses.replace(option, metavar="N")
            literal = [kind_ for kind_ in option.kinds if get_origin(kind_) is Literal]
            if literal and option.choices is None:
                option = dataclasses.replace(option, choices=get_args(literal[0]))
            options.append(option)
    return tuple(options)


def none_of(choices: Iterable[str], name: str, value: object) -> OptionError:
    """Make the error for a value of an option that is none of its choices."""
    return OptionError(
        f"{flag(name)} is {value!r}; it must be one of: {', '.join(choices)}"
        + did_you_mean(value, choices)
    )


def contradiction(*names: str) -> OptionError:
    """Make the error for options that contradict each other."""
    flags = " and ".join(flag(name) for name in names)
    return OptionError(f"{flags} contradict each other; give one of them")


def lacks_field(subject: str, needed: str) -> OptionError:
    """Make the error for an option that needs a field that is left out."""
    return OptionError(
        f"{subject} needs {needed}, which {flag('fields')} or {flag('drop_fields')} leaves out"
    )


def _is_a(value: object, kind: Any) -> bool:
    if kind is Iterable:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    return isinstance(value, kind)


WHOLE = 1 << 64
"""The share that contains all questions. Shares are integers, in units of 1 / 2^64."""

_ID = re.compile(r"-?[0-9]{1,18}")
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)(b?)", re.IGNORECASE)


def at_least(least: int, greatest: int | None = None) -> Callable[[str, int | None], int | None]:
    """Make a check for whole numbers of at least `least` and, if given, at most `greatest`."""

    def check(name: str, value: int | None) -> int | None:
        if value is None or (value >= least and (greatest is None or value <= greatest)):
            return value
        expected = f"{least:,} or more" if greatest is None else f"{least:,} to {greatest:,}"
        raise OptionError(f"{flag(name)} is {value}; it must be {expected}")

    return check


def size(least: int, example: str) -> Callable[[str, str | int | None], int | None]:
    """Make a parser for sizes such as `500MB` and `1.5 GiB`, and for plain numbers of bytes."""

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
            minimum = f", at least {least:,} bytes" if least > 1 else ""
            raise OptionError(
                f"{flag(name)} is {value!r}; it must be a size such as {example}{minimum}"
            )
        return amount

    return read


def names(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    """Parse names, separated by commas or in a list, and return them without duplicates."""
    parts = [value] if isinstance(value, str) else value
    return tuple(dict.fromkeys(entry.strip() for part in parts for entry in part.split(",")))


def assignments(name: str, value: str | Mapping[str, Any] | Iterable[str] | None) -> dict[str, Any]:
    """Parse values by name, given as a dictionary or as texts in the form `NAME=VALUE`."""
    if isinstance(value, Mapping):
        return dict(value)
    texts = [value] if isinstance(value, str) else list(value or ())
    for text in texts:
        if "=" not in text:
            raise OptionError(f"{flag(name)} is {text!r}; it must be NAME=VALUE")
    return {key.strip(): text for key, _, text in (text.partition("=") for text in texts)}


def tags(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    """Parse tags and patterns; return them in lower case, sorted and without duplicates."""
    tag_names = names(name, value)
    for tag in tag_names:
        if not tag or re.search(r"[<>|\s\[\]]", tag):
            raise OptionError(
                f"{flag(name)} is {tag!r}; it must be a tag such as python, a pattern such as "
                "tensorflow*, or several separated by commas"
            )
    return tuple(sorted({tag.lower() for tag in tag_names}))


def point_in_time(name: str, value: str | date | None) -> str | None:
    """Convert a year, month, day or time to a day or a time (UTC) in the format of the dump."""
    if value is None:
        return None
    if isinstance(value, datetime) and value.tzinfo is None:
        return value.isoformat(timespec="milliseconds")
    text = str(value).strip().replace(" ", "T").removesuffix("Z")
    if re.fullmatch(r"\d{4}(-\d\d)?", text):
        text += "-01-01" if len(text) == len("2020") else "-01"
    try:
        if isinstance(value, datetime):
            return point_in_time(name, value.astimezone(UTC).replace(tzinfo=None))
        if not is_typed_date(text):
            raise ValueError
        datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise OptionError(
            f"{flag(name)} is {str(value)!r}; it must be a date in UTC, without an offset, such as "
            "2020, 2020-01-31 or 2020-01-31T12:00:00"
        ) from None
    return text


def end_of_period(name: str, value: str | date | None) -> str | None:
    """Convert a year, month or day to its last day, and a time (UTC) to the format of the dump."""
    text = str(value).strip()
    if re.fullmatch(r"\d{4}", text):
        return point_in_time(name, f"{text}-12-31")
    start = point_in_time(name, value)
    if start is not None and re.fullmatch(r"\d{4}-\d\d", text):
        year, month = map(int, text.split("-"))
        return f"{text}-{monthrange(year, month)[1]}"
    return start


def share(name: str, value: str | float | None) -> int | None:
    """Convert a share of the questions to an integer, in units of 1 / 2^64."""
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


def path(name: str, value: str | os.PathLike[str] | None) -> str | None:
    """Convert the path of a file or folder to a string; reject an empty path."""
    if value is None:
        return None
    if not (text := os.fspath(value)):
        raise OptionError(f"{flag(name)} is empty, perhaps from an unset variable; give a name")
    return text


@dataclass(frozen=True, slots=True)
class IdList:
    """A list of ids.

    Attributes:
        packed: The ids as 64-bit integers; empty if they are in a file.
        path: Path of a set of ids, which workers map; empty if the ids are in `packed`.
    """

    packed: bytes
    path: str = ""

    @property
    def ids(self) -> array[int]:
        """The ids, in ascending order."""
        return array("q", self.packed)

    def __str__(self) -> str:
        digest = hashlib.sha256(self.packed).hexdigest()[:12]
        return f"{len(self.ids):,} ids, {digest}"


def id_list(name: str, value: str | os.PathLike[str] | Iterable[int] | None) -> IdList | None:
    """Parse ids separated by commas, an iterable of ids, or a file with one id per line.

    In a file, blank lines and comments after `#` are ignored.
    """
    if value is None:
        return None
    if not isinstance(value, str | os.PathLike):
        texts = [str(id_).strip() for id_ in value]
        if wrong := [text for text in texts if not _ID.fullmatch(text)]:
            raise OptionError(
                f"{flag(name)} contains {wrong[0][:40]!r}; each id must be a number such as 1234"
            )
    elif isinstance(value, str) and all(_ID.fullmatch(id_.strip()) for id_ in value.split(",")):
        texts = value.split(",")
    else:
        texts = _read_ids(name, value)
    return IdList(array("q", sorted(set(map(int, texts)))).tobytes())


def _read_ids(name: str, value: str | os.PathLike[str]) -> list[str]:
    """Read a file with one id per line.

    Raises:
        OptionError: The file cannot be read, or a line is not an id.
    """
    file = path(name, value)
    assert file is not None
    rule = "each line must be an id such as 1234"
    try:
        lines = Path(file).read_text("utf-8-sig").splitlines()
    except OSError as error:
        raise OptionError(
            f"{flag(name)}: {file} cannot be read: {error.strerror}; give ids, or a file with one "
            "id per line"
        ) from error
    except UnicodeDecodeError as error:
        raise OptionError(f"{flag(name)}: {file} is not UTF-8 text; {rule}") from error
    texts = [line.partition("#")[0].strip() for line in lines]
    for number, text in enumerate(texts, 1):
        if text and not _ID.fullmatch(text):
            raise OptionError(f"{flag(name)}: {file}, line {number:,} is {text[:40]!r}; {rule}")
    return [text for text in texts if text]
