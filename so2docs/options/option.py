"""An entry of the table of options: all that is true of an option, said once."""

from __future__ import annotations

import dataclasses
import difflib
import operator
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from so2docs.errors import OptionError, flag

Group = Literal["Input", "Filters", "Documents", "Output", "Run"]
Decides = Literal["spill", "output", "run"]
"""What another value changes: what the first pass makes, only what is written, or neither."""

Where = Literal["documents", "files", "local", "iterator", "convert"]
"""Who takes an option: all that make documents; all that write files, too; what runs on this
machine; only `convert` and `convert_all`."""

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
"""Types that are checked, and what they are called."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a conversion.

    Attributes:
        name: The keyword; as a flag, with hyphens.
        attribute: Where its value is in the class that declares it.
        group: Under which heading the help of a command shows it.
        help: One sentence.
        accepts: Type of the keyword.
        decides: What another value changes.
        default: Value of the keyword if it is not given.
        where: Who takes it.
        parse: From name and value of the keyword to the value of the attribute.
        choices: Values that are allowed, if they have names.
        flags: Other flags that people type.
        metavar: What is shown for the value in help.
        usually: What happens without it, where the default does not say so.
        more: What else callers of the library should know.
        remember: From the value of the attribute to JSON that is the same for the same output.
    """

    name: str
    attribute: str
    group: Group
    help: str
    accepts: Any
    decides: Decides
    default: Any = None
    where: Where = "documents"
    parse: Callable[[str, Any], Any] | None = None
    choices: Callable[[], Collection[str]] | None = None
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    usually: str = ""
    more: str = ""
    remember: Callable[[Any], Any] | None = None

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types that it accepts."""
        is_union = get_origin(self.accepts) in (UnionType, Union)
        return get_args(self.accepts) if is_union else (self.accepts,)

    @property
    def is_switch(self) -> bool:
        """Whether it is given without a value on the command line."""
        return self.accepts is bool

    @property
    def is_repeated(self) -> bool:
        """Whether it may be given several times."""
        return any(get_origin(kind) is Iterable for kind in self.kinds)

    @property
    def description(self) -> str:
        """All of it, for callers of the library."""
        usually = f"If None, {self.usually}." if self.usually else ""
        return " ".join(filter(None, [self.help, self.more, usually]))

    def check(self, value: Any) -> Any:
        """Check the type of the keyword.

        Returns:
            The value, iterators as lists and numbers of other libraries as `int`.

        Raises:
            OptionError: It has another one.
        """
        kinds = [get_origin(kind) or kind for kind in self.kinds if kind is not type(None)]
        if (value is None and type(None) in self.kinds) or not _KINDS.keys() >= set(kinds):
            return value  # Choices are checked with their names.
        if Iterable in kinds and isinstance(value, Iterable) and not isinstance(value, str):
            value = list(value)
        if int in kinds and hasattr(value, "__index__") and not isinstance(value, bool):
            value = operator.index(value)
        if not any(_is_a(value, kind) for kind in kinds):
            expected = " or ".join(dict.fromkeys(_KINDS[kind] for kind in kinds))
            raise OptionError(f"{flag(self.name)} is {value!r}; it must be {expected}")
        return value

    def read(self, value: Any) -> Any:
        """The value of the attribute, from that of the keyword.

        Raises:
            OptionError: It is not allowed.
        """
        if self.choices is not None and value is not None and self.parse is None:
            return choose(self.name, value, self.choices())
        return value if self.parse is None else self.parse(self.name, value)

    def from_text(self, text: str) -> Any:
        """The value of the keyword, from text such as that of another program.

        Raises:
            OptionError: It has another type.
        """
        if str in self.kinds or get_origin(self.kinds[0]) is Literal:
            return text
        if self.is_switch and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if int in self.kinds:
            try:
                return int(text)
            except ValueError:
                pass
        return self.check(text)


def option(group: Group, help: str, decides: Decides, /, default: Any = None, **entry: Any) -> Any:  # noqa: A002
    """Declare a field of a dataclass as an option.

    Args:
        group: As the attributes of `Option`; likewise the following.
        help: One sentence.
        decides: What another value changes.
        default: Value of the field if nothing is given.
        entry: Further attributes of `Option`: `accepts` (the type of the field), `default_keyword`
            (its default), `name` (its name).
    """
    entry |= {"group": group, "help": help, "decides": decides}
    return dataclasses.field(default=default, metadata={"option": entry})


def entries(kind: type) -> list[Option]:
    """The options that a dataclass declares, in order."""
    hints = get_type_hints(kind)
    options = []
    for field in dataclasses.fields(kind):
        if entry := dict(field.metadata.get("option", ())):
            entry = {"name": field.name, "accepts": hints[field.name], **entry}
            entry["default"] = entry.pop("default_keyword", field.default)
            option = Option(attribute=field.name, **entry)
            literal = [kind_ for kind_ in option.kinds if get_origin(kind_) is Literal]
            if literal and option.choices is None:
                option = dataclasses.replace(option, choices=partial(get_args, literal[0]))
            options.append(option)
    return options


def choose(
    name: str,
    value: Any,
    choices: Collection[str],
    synonyms: Mapping[str, str] | None = None,
    hints: Mapping[str, str] | None = None,
) -> Any:
    """Check that a value is one of several names, or a synonym of one.

    Args:
        name: Name of the option.
        value: Its value.
        choices: The names.
        synonyms: Alternative names.
        hints: Advice by value that is not allowed.

    Raises:
        OptionError: The value is not allowed.
    """
    value = (synonyms or {}).get(value, value) if isinstance(value, str) else value
    if value in choices:
        return value
    raise OptionError(
        f"{flag(name)} is {value!r}; it must be one of: {', '.join(choices)}"
        + (f"; {hint}" if (hint := (hints or {}).get(value)) else did_you_mean(value, choices))
    )


def contradiction(*names: str) -> OptionError:
    """The error of options that cannot be given together."""
    flags = " and ".join(flag(name) for name in names)
    return OptionError(f"{flags} contradict each other; give one of them")


def did_you_mean(value: object, names: Iterable[str]) -> str:
    """A hint at the name that is most like what was given; empty if none is."""
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(value).lower(), by_lower, 1, 0.7)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""


def _is_a(value: object, kind: Any) -> bool:
    if kind is Iterable:
        return isinstance(value, list) and all(isinstance(part, str) for part in value)
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    return isinstance(value, kind)
