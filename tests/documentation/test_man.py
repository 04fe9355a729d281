"""The man pages have the help of each command and option."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from support.places import CHECKOUT

from so2docs.cli import COMMANDS, cli

BY_NAME = {
    name: cli.get_command(click.Context(cli, **cli.context_settings), name) for name in COMMANDS
}


@pytest.fixture
def pages(tmp_path: Path) -> dict[str, Path]:
    """The man page of each command, by the name of the command."""
    runpy.run_path(str(CHECKOUT / "packaging" / "man.py"))["write"](tmp_path / "man")
    return {path.stem: path for path in (tmp_path / "man").iterdir()}


def test_every_command_and_option_has_its_place(pages: dict[str, Path]) -> None:
    assert pages.keys() == {"so2docs", *(f"so2docs-{name}" for name in COMMANDS)}
    for name, command in BY_NAME.items():
        page = pages[f"so2docs-{name}"].read_text(encoding="utf-8").replace("\\-", "-")
        assert re.search(rf"^\.SH NAME\nso2docs-{name} - .*[^.]$", page, re.MULTILINE), name
        assert not re.search(r"^\.B [^-]", page.partition(".SH OPTIONS")[2], re.MULTILINE), name
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert re.search(rf"^\.B .*{option.opts[0]}\b", page, re.MULTILINE), (
                    name,
                    option.opts,
                )
        assert (".SH EXAMPLES\n.nf\n" in page) == bool(command.epilog), name


@pytest.mark.skipif(not shutil.which("man"), reason="no man on this system")
def test_nothing_of_the_help_is_lost(pages: dict[str, Path]) -> None:
    """troff would interpret lines that begin with a dot."""
    for name, command in BY_NAME.items():
        result = subprocess.run(
            ["man", "--warnings", "-E", "ascii", "-l", pages[f"so2docs-{name}"]],
            capture_output=True,
            text=True,
            check=True,
            env={"MANWIDTH": "1000", "PATH": "/usr/bin:/bin", "MAN_KEEP_FORMATTING": ""},
        )
        assert result.stderr == ""
        text = re.sub(r"\s|\x08", "", result.stdout)
        assert re.sub(r"\s|\x08", "", command.help or "") in text, name
