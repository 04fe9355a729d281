"""The help of the commands, which `make docs` writes to docs/cli.md."""

from __future__ import annotations

import click

from so2docs.cli import ALL_COMMANDS, cli


def commands() -> list[str]:
    """Return the names of all commands."""
    return list(ALL_COMMANDS)


def block(*path: str) -> str:
    """Return the help of a command in a fenced block.

    Args:
        path: The name of the command, and of a subcommand.
    """
    command: click.Command = cli
    context = click.Context(cli, info_name="so2docs", max_content_width=80, terminal_width=80)
    for name in path:
        assert isinstance(command, click.Group)
        subcommand = command.get_command(context, name)
        assert subcommand is not None
        command = subcommand
        context = click.Context(command, parent=context, info_name=name, terminal_width=80)
    return f"```console\n$ {context.command_path} --help\n{command.get_help(context)}\n```"
