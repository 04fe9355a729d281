"""`so2docs spark`: start a Spark session, and convert dumps with it."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from so2docs.errors import ClusterError
from so2docs.extensions.spark.jobs import find_cause
from so2docs.options.table import taken_by
from so2docs.plugin import (
    add_options,
    check_report,
    command,
    given_keywords,
    quiet,
    say,
    table_option,
    tell,
    write_report,
)
from so2docs.processes.python import find_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RESUMES = "the same command converts the sites that are not finished"

_ON_FOLDERS = ("force", "update")
"""Options that concern only the folders of sites."""

_REMOTE = "sc://"
"""URL scheme of Spark Connect servers."""


@command(
    """
    so2docs spark 'dumps/*/Posts.xml' out/ --master 'local[*]'
    cat out/beer.stackexchange.com/part-*.jsonl.gz | zcat | head -1
    """
)
@click.argument("dumps", nargs=-1, required=True)
@click.argument("output")
@click.option(
    "--master",
    metavar="URL",
    help="The Spark master, such as local[4], spark://host:7077, or sc://host:15002 for Spark "
    "Connect.  [default: as configured in Spark, or all cores of this machine]",
)
@click.option(
    "--conf",
    multiple=True,
    metavar="NAME=VALUE",
    help="A Spark setting. Repeatable.",
)
@table_option("force", "Reconvert finished sites.")
@table_option("update", "Reconvert finished sites if their dump or the options changed.")
@add_options(taken_by("documents", "files"))
@table_option("report")
@quiet
def spark(
    dumps: tuple[str, ...],
    output: str,
    *,
    master: str | None,
    conf: tuple[str, ...],
    report: str | None,
    quiet: bool,
    **options: Any,
) -> int:
    """Convert DUMPS (paths, URLs or quoted patterns) on Spark to one folder per site in OUTPUT.

    Each dump is a Posts.xml, plain or compressed (7z, zip, gzip, bzip2, xz, zstd), or a folder with
    one. Each site is one task, with spark.task.cpus processes.

    The part files of a folder hold the lines that convert writes for the dump; in formats other
    than JSON lines, each part file is a complete file. Finished sites are left unchanged if they
    are up to date. The command needs PySpark (pip install pyspark) and Java 17 or later; for Spark
    Connect, the client is enough (pip install pyspark-client).

    A question or answer is kept if it passes all filters. --limit and --sample-size apply to each
    dump, and --nest reads the tables next to each dump.

    Exit codes: 0 done, 1 an error, 2 usage error, 3 some of several sites failed.
    """
    from so2docs.extensions.sites.tasks import exit_code, summary
    from so2docs.extensions.spark.api import convert
    from so2docs.extensions.spark.sites import check_options

    check_report(report, list(dumps))
    source = dumps[0] if len(dumps) == 1 else list(dumps)
    kwargs = given_keywords(options)
    # Check the options first, because Spark takes seconds to start and prints warnings.
    check_options(source, **{name: kwargs[name] for name in kwargs if name not in _ON_FOLDERS})
    with _end_at_once_if_interrupted():
        session = start_session(master, conf, quiet=quiet)
        try:
            results = convert(session, source, output, **kwargs)
        except Exception:
            with suppress(Exception):  # The error of the conversion is the one to report.
                session.stop()
            raise
        session.stop()
    write_report(report, [result.as_dict() for result in results])
    if not quiet:
        tell(summary(results))
    for result in results:
        if result.error is not None or result.note:
            say(result)
    return exit_code(results)


@contextmanager
def _end_at_once_if_interrupted() -> Iterator[None]:
    """Say how to continue after a signal, and end without the exit handlers of PySpark.

    They retry a server that does not answer for a quarter of an hour. Handlers run in reverse
    order, so that the one registered here comes first. A JVM ends when this process ends.
    """
    # py4j logs interrupted calls, with a traceback, to the root logger.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        yield
    except BaseException as end:
        if isinstance(end, Exception):
            raise
        number = signal.SIGINT if isinstance(end, KeyboardInterrupt) else signal.SIGTERM
        atexit.register(os._exit, 128 + number)
        raise type(end)(_RESUMES) from None


def start_session(
    master: str | None = None, settings: tuple[str, ...] = (), *, quiet: bool = False
) -> SparkSession:
    """Start a Spark session, or use the session of `spark-submit`.

    Args:
        master: URL of the Spark master; the configured one if None.
        settings: Spark settings, as `NAME=VALUE`.
        quiet: Hide Spark's progress bar.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ClusterError(
            "so2docs spark needs PySpark: pip install pyspark (450 MB), or the much smaller "
            "pyspark-client for a Spark Connect server"
        ) from None
    # so2docs passes no pandas objects to PySpark, so this warning does not apply.
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    builder = SparkSession.builder.appName("so2docs")
    if master is not None and master.startswith(_REMOTE):
        builder = builder.remote(master)
    elif "SPARK_REMOTE" not in os.environ:
        _check_java()
        # Make executors on this machine use this Python and its packages.
        os.environ.setdefault("PYSPARK_PYTHON", find_python())
        if master is not None and master.startswith("local"):
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # Do not listen on the network.
        shows_progress_bar = str(not quiet and sys.stderr.isatty()).lower()
        builder = builder.config("spark.ui.showConsoleProgress", shows_progress_bar)
        builder = builder.config("spark.log.level", "ERROR")
        builder = builder if master is None else builder.master(master)
    for setting in settings:
        name, _, value = setting.partition("=")
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        reason = find_cause(str(error) or type(error).__name__)
        raise ClusterError(f"Spark does not start: {reason}") from error


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        where = f"JAVA_HOME ({home}) contains none" if home else "there is no java in the PATH"
        raise ClusterError(
            f"Spark needs Java 17 or later, but {where}; install Java, for example "
            "openjdk-17-jre-headless, or set JAVA_HOME"
        )
