"""The command-line interface: the command group, and the exit code for each kind of exception."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

import so2docs
from so2docs.commands import DEBUG, EXAMPLES, examples
from so2docs.commands.signals import raise_in_command
from so2docs.commands.terminal import say, tell
from so2docs.errors import OptionError, So2docsError, did_you_mean, naming_flags
from so2docs.progress import listen, log_progress
from so2docs.registry import CAPABILITIES, explain_missing, module_of_command

EXIT_FAILED, EXIT_USAGE = 1, 2
EXIT_CLOSED_PIPE = 141
"""The reader of standard output closed it; 128 + SIGPIPE, as for programs in C."""

_OF_CORE = {
    "sample": "Write a small dump for trying out the other commands.",
    "convert": "Convert a dump into documents: questions with their answers.",
}
COMMANDS = _OF_CORE | {
    name: line for capability in CAPABILITIES.values() for name, line in capability.commands.items()
}
"""Line in the help for each command by name, in the order of the help."""


def _module(name: str) -> Any:
    """Import the module of a command."""
    module = import_module(module_of_command(name) or f"so2docs.commands.{name}")
    # Exclude imported objects from collections, above all from the last one: this saves 20 ms.
    gc.freeze()
    return module


def _refuse_empty(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """Reject an empty value, which usually comes from an unset shell variable."""
    if value == "" or (isinstance(value, tuple) and "" in value):
        raise click.BadParameter(
            "is empty, perhaps from an unset variable; give a value", context, parameter
        )
    return value


@contextmanager
def _end_quietly() -> Iterator[None]:
    """End the command if the reader of standard output has closed it; click would exit with 1."""
    try:
        yield
    except BrokenPipeError:
        raise click.exceptions.Exit(EXIT_CLOSED_PIPE) from None


class _Commands(click.Group):
    """A command group that imports each command on demand.

    Each command needs a different part of the package.
    """

    def list_commands(self, context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = getattr(_module(name), name)
        command.short_help = COMMANDS[name]
        for parameter in command.params:
            parameter.callback = parameter.callback or _refuse_empty
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if name not in COMMANDS:
            names = ", ".join(COMMANDS)
            hint = did_you_mean(name, COMMANDS) or f"; the commands are: {names}"
            raise click.UsageError(f"there is no command {name!r}{hint}", context)
        from so2docs.commands.options import spellings

        context.with_resource(naming_flags(spellings()))
        resolved = super().resolve_command(context, arguments)
        raise_in_command()
        return resolved

    def make_context(self, *arguments: Any, **settings: Any) -> click.Context:
        with _end_quietly():
            return super().make_context(*arguments, **settings)

    def invoke(self, context: click.Context) -> Any:
        try:
            with _end_quietly():
                return super().invoke(context)
        except (So2docsError, OSError):
            if context.meta.get(DEBUG):
                import traceback

                traceback.print_exc()
            raise


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples(EXAMPLES),
    invoke_without_command=True,
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
            from so2docs.commands.installation import describe_installation

            for name, value in describe_installation().items():
                click.echo(f"{name}: {value}")
        context.exit()
    if context.invoked_subcommand is None:
        if not verbose:
            tell(context.get_help())
            context.exit(EXIT_USAGE)
        raise click.UsageError("give a command; so2docs --help lists all commands", context)


def run(arguments: list[str] | None = None) -> int:
    """Run the command-line interface, and print errors.

    Returns:
        Exit code: 0 success, 1 failure, 2 usage error, 3 some of several sites failed, 141 the
        reader of standard output closed it.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed. The message says how to continue, or is empty.
        Terminated: SIGTERM was received. The message is as for `KeyboardInterrupt`.
    """
    try:
        with listen(lambda _, text: say(text)), log_progress(not sys.stderr.isatty()):
            return cli.main(arguments, prog_name="so2docs", standalone_mode=False) or 0
    except click.exceptions.Abort as abort:
        # Older versions of click keep the caught exception only as the context.
        end = abort.__cause__ or abort.__context__
        raise end if isinstance(end, KeyboardInterrupt) else KeyboardInterrupt() from abort
    except click.ClickException as error:
        say(_explain_usage(error))
        return error.exit_code
    except So2docsError as error:
        say(error)
        return EXIT_USAGE if isinstance(error, OptionError) else EXIT_FAILED
    except ModuleNotFoundError as error:
        say(explain_missing(error))
        return EXIT_FAILED
    except OSError as error:
        from so2docs.errors import convert_error

        say(convert_error(error))
        return EXIT_FAILED


def _explain_usage(error: click.ClickException) -> str:
    """Put an error of click into the form of `So2docsError`: one line that ends with advice."""
    context = getattr(error, "ctx", None)
    text = " ".join(error.format_message().split()).rstrip(".")
    text = text[:1].lower() + text[1:]
    return text if context is None or ";" in text else f"{text}; see {context.command_path} --help"
