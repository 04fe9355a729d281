"""The folders of the sites: cleared before a run, explained on failure, marked when finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Literal

from so2docs.errors import DumpError, OutputError
from so2docs.passes.first_pass import add_up
from so2docs.report import Report, TableCounts
from so2docs.schema import TABLES
from so2docs.sources import storage
from so2docs.spark import nesting
from so2docs.spark.gathering import Stock
from so2docs.spark.nesting import Written
from so2docs.spark.plan import Site

OnError = Literal["stop", "skip"]

SUCCESS = "_SUCCESS"
ERROR = "_error.xml"
_OURS = ("part-", nesting.STRAYS, "_strays", nesting.TEMPORARY, SUCCESS, ERROR)


class Failures:
    """Dumps that cannot be converted: the first ends all, or each is noted.

    Attributes:
        found: The errors by the name of the site.
    """

    def __init__(self, on_error: OnError = "stop") -> None:
        self.found: dict[str, DumpError] = {}
        self._stops = on_error == "stop"

    def add(self, name: str, folder: str, error: DumpError) -> None:
        """Save the bytes that show what is wrong with a dump; raise the error, or note it."""
        if folder and error.excerpt is not None:
            try:
                storage.make_folder(folder)
                storage.write(storage.join(folder, ERROR), error.excerpt)
                error.excerpt_path = storage.join(folder, ERROR)
            except OSError:
                pass
        if self._stops:
            raise error
        self.found[name] = error


def check(sites: Sequence[Site], *, force: bool) -> None:
    """Refuse to overwrite what is finished, unless forced, and what is not ours."""
    for site in sites:
        try:
            names = storage.listed(site.folder)
        except NotADirectoryError:
            raise OutputError(f"{site.folder}: is a file; choose another output") from None
        if SUCCESS in names and not force:
            raise OutputError(
                f"{site.folder}: is finished; choose another output, or overwrite with --force"
            )
        if others := [name for name in names if not name.startswith(_OURS)]:
            raise OutputError(
                f"{site.folder}: holds {others[0]}, which so2docs did not write; "
                "choose another output, or move it away"
            )


def clear(sites: Iterable[Site]) -> None:
    """Make the folders of the sites, without what an earlier run left in them."""
    for site in sites:
        try:
            # _SUCCESS goes first: what is left without it counts as unfinished.
            names = sorted(storage.listed(site.folder), key=lambda name: name != SUCCESS)
            for name in names:
                storage.remove(storage.join(site.folder, name))
            storage.make_folder(site.folder)
        except OSError as error:
            raise OutputError(
                f"{site.folder}: cannot be written: {error.strerror or error}"
            ) from error


def refused(site: Site, written: Sequence[Written]) -> DumpError | None:
    """What `strict` found wrong with a dump at last, whose folder is then cleared."""
    errors = [(one.part or 0, one.error) for one in written if one.error is not None]
    if not errors:
        return None
    clear([site])
    return min(errors, key=itemgetter(0))[1]


def finish(site: Site, stock: Stock, written: Sequence[Written]) -> Report:
    """Check that every row of a dump went somewhere, and mark its folder as finished."""
    report = Report(site.dump.path, site.folder, core=site.options.core)
    report.dump_bytes = site.dump.size
    if stock.ended is not None:
        report.dump_bytes = stock.ended.size
        report.repaired_characters = stock.ended.repaired
    add_up(stock.of_posts, report)
    report.tables = _of_tables(site, stock, report)
    for one in written:
        report.questions += one.tally.questions
        report.answers += one.tally.answers
        report.filtered += one.tally.filtered
        report.output_bytes += one.size
        for reason, count in one.tally.strays.items():
            report.strays[reason] = report.strays.get(reason, 0) + count
        for name, counts in one.tally.tables.items():
            report.tables[name].add(counts)
    for name, table in report.tables.items():
        if not TABLES[name].kind:  # The merge counts no users.
            table.nested = table.rows - sum(table.strays.values())
    report.strays = dict(sorted(report.strays.items()))
    report.check()
    report.files = sum(bool(one.size) for one in written)
    if any(one.has_strays for one in written):
        report.strays_path = storage.join(site.folder, f"{nesting.STRAYS}-*")
    storage.remove(storage.join(site.folder, nesting.TEMPORARY))
    storage.write(storage.join(site.folder, SUCCESS), b"")
    return report


def _of_tables(site: Site, stock: Stock, report: Report) -> dict[str, TableCounts]:
    """What the first stage found in the tables."""
    found = {}
    for name, dump in site.tables.items():
        strays: Counter[str] = Counter()
        counts = found[name] = TableCounts(bytes=dump.size)
        for tally in stock.of(TABLES[name].sequence).values():
            counts.rows += tally["rows"]
            report.repaired_characters += tally["repaired"]
            strays.update(tally["strays"])
        counts.strays = dict(sorted(strays.items()))
    return found
