"""The command line: the group of the commands, and exceptions -> exit codes."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import NoReturn

import click

import so2docs
from so2docs.commands.completion import completion
from so2docs.commands.convert import EPILOG, EXIT_FAILED, convert
from so2docs.commands.diff import diff
from so2docs.commands.patch import patch
from so2docs.commands.schema import schema
from so2docs.commands.selftest import selftest
from so2docs.commands.serve import serve
from so2docs.commands.show import show
from so2docs.commands.spark import spark
from so2docs.commands.sqlite import sqlite
from so2docs.commands.stats import stats
from so2docs.commands.terminal import say
from so2docs.commands.verify import verify
from so2docs.errors import RESUMES, OptionError, So2docsError
from so2docs.posts import core

EXIT_USAGE, EXIT_INTERRUPTED, EXIT_TERMINATED = 2, 130, 143


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOG,
    invoke_without_command=True,
    no_args_is_help=True,
)
@click.option("--version", is_flag=True, help="Show the version and exit.")
@click.option("--verbose", is_flag=True, help="With --version: also of all that it builds on.")
@click.pass_context
def cli(context: click.Context, version: bool, verbose: bool) -> None:
    """Questions with their answers inside, from the Posts.xml of a Stack Exchange dump."""
    if version:
        click.echo(f"so2docs {so2docs.__version__} ({core.built()} core)")
        if verbose:
            from so2docs.commands.installation import installation

            for name, value in installation().items():
                click.echo(f"{name}: {value}")
        context.exit()
    if context.invoked_subcommand is None:
        raise click.UsageError("name a command; so2docs --help lists them", context)


_DATA = (convert, show, stats, diff, patch, schema, verify, sqlite, serve)
for _command in (*_DATA, spark, selftest, completion):
    cli.add_command(_command)


class _Terminated(BaseException):
    """SIGTERM; no `except Exception` may catch it by mistake."""


def _stop(number: int, frame: object) -> None:
    raise _Terminated


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong usage, 130 or 143 interrupted."""
    signal.signal(signal.SIGTERM, _stop)
    debug = "--debug" in sys.argv
    try:
        sys.exit(cli.main(arguments, prog_name="so2docs", standalone_mode=False) or 0)
    except click.exceptions.Abort as abort:
        _interrupted(advice=str(abort.__cause__ or ""))
    except _Terminated as terminated:
        _interrupted("terminated", EXIT_TERMINATED, str(terminated))
    except KeyboardInterrupt as interrupt:
        _interrupted(advice=str(interrupt))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader has what it wanted. Nothing may be written to the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(EXIT_FAILED)
    except So2docsError as error:
        if debug:
            traceback.print_exc()
        say(error)
        sys.exit(EXIT_USAGE if isinstance(error, OptionError) else EXIT_FAILED)
    except OSError as error:
        if debug:
            traceback.print_exc()
        name = f"{error.filename}: " if error.filename else ""
        say(f"{name}{error.strerror or error}")
        sys.exit(EXIT_FAILED)


def _interrupted(
    how: str = "interrupted", code: int = EXIT_INTERRUPTED, advice: str = ""
) -> NoReturn:
    say(f"{how}; {advice or RESUMES}")
    sys.exit(code)
