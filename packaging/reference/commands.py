"""The commands, which `make docs` writes to docs/cli.md with links to their options."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from reference.options import every_option, links

from so2docs.cli import COMMANDS, cli

_SHARED = {"help", "quiet", "debug"}


def reference() -> str:
    """Return a section for each command: its usage, its description and its options."""
    return "\n\n".join(part for name in COMMANDS for part in _section(name))


def _section(name: str) -> Iterator[str]:
    context = click.Context(cli, info_name="so2docs", terminal_width=200)
    command = cli.get_command(context, name)
    assert command is not None
    context = click.Context(command, parent=context, info_name=name, terminal_width=200)
    yield f"## so2docs {name}"
    yield f"`{' '.join([context.command_path, *command.collect_usage_pieces(context)])}`"
    yield from (" ".join(part.split()) for part in (command.help or "").split("\n\n"))
    options = [param for param in command.params if isinstance(param, click.Option)]
    own = [param for param in options if param.name not in {*every_option(), *_SHARED}]
    if own:
        yield "\n".join(f"- `{param.opts[0]}`: {_help(param)}" for param in own)
    shared = [param.name for param in options if param.name in every_option()]
    if shared:
        yield f"Options: {links([name for name in shared if name])}."


def _help(option: click.Option) -> str:
    return re.sub(r"\s+", " ", option.help or "")
