"""The command-line interface: the command group, and the exit code for each kind of exception."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

import click

import so2docs
from so2docs.commands import DEBUG, EXAMPLES, examples
from so2docs.commands.signals import raise_in_command
from so2docs.commands.terminal import say
from so2docs.errors import OptionError, So2docsError, did_you_mean, naming_flags
from so2docs.progress import listen, log_progress

EXIT_FAILED, EXIT_USAGE = 1, 2

COMMANDS = {
    "sample": ("commands.sample", "Write a small dump for trying out the other commands."),
    "inspect": ("extensions.inspection.inspect_command", "Describe a dump without converting it."),
    "convert": (
        "commands.convert",
        "Convert a dump into documents: questions with their answers.",
    ),
    "recipes": (
        "extensions.recipes.recipes_command",
        "List the recipes for data sets, with their settings.",
    ),
    "tables": (
        "extensions.tables.tables_command",
        "Write the tables of a dump as Parquet, CSV or a database.",
    ),
    "tags": (
        "extensions.tables.tags_command",
        "Write the tags of a dump with their excerpts and wikis.",
    ),
    "show": ("commands.show", "Show questions of an output by their ids."),
    "stats": ("extensions.statistics.stats_command", "Print statistics of an output."),
    "verify": ("extensions.cards.verify_command", "Check an output against its manifest."),
    "diff": ("extensions.changes.diff_command", "Write the changes between two outputs."),
    "sqlite": (
        "extensions.sqlite.sqlite_command",
        "Make an SQLite database with full-text search.",
    ),
    "serve": ("extensions.serve.serve_command", "Read an output or a database in a browser."),
    "mcp": (
        "extensions.serve.mcp_command",
        "Let a language model search and read a database.",
    ),
}
"""Module and short help of each command by name, in the order of the help.

The module has a function of the command's name.
"""

RARE_COMMANDS = {
    "card": (
        "extensions.cards.card_command",
        "Write a card for an output: Markdown for Hugging Face.",
    ),
    "completion": ("commands.completion", "Print a completion script for a shell."),
    "schema": ("extensions.cards.schema_command", "Print the JSON Schema of the documents."),
    "selftest": ("extensions.inspection.selftest_command", "Check this installation."),
    "spark": ("extensions.spark.spark_command", "Convert many dumps on Spark."),
}
"""Commands that the help only names."""

ALL_COMMANDS = COMMANDS | RARE_COMMANDS


def _module(name: str) -> Any:
    """Import the module of a command."""
    return import_module(f"so2docs.{ALL_COMMANDS[name][0]}")


def _refuse_empty(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Reject an empty value, which usually comes from an unset shell variable."""
    if value == "" or (isinstance(value, tuple) and "" in value):
        raise click.BadParameter(
            "it is empty, perhaps from an unset variable; give a value", context, parameter
        )
    return value


class _Commands(click.Group):
    """A command group that imports each command on demand.

    Each command needs a different part of the package.
    """

    def list_commands(self, context: click.Context) -> list[str]:
        return list(ALL_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in ALL_COMMANDS:
            return None
        command: click.Command = getattr(_module(name), name)
        command.short_help, command.hidden = ALL_COMMANDS[name][1], name in RARE_COMMANDS
        for parameter in command.params:
            parameter.callback = parameter.callback or _refuse_empty
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if name not in ALL_COMMANDS:
            names = ", ".join(ALL_COMMANDS)
            hint = did_you_mean(name, ALL_COMMANDS) or f"; the commands are: {names}"
            raise click.UsageError(f"there is no command {name!r}{hint}", context)
        from so2docs.commands.options import spellings

        context.with_resource(naming_flags(spellings()))
        resolved = super().resolve_command(context, arguments)
        raise_in_command()
        return resolved

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except (So2docsError, OSError):
            if context.meta.get(DEBUG):
                import traceback

                traceback.print_exc()
            raise


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"More commands: {', '.join(RARE_COMMANDS)}.\n\n{examples(EXAMPLES)}",
    invoke_without_command=True,
    no_args_is_help=True,
)
@click.option("--version", "-V", is_flag=True, help="Show the version and exit.")
@click.option(
    "--verbose", is_flag=True, help="With --version: also show the versions of dependencies."
)
@click.pass_context
def cli(context: click.Context, version: bool, verbose: bool) -> None:
    """Turn a Stack Exchange data dump into questions with their answers inside."""
    if version:
        from so2docs.parse import core

        click.echo(f"so2docs {so2docs.__version__} ({core.describe()})")
        if verbose:
            for name, value in _module("selftest").describe_installation().items():
                click.echo(f"{name}: {value}")
        context.exit()
    if context.invoked_subcommand is None:
        raise click.UsageError("give a command; so2docs --help lists all commands", context)


def run(arguments: list[str] | None = None) -> int:
    """Run the command-line interface, and print errors.

    Returns:
        Exit code: 0 success, 1 failure, 2 usage error, 3 some of several sites failed.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed. The message says how to continue, or is empty.
        Terminated: SIGTERM was received. The message is as for `KeyboardInterrupt`.
    """
    try:
        with listen(say), log_progress(not sys.stderr.isatty()):
            return cli.main(arguments, prog_name="so2docs", standalone_mode=False) or 0
    except click.exceptions.Abort as abort:
        # Older versions of click keep the caught exception only as the context.
        end = abort.__cause__ or abort.__context__
        raise end if isinstance(end, KeyboardInterrupt) else KeyboardInterrupt() from abort
    except click.ClickException as error:
        with suppress(OSError):
            error.show()
        return error.exit_code
    except BrokenPipeError:
        return EXIT_FAILED  # The reader has closed the pipe.
    except So2docsError as error:
        say(error)
        return EXIT_USAGE if isinstance(error, OptionError) else EXIT_FAILED
    except OSError as error:
        from so2docs.store.disk import explain_os_error

        say(explain_os_error(error))
        return EXIT_FAILED
