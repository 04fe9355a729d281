"""`so2docs convert`: a dump, or several, into files."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from so2docs.api.batch import Conversion, convert_all, summary
from so2docs.api.convert import convert as convert_one
from so2docs.commands import EXAMPLES
from so2docs.commands.options import (
    GroupedOption,
    command,
    given_keywords,
    quiet,
    table_options,
)
from so2docs.commands.terminal import say, shows_progress, tell
from so2docs.dump.kinds import PACKED
from so2docs.options.table import OF_CONVERT

_ENDS_OF_DUMPS = (".7z", ".zip", *(f".xml.{extension}" for extension in PACKED))


@command(EXAMPLES)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="DUMP [OUTPUT]")
@click.option(
    "--output",
    "-o",
    cls=GroupedOption,
    group="Output",
    metavar="OUTPUT",
    help="The same as OUTPUT after DUMP.",
)
@click.option(
    "--output-dir",
    cls=GroupedOption,
    group="Output",
    metavar="DIR",
    help="Convert several DUMPs, each into DIR/SITE.jsonl.gz.",
)
@click.option(
    "--update",
    cls=GroupedOption,
    group="Output",
    is_flag=True,
    help="With --output-dir, convert again what was made from another dump or with other options.",
)
@table_options(*OF_CONVERT, leave_out=("progress",))
@quiet
def convert(
    *,
    paths: tuple[str, ...],
    output: str | None,
    output_dir: str | None,
    update: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Convert DUMP into OUTPUT: one question a line, with its answers inside.

    DUMP is a Posts.xml, plain or compressed (7z, zip, gzip, bzip2, xz, zstd), a folder with one,
    or - for standard input. An archive is not unpacked first.

    The name of OUTPUT says the format (.jsonl, .json, .parquet, .ravendbdump) and the compression
    (.gz, .zst); - is standard output, uncompressed. The default is questions.jsonl.gz. A file gets
    its name only when it is complete. Next to JSON lines goes a small .OUTPUT.index, which tells
    `so2docs show` where each question is. Strays, rows that belong to no document, go to a side
    file with the reason. Between its two passes the program keeps temporary files, the spill; after
    an interruption, the same command resumes from them.

    With --output-dir, an output that is up to date is left; one that was made from another dump or
    with other options is an error, unless --update or --force converts it again.

    A question or answer stays if it passes all filters.

    Exit codes: 0 done, 1 the dump or a file failed, 2 wrong usage, 130 interrupted (Ctrl-C), 143
    terminated.
    """
    keywords = {**given_keywords(options), "progress": shows_progress(quiet)}
    if ":" in keywords.get("recipe", ""):
        sys.path.insert(0, os.getcwd())  # As `python -m` does: a recipe of one's own is there.
    if output_dir is not None:
        if output is not None:
            raise click.UsageError("--output and --output-dir contradict each other; give one")
        conversions = _convert_all(paths, output_dir, quiet, {**keywords, "update": update})
        return int(any(conversion.error is not None for conversion in conversions))
    if update:
        raise click.UsageError("--update is for --output-dir; --force overwrites one output")
    makes_folder = keywords.get("recipe") == "beir"
    given_paths = _dump_and_output(paths, output, makes_folder=makes_folder)
    report = convert_one(*given_paths, **keywords)
    if not quiet:
        tell(report)
    return 0


def _convert_all(
    paths: tuple[str, ...], output_dir: str, quiet: bool, keywords: dict[str, Any]
) -> list[Conversion]:
    """Several dumps, with a line for each as it ends and a table at the end."""

    def show(conversion: Conversion) -> None:
        if conversion.error is not None or not quiet:
            say(conversion)

    conversions = convert_all(paths, output_dir, when_done=show, **keywords)
    if not quiet:
        tell(f"\n{summary(conversions)}")
    return conversions


def _dump_and_output(
    paths: tuple[str, ...], output: str | None, *, makes_folder: bool
) -> tuple[str, str | None]:
    """DUMP and OUTPUT; several dumps without a folder for their outputs are refused."""
    dump, *others = paths
    if output is not None:
        others.append(output)
    is_dump = bool(others) and (
        others[0].lower().endswith(_ENDS_OF_DUMPS)
        or (os.path.isdir(others[0]) and not makes_folder)
    )
    if len(others) > 1 or is_dump:
        raise click.UsageError("for several dumps, give a folder for the outputs: --output-dir DIR")
    return dump, others[0] if others else None
