"""The options of comparisons and of the files of changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from so2docs.options.field_paths import parse_field_names
from so2docs.plugin import ANSWERS, OptionError, Shown, flag, like, option


@dataclass(frozen=True, slots=True)
class ReplaceOptions:
    """Whether to replace existing files."""

    update: bool = like("update", "Replace files made from another input or with other options.")
    force: bool = like("force", "Overwrite existing files.")


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

    ignore: frozenset[str] = option(
        "Input",
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
