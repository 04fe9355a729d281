"""`so2docs completion`: print a completion script for a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from so2docs.plugin import command


@command(
    """
    so2docs completion bash > ~/.local/share/bash-completion/completions/so2docs
    so2docs completion zsh > "${fpath[1]}/_so2docs"
    so2docs completion fish > ~/.config/fish/completions/so2docs.fish
    """
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]), metavar="SHELL")
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and values of so2docs.

    SHELL is bash, zsh or fish.
    """
    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(context.find_root().command, {}, "so2docs", "_SO2DOCS_COMPLETE").source()
    click.echo(script)
