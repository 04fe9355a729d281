"""A recipe: a function from a document to records, and its properties."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from so2docs.errors import did_you_mean
from so2docs.options.option import end_of_period
from so2docs.options.transform import METADATA, Transform
from so2docs.plugin import OptionError, flag

if TYPE_CHECKING:
    from so2docs.extensions.json_schema import Schema
    from so2docs.plugin import Output

Document = dict[str, Any]
Record = dict[str, Any]
Function = Callable[..., Iterable[Record]]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a recipe: `--set NAME=VALUE`, or `settings={NAME: VALUE}`.

    Attributes:
        name: Name for users, and keyword of the function.
        help: Description in one sentence.
        type: Type of the value: `bool`, `int` or `str`; or `date`, whose values become texts, as
            those of `as_of`.
        default: Value of a setting that is not given.
        usually: Description of the default, if the value does not show it.
        least: Smallest allowed number.
        choices: Allowed texts, if there are only a few.
        identify: Function that converts the value to JSON for the record of an output.
    """

    name: str
    help: str
    type: type[bool] | type[int] | type[str] | type[date]
    default: bool | int | str | None = None
    usually: str = ""
    least: int | None = None
    choices: tuple[str, ...] = ()
    identify: Callable[[Any], Any] = lambda value: value

    @property
    def description(self) -> str:
        """The default and the sentence, for lists of settings."""
        default = "false" if self.default is False else self.default
        return f"{self.name} [{self.usually or default}]: {self.help}"

    def read(self, value: object) -> bool | int | str:
        """Check a value, or convert it from text.

        Raises:
            ValueError: The value is not allowed; the message says what is.
        """
        if self.type is bool:
            value = {"true": True, "false": False}.get(str(value).lower(), value)
        elif self.type is int and isinstance(value, str):
            with suppress(ValueError):
                value = int(value)
        elif self.type is int and hasattr(value, "__index__") and not isinstance(value, bool):
            value = operator.index(value)
        elif self.type is date:
            with suppress(OptionError):
                return end_of_period(self.name, value)  # type: ignore[arg-type, return-value]
        is_sound = isinstance(value, self.type) and isinstance(value, bool) == (self.type is bool)
        is_allowed = not self.choices or value in self.choices
        if is_sound and is_allowed and (self.least is None or value >= self.least):  # type: ignore[operator]
            return value  # type: ignore[return-value]
        kinds = {bool: "true or false", int: "a whole number", str: "text"}
        kinds[date] = "a date in UTC, such as 2020, 2020-01-31 or 2020-01-31T12:00:00"
        expected = " or ".join(self.choices) or kinds[self.type]
        if self.least is not None:
            expected += f" of {self.least:,} or more"
        raise ValueError(f"is {value!r}; it must be {expected}")


BEST = Setting("best", "Use only the answer with the highest score.", bool, False)
QUERIES_UNTIL = Setting(
    "queries_until",
    "With --as-of DATE, make the corpus of questions asked until DATE, and queries of questions "
    "asked later, until this date.",
    date,
    usually="no date",
)


class SetFile(NamedTuple):
    """A file of a recipe that writes several, as a configuration that `datasets` loads.

    Attributes:
        record: `TypedDict` of the records.
        configuration: Name of the configuration.
        split: Name of the split.
    """

    record: type
    configuration: str
    split: str = "train"


@dataclass(frozen=True, slots=True)
class Recipe(Transform):
    """A function from a document to records.

    The attributes of `Transform` describe the records, and what the function needs.

    Attributes:
        name: Name for users.
        function: Function that takes a document, a dictionary that it may change, and returns its
            records in order. The same document must always give the same records. Records have JSON
            types.
        record: `TypedDict` of the records; the text of an `Annotated` field is its meaning. None if
            unknown, or for several files. Parquet needs it.
        fields: Fields of the document that the recipe reads, such as `Title` or `Answers.Body`.
        min_answers: Number of answers below which a document gives no record, so that the function
            is not called.
        answers: The answers that documents keep: all, only the one with the highest score, only the
            accepted one, or none, if the recipe does not read any.
        without_banner: Whether to remove the note "Possible Duplicate", which old dumps have at the
            start of questions.
        lower_headings: Number of levels by which headings in bodies are lowered, so that they are
            below those of the recipe.
        settings: Settings that are passed to the function as keywords. With `BEST`, the documents
            have only the best answer instead. With `QUERIES_UNTIL`, documents also come from later
            questions: see `later_until`.
        variants: Attributes to replace if a setting has a value, by `NAME=VALUE`, or by `accepted`
            if this option is given.
        check: Function that takes the settings that differ from the defaults before the conversion,
            without `BEST`, and raises `OptionError` for values that are not allowed.
        files: A `SetFile` for each file by name, if there are several; None for a file without
            records of its own.
        write: For several files, the function that writes all but the README, given the path of
            the temporary file of records and the files by name; returns the number of records.
        about: First part of the text of the README of several files.
        has_metadata: Whether records keep the column `metadata`.
        summary: Description of a record in a few words.
        tasks: Task categories for cards, from https://huggingface.co/tasks.
    """

    name: str
    function: Function
    record: type | None = None
    fields: tuple[str, ...] = ()
    min_answers: int = 0
    answers: Literal["all", "best", "accepted", "none"] = "all"
    without_banner: bool = False
    lower_headings: int = 0
    settings: tuple[Setting, ...] = ()
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    check: Callable[..., object] | None = None
    write: Callable[[str, Mapping[str, Output]], int] | None = None
    about: str = ""
    has_metadata: bool = True
    summary: str = ""
    tasks: tuple[str, ...] = ()

    @property
    def schema(self) -> Schema | None:
        """JSON Schema of a record; None if unknown."""
        if self.record is None:
            return None
        from so2docs.extensions.json_schema import describe_record

        schema = describe_record(self.record)
        if not self.has_metadata:
            schema["properties"].pop(METADATA, None)
            schema["required"] = [name for name in schema["required"] if name != METADATA]
        return schema

    @property
    def needs_html(self) -> bool:
        """Whether the HTML of bodies is changed before it is converted to another form."""
        return self.without_banner or self.lower_headings > 0

    @property
    def settings_by_name(self) -> dict[str, Setting]:
        """The settings by name."""
        return {setting.name: setting for setting in self.settings}

    def read_settings(self, texts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings that differ from the defaults, in the order of their declaration.

        Args:
            texts: Values by name, as text or with their type.

        Raises:
            OptionError: The recipe does not have a setting, or does not allow its value.
        """
        known = self.settings_by_name
        for name, value in texts.items():
            if name not in known:
                has = f"it has: {', '.join(known)}" if known else "it has no settings"
                raise OptionError(
                    f"{flag('settings', f'{name}={value}')}: recipe {self.name} has no such "
                    f"setting; {has}{did_you_mean(name, known)}"
                )
        values = {}
        for name, setting in known.items():
            if texts.get(name) is None:
                continue
            try:
                value = setting.read(texts[name])
            except ValueError as error:
                raise OptionError(f"{flag('settings')} {name} of {self.name} {error}") from None
            if value != setting.default:
                values[name] = value
        return values
