"""`so2docs convert`: a dump, or several, into files."""

from __future__ import annotations

import os
import sys
from typing import Any, get_args

import click

from so2docs.commands import EXAMPLES
from so2docs.commands.document_options import document_options
from so2docs.commands.terminal import check_report, say, shows_progress, tell, write_report
from so2docs.conversion import convert as convert_one
from so2docs.options.choices import SplitBy
from so2docs.options.sites import site_of
from so2docs.schema import TABLES
from so2docs.several import Conversion, convert_all, summary

_DUMP_EXTENSIONS = (".7z", ".zip", ".xml", ".xml.gz", ".xml.bz2", ".xml.xz", ".xml.zst")


@click.command(epilog=EXAMPLES)
@click.argument("paths", nargs=-1, required=True, type=click.Path(), metavar="DUMP [OUTPUT]")
@click.option(
    "--output-dir", metavar="DIR", help="Convert several DUMPs, each into DIR/SITE.jsonl.gz."
)
@click.option(
    "--site-field",
    metavar="NAME",
    help="Add the site's name to each document, as field NAME: ids are unique per site only.",
)
@click.option(
    "--split",
    metavar="SIZE|N",
    help="Files of at most SIZE, such as 1GB, or N files: questions-00000.jsonl.gz and so on.",
)
@click.option(
    "--split-by",
    type=click.Choice(get_args(SplitBy)),
    help="A file for each year or month of the questions: questions-2019-03.jsonl.gz and so on.",
)
@document_options
@click.option(
    "--site",
    metavar="HOST",
    help="Host name of the site, for addresses.  [default: that of the archive or folder]",
)
@click.option(
    "--jobs", "-j", type=click.IntRange(min=1), help="Worker processes.  [default: all cores]"
)
@click.option(
    "--spill-budget",
    metavar="SIZE",
    help="Keep this much of the spill uncompressed, which is faster.  [default: an eighth of the "
    "free memory, or half of the disk to spare]",
)
@click.option(
    "--work-dir",
    metavar="DIR",
    help="Folder for the spill, about 0.4 times the dump.  [default: the folder of the output]",
)
@click.option(
    "--keep-spill",
    is_flag=True,
    help="Keep the spill, so that another conversion need not read DUMP again.",
)
@click.option("--force", is_flag=True, help="Overwrite an existing output.")
@click.option("--restart", is_flag=True, help="Start over, whatever an interrupted conversion did.")
@click.option("--comments", metavar="FILE", help="Nest the comments of this Comments.xml.")
@click.option("--links", metavar="FILE", help="Nest the links of this PostLinks.xml.")
@click.option("--votes", metavar="FILE", help="Nest the counts of the votes of this Votes.xml.")
@click.option("--users", metavar="FILE", help="Add the names of users from this Users.xml.")
@click.option(
    "--report",
    metavar="FILE",
    help="Write the report as JSON to FILE; - is standard output. `so2docs verify` checks OUTPUT "
    "by it; OUTPUT is read once more, for its SHA-256.",
)
@click.option(
    "--card",
    is_flag=True,
    help="Write a README.md for Hugging Face and a manifest for `so2docs verify` beside the "
    "output. Reads DUMP once more, for its SHA-256.",
)
@click.option("--quiet", "-q", is_flag=True, help="No progress and no summary, only errors.")
@click.option("--debug", is_flag=True, help="Show a traceback with an error.")
def convert(
    *,
    paths: tuple[str, ...],
    output_dir: str | None,
    site_field: str | None,
    report: str | None,
    quiet: bool,
    debug: bool,
    **options: Any,
) -> int:
    """Convert DUMP into OUTPUT: one question a line, with its answers inside.

    DUMP is a Posts.xml, as it is or compressed (7z, zip, gzip, bzip2, xz, zstd), a folder with one,
    or - for standard input. An archive is not unpacked first.

    The name of OUTPUT says the format (.jsonl, .json, .parquet, .ravendbdump) and the compression
    (.gz, .zst); - is standard output, uncompressed. The default is questions.jsonl.gz. A file gets
    its name only when it is complete. Beside JSON lines goes a small .OUTPUT.index, which tells
    `so2docs show` where each question is. Strays, rows that no document can hold, go to a side
    file with the reason. Between its two passes the program keeps temporary files, the spill; after
    an interruption, the same command resumes from them.

    A question or answer stays if it passes all filters.

    Exit codes: 0 done, 1 the dump or a file failed, 2 wrong usage, 130 interrupted (Ctrl-C), 143
    terminated.
    """
    options["progress"] = shows_progress(quiet)
    options["notify"] = None if quiet else say
    options["manifest"] = report is not None
    if ":" in (options["recipe"] or ""):
        sys.path.insert(0, os.getcwd())  # As `python -m` does: a recipe of one's own stands there.
    tables = {name: options.pop(name) for name in TABLES}
    if output_dir is not None and any(tables.values()):
        raise click.UsageError("with --output-dir, tables are those with the posts: give --with")
    options["tables"] = tables
    if report == "-" and "-" in paths[1:]:
        raise click.UsageError("OUTPUT and --report cannot both go to standard output")
    check_report(report, [*paths, *filter(None, tables.values())])
    if output_dir is not None:
        done = _convert_all(paths, output_dir, site_field, quiet, options)
        write_report(report, [conversion.as_dict() for conversion in done])
        return int(any(conversion.error is not None for conversion in done))
    dump, output = _dump_and_output(paths)
    if site_field is not None:
        options["site_field"] = site_field, site_of(dump)
    one = convert_one(dump, output, **options)
    write_report(report, one.as_dict())
    if not quiet:
        tell(one)
    return 0


def _convert_all(
    paths: tuple[str, ...],
    output_dir: str,
    site_field: str | None,
    quiet: bool,
    options: dict[str, Any],
) -> list[Conversion]:
    """Several dumps, with a line for each as it ends and a table at the end."""

    def show(conversion: Conversion) -> None:
        if conversion.error is not None or not quiet:
            say(conversion)

    done = convert_all(paths, output_dir, site_field=site_field, when_done=show, **options)
    if not quiet:
        tell(f"\n{summary(done)}")
    return done


def _dump_and_output(paths: tuple[str, ...]) -> tuple[str, str | None]:
    """DUMP and OUTPUT; several dumps without a folder for their outputs are refused."""
    dump, output = paths[0], paths[1] if len(paths) > 1 else None
    if len(paths) > 2 or (output or "").lower().endswith(_DUMP_EXTENSIONS):
        raise click.UsageError("for several dumps, give a folder for the outputs: --output-dir DIR")
    return dump, output
