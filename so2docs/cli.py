"""The command line: options in, exit codes out. The work is `so2docs.convert`."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import click

import so2docs
from so2docs.errors import OptionError, So2docsError
from so2docs.spark.cli import spark

EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = 1, 2, 130

_EPILOG = """\b
Example:
  so2docs convert Posts.xml questions.jsonl.gz
  zcat questions.jsonl.gz | head -1
"""


@click.group(context_settings={"help_option_names": ["-h", "--help"]}, epilog=_EPILOG)
@click.version_option(so2docs.__version__, prog_name="so2docs")
def cli() -> None:
    """Questions with their answers inside, from the Posts.xml of a Stack Exchange dump."""


@cli.command(epilog=_EPILOG)
@click.argument("dump")
@click.argument("output", default="questions.jsonl.gz")
@click.option(
    "--jobs", "-j", type=click.IntRange(min=1), help="Worker processes.  [default: all cores]"
)
@click.option(
    "--work-dir",
    metavar="DIR",
    help="Folder for the spill, about 0.4 times the dump; that of the output if not given.",
)
@click.option("--keep-spill", is_flag=True, help="Keep the spill after a finished conversion.")
@click.option("--force", is_flag=True, help="Overwrite an existing output.")
@click.option("--restart", is_flag=True, help="Start over, whatever an interrupted conversion did.")
@click.option(
    "--answers-by",
    type=click.Choice(["id", "votes"]),
    default="id",
    show_default=True,
    help="Order of the answers. votes: the accepted one, then falling score.",
)
@click.option(
    "--level",
    type=click.IntRange(0, 9),
    default=2,
    show_default=True,
    help="Of the gzip compression: 0 to 3 fast (ISA-L), 4 to 9 small and slow (zlib).",
)
@click.option(
    "--skip-malformed", is_flag=True, help="Put rows that are not XML with the strays and go on."
)
@click.option("--report", metavar="FILE", help="Write the report as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no summary, only errors.")
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
def convert(
    dump: str, output: str, report: str | None, quiet: bool, debug: bool, **options: Any
) -> None:
    """Convert DUMP (a Posts.xml) into OUTPUT: one question a line, with its answers inside.

    OUTPUT is compressed by gzip unless its name ends in .jsonl; - is standard output, uncompressed.
    It gets its name only when it is whole. Rows that no document holds go to a side file with the
    reason. The same command after an interruption goes on where it was.
    """
    shows_progress = not quiet and sys.stderr.isatty()
    done = so2docs.convert(dump, output, progress=shows_progress, **options)
    if report is not None:
        Path(report).write_text(json.dumps(done.as_dict(), indent=2) + "\n", encoding="utf-8")
    if not quiet:
        click.echo(str(done), err=True)


cli.add_command(spark)


def _stop(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    signal.signal(signal.SIGTERM, _stop)
    debug = "--debug" in sys.argv
    try:
        sys.exit(cli.main(arguments, standalone_mode=False) or 0)
    except click.exceptions.Abort:
        _interrupted()
    except KeyboardInterrupt:
        _interrupted()
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
        click.echo(f"so2docs: {error}", err=True)
        sys.exit(EXIT_USAGE if isinstance(error, OptionError) else EXIT_FAILED)
    except OSError as error:
        if debug:
            traceback.print_exc()
        name = f"{error.filename}: " if error.filename else ""
        click.echo(f"so2docs: {name}{error.strerror or error}", err=True)
        sys.exit(EXIT_FAILED)


def _interrupted() -> None:
    click.echo("so2docs: interrupted; run the same command again to go on", err=True)
    sys.exit(EXIT_INTERRUPTED)
