"""Write a man page for each command: python packaging/man.py FOLDER.

The pages are made from the click commands. click-man is not used, because it omits
examples and lines that begin with a dot, and calls functions that click will remove.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from inspect import cleandoc
from pathlib import Path

import click

from so2docs import __version__
from so2docs.cli import COMMANDS, cli


def write(folder: Path) -> None:
    """Replace the man pages in a folder by one for each command, without dates."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.1"):
        path.unlink()
    for context in _contexts():
        lines = "\n".join(_lines(context))
        (folder / f"{_name(context)}.1").write_text(f"{lines}\n", encoding="utf-8")


def _contexts() -> Iterator[click.Context]:
    main = click.Context(cli, info_name="so2docs", **cli.context_settings)
    yield main
    for name in COMMANDS:
        if command := cli.get_command(main, name):
            yield click.Context(command, info_name=name, parent=main)


def _name(context: click.Context) -> str:
    return context.command_path.replace(" ", "-")


def _lines(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f'.TH "{_name(context).upper()}" 1 "" "so2docs {__version__}"'
    yield f".SH NAME\n{_plain(_name(context))} \\- {_plain(_summary(command)).rstrip('.')}"
    yield f".SH SYNOPSIS\n.B {_plain(context.command_path)}"
    yield _plain(" ".join(command.collect_usage_pieces(context)))
    yield f".SH DESCRIPTION\n{_paragraphs(command.help)}"
    options = (option for option in command.params if isinstance(option, click.Option))
    records = (option.get_help_record(context) for option in options)
    yield from _section("OPTIONS", (record for record in records if record))
    if isinstance(command, click.Group):
        yield from _section("COMMANDS", _commands(context, command))
    examples = re.findall(r"^  (.+)", command.epilog or "", re.MULTILINE)
    if examples:
        yield "\n".join([".SH EXAMPLES\n.nf", *map(_plain, examples), ".fi"])


def _commands(context: click.Context, group: click.Group) -> Iterator[tuple[str, str]]:
    for name in group.list_commands(context):
        if command := group.get_command(context, name):
            yield f"{_name(context)}-{name}(1)", _summary(command)


def _section(title: str, records: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f".SH {title}"
    for term, text in records:
        yield f".TP\n.B {_plain(term)}\n{_paragraphs(text)}"


def _summary(command: click.Command) -> str:
    return cleandoc(command.help or "").partition("\n\n")[0].replace("\n", " ")


def _paragraphs(text: str | None) -> str:
    return "\n.PP\n".join(_plain(part) for part in cleandoc(text or "").split("\n\n"))


def _plain(text: str) -> str:
    """Escape a text so that troff prints it unchanged, with hyphens that can be copied."""
    escaped = text.replace("\b\n", "").replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", escaped, flags=re.MULTILINE)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
