"""The options of comparisons and of the files of changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from so2docs.options.field_paths import parse_field_names
from so2docs.options.option import names
from so2docs.plugin import ANSWERS, OptionError, Shown, flag, like, option

Operation = Literal["added", "changed", "deleted"]


@dataclass(frozen=True, slots=True)
class ReplaceOptions:
    """Whether to replace existing files."""

    update: bool = like("update", "Replace files made from another input or with other options.")
    force: bool = like("force", "Overwrite existing files.")


def _operations(name: str, value: str | Iterable[str] | None) -> frozenset[str]:
    every = get_args(Operation)
    operations = names(name, every if value is None else value)
    for operation in operations or ("",):
        if operation not in every:
            raise OptionError(
                f"{flag(name)} is {operation!r}; it must be one or more of: {', '.join(every)}"
            )
    return frozenset(operations)


def _whole_fields(name: str, value: str | Iterable[str] | None) -> frozenset[str]:
    fields = parse_field_names(name, value or ())
    for field in fields:
        if "." in field.removeprefix(f"{ANSWERS}."):
            whole = field.split(".")[0]
            raise OptionError(f"{flag(name, field)}: name a whole field, such as {whole}")
    return frozenset(fields)


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """Options for comparing two outputs."""

    only: frozenset[str] = option(
        "Input",
        True,
        "Report only changes of these kinds: added, changed, deleted.",
        frozenset(get_args(Operation)),
        accepts=str | Iterable[Operation] | None,
        default_keyword=None,
        parse=_operations,
        metavar="NAMES",
        usually="all kinds are reported",
        remember=sorted,
    )
    ignore: frozenset[str] = option(
        "Input",
        True,
        "Ignore changes to these fields, such as ViewCount,Answers.CommentCount.",
        frozenset(),
        accepts=str | Iterable[str] | None,
        default_keyword=None,
        parse=_whole_fields,
        metavar="NAMES",
        more="Documents that differ only in these fields count as unchanged.",
        remember=sorted,
    )
    progress: Shown = like("progress")
