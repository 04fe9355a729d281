"""Make command-line options from the table of options, and group them in the help."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import click
from click.shell_completion import CompletionItem

from so2docs.commands import DEBUG, examples
from so2docs.errors import naming_flags
from so2docs.options.option import Option
from so2docs.options.table import GROUPS, OPTIONS
from so2docs.progress import log

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class GroupedOption(click.Option):
    """An option that the help lists under a group heading."""

    def __init__(self, *declarations: Any, group: str, **settings: Any) -> None:
        self.group = group
        super().__init__(*declarations, **settings)


class GroupedCommand(click.Command):
    """A command whose help groups the options under headings."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options to the help, each group under its heading."""
        groups: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Options", *GROUPS)}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if isinstance(parameter, click.Option) and record is not None:
                groups[getattr(parameter, "group", "Options")].append(record)
        for name, records in groups.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)


def command(
    lines: str | None = None, **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a command from a function, with `--debug`, and examples at the end of the help."""

    def decorate(function: Callable[..., Any]) -> click.Command:
        epilog = lines and examples(lines)
        made = click.command(cls=GroupedCommand, epilog=epilog, **settings)(function)
        made.params.append(_DEBUG)
        return made

    return decorate


class _Value(click.ParamType):  # type: ignore[type-arg]
    """A parameter type for an entry of the table of options, which also checks the value."""

    def __init__(self, entry: Option) -> None:
        self.entry = entry
        self.name = entry.name

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str | None:
        return None if self.entry.choices is None else f"[{'|'.join(self.entry.choices)}]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        with suppress(ValueError):  # The library explains wrong values.
            return int(value) if self.entry.is_number else value
        return value

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        if self.entry.choices is not None:
            before, comma, last = incomplete.rpartition(",")
            names = (name for name in self.entry.choices if name.startswith(last))
            return [CompletionItem(f"{before}{comma}{name}") for name in names]
        kind = {"FILE": "file", "DIR": "dir"}.get(self.entry.metavar or "")
        # Offer nothing if the value is neither a file nor a folder: for an empty item, zsh would
        # insert the description, `_`.
        return [] if kind is None else [CompletionItem(incomplete, type=kind)]


def table_option(name: str, help: str | None = None, **settings: Any) -> Decorator:  # noqa: A002
    """Make the Click option for an entry of the table of options.

    Args:
        name: Name of the entry.
        help: Help text for this command; if None, the text in the table.
        settings: Other arguments of `click.option`.
    """
    return _click_option(OPTIONS[name], help, **settings)


def _click_option(entry: Option, help: str | None = None, **settings: Any) -> Decorator:  # noqa: A002
    has_default = entry.default not in (None, False, ())
    with naming_flags(spellings()):
        text = entry.summary if help is None else help
        if entry.usually and help is None:
            text = f"{text}  [default: {entry.usually}]"
    settings = {
        "cls": GroupedOption,
        "group": entry.group,
        "help": text,
        **({"is_flag": True} if entry.is_switch else {"type": _Value(entry)}),
        **({"multiple": True} if entry.is_repeated else {}),
        **({"metavar": entry.metavar} if entry.metavar else {}),
        **({"hidden": True} if entry.is_rare else {}),
        **({"default": entry.default, "show_default": True} if has_default else {}),
        **settings,
    }
    return click.option(*entry.spellings, entry.name, **settings)


def add_options(options: dict[str, Option]) -> Decorator:
    """Make a decorator that adds the Click options for options of the library, except `progress`.

    Commands have `--quiet` instead.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for name, entry in reversed(options.items()):
            command = command if name == "progress" else _click_option(entry)(command)
        return command

    return decorate


def _remember_debug(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    context.meta[DEBUG] = value


def _be_quiet(context: click.Context, parameter: click.Parameter, value: bool) -> bool:
    log.setLevel(logging.WARNING if value else logging.INFO)
    return value


quiet = click.option(
    "--quiet",
    "-q",
    cls=GroupedOption,
    group="Run",
    is_flag=True,
    callback=_be_quiet,
    help="Print only warnings and errors, no progress and no summary.",
)
_DEBUG = GroupedOption(
    ["--debug"],
    group="Run",
    is_flag=True,
    expose_value=False,
    hidden=True,
    callback=_remember_debug,
    help="Show the traceback of an error.",
)


@cache
def spellings() -> dict[str, str]:
    """Return the documented flag of each option, by the flag that is spelled like its keyword."""
    return {f"--{name.replace('_', '-')}": entry.spellings[0] for name, entry in OPTIONS.items()}


output_dir = click.option(
    "--output-dir",
    cls=GroupedOption,
    group="Output",
    metavar="DIR",
    help="Read several DUMPs, and write the files of each SITE into DIR.",
)


def given_keywords(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that the user gave, as keywords."""
    return {name: value for name, value in options.items() if value not in (None, ())}
