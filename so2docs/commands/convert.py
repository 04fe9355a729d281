"""`so2docs convert`: convert one or more dumps to files."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from so2docs.api.convert import convert as convert_one
from so2docs.commands import EXAMPLES
from so2docs.commands.options import add_options, command, given_keywords, output_dir, quiet
from so2docs.commands.terminal import tell
from so2docs.dump.names import PACKED
from so2docs.options.table import OF_CONVERT
from so2docs.registry import find_hook

_ENDS_OF_DUMPS = (".7z", ".zip", *(f".xml.{extension}" for extension in PACKED))


@command(EXAMPLES)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="DUMP [OUTPUT]")
@output_dir
@add_options(OF_CONVERT)
@quiet
def convert(
    *,
    paths: tuple[str, ...],
    output_dir: str | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Convert DUMP into OUTPUT: one question per line, with its answers inside.

    DUMP is a Posts.xml, plain or compressed (7z, zip, gzip, bzip2, xz, zstd), a folder with one, a
    URL, or - for standard input. The name of OUTPUT sets the format (.jsonl, .json, .parquet,
    .ravendbdump) and the compression (.gz, .zst); the default is questions.jsonl.gz, and - is
    standard output. Rows that belong to no document (strays) go to a side file.

    After an interruption, the same command resumes. An output that is up to date is left unchanged;
    one made from another input or with other options is an error without --update or --force.

    Exit codes: 0 done, 1 a dump cannot be converted or a file cannot be written, 2 usage error, 3
    some of several dumps failed and the others are done, 130 interrupted (Ctrl-C), 143 terminated.
    docs/options.md describes rare options.
    """
    keywords = given_keywords(options)
    if ":" in keywords.get("recipe", ""):
        # Find recipes in the current folder; at the end, so that no file there replaces a module.
        sys.path.append(os.getcwd())
    if output_dir is not None:
        work_on_several = find_hook("work on several sites")
        return int(work_on_several(convert_one, paths, output_dir, quiet=quiet, **keywords))
    keywords["progress"] = not quiet
    report = convert_one(*_dump_and_output(paths), **keywords)
    if not quiet:
        tell(report)
    return 0


def _dump_and_output(paths: tuple[str, ...]) -> tuple[str, str | None]:
    """Return DUMP and OUTPUT; reject several dumps without a folder for their outputs."""
    dump, *outputs = paths
    if len(outputs) > 1 or (outputs and outputs[0].lower().endswith(_ENDS_OF_DUMPS)):
        raise click.UsageError("for several dumps, give a folder for the outputs: --output-dir DIR")
    return dump, outputs[0] if outputs else None
