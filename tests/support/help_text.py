"""The help of the commands, which `make docs` writes to docs/cli.md."""

from __future__ import annotations

import click

from so2docs.cli import ALL_COMMANDS, cli
from so2docs.commands.options import spellings
from so2docs.errors import naming_flags
from so2docs.options.option import Option, spell_options
from so2docs.options.table import OPTIONS


def commands() -> list[str]:
    """Return the names of all commands."""
    return list(ALL_COMMANDS)


def block(*path: str) -> str:
    """Return the help of a command in a fenced block.

    Args:
        path: The name of the command, and of a subcommand.
    """
    command: click.Command = cli
    names = cli.context_settings["help_option_names"]
    context = click.Context(
        cli,
        info_name="so2docs",
        max_content_width=80,
        terminal_width=78,
        help_option_names=names,
    )
    for name in path:
        assert isinstance(command, click.Group)
        subcommand = command.get_command(context, name)
        assert subcommand is not None
        command = subcommand
        context = click.Context(command, parent=context, info_name=name, terminal_width=78)
    return f"```console\n$ {context.command_path} --help\n{command.get_help(context)}\n```"


def rare_options() -> str:
    """Return a table of the options of `convert` that its help leaves out."""
    rare = [entry for entry in OPTIONS.values() if entry.is_rare]
    rows = (
        f"| `{_flag(entry)}` | {_text(entry)} |"
        for entry in sorted(rare, key=lambda entry: entry.name)
    )
    return "\n".join(["| option | meaning |", "|---|---|", *rows])


def _flag(entry: Option) -> str:
    return f"{entry.spellings[0]} {entry.metavar or ''}".rstrip()


def _text(entry: Option) -> str:
    with naming_flags(spellings()):
        default = entry.usually or (entry.default if entry.default not in (None, False) else "")
        text = " ".join(filter(None, [entry.summary, spell_options(entry.more)]))
    return f"{text} Default: {default}." if default != "" else text
