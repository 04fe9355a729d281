"""What a conversion on Spark did: a `Report` for each site, and their sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from so2docs.errors import DumpError
from so2docs.report import Report, TableCounts

_COUNTS = ("rows", "questions", "answers", "strays", "other types", "filtered")


@dataclass(slots=True)
class SparkReport:
    """Counts, bytes and seconds of all sites.

    Attributes:
        sites: The report of each site that was converted, by name.
        finished: Names of the sites that an earlier run had finished.
        failures: What is wrong with the dumps of the others, by name.
        seconds: Wall time.
    """

    sites: dict[str, Report] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    failures: dict[str, DumpError] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def worker_peak_bytes(self) -> int:
        """Most resident memory of a task: of a Python worker and the processes it started.

        Beside it stands the heap of the executor.
        """
        return max((report.peak_memory_bytes for report in self.sites.values()), default=0)

    def total(self, dump: str = "all sites", output: str = "") -> Report:
        """The sum of the reports.

        Args:
            dump: What to call the dumps.
            output: What to call the folder.
        """
        reports = list(self.sites.values())
        return Report(
            dump,
            output,
            rows=sum(report.rows for report in reports),
            questions=sum(report.questions for report in reports),
            answers=sum(report.answers for report in reports),
            strays=_sum(report.strays for report in reports),
            other_types=_sum(report.other_types for report in reports),
            filtered=sum(report.filtered for report in reports),
            fabricated=sum(report.fabricated for report in reports),
            repaired_characters=sum(report.repaired_characters for report in reports),
            dump_bytes=sum(report.dump_bytes for report in reports),
            output_bytes=sum(report.output_bytes for report in reports),
            tables=_tables(reports),
            files=sum(report.files for report in reports),
            seconds=self.seconds,
            first_pass_seconds=max((report.first_pass_seconds for report in reports), default=0.0),
            second_pass_seconds=max(
                (report.second_pass_seconds for report in reports), default=0.0
            ),
            jobs=max((report.jobs for report in reports), default=1),
        )

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        return {
            "sites": {name: report.as_dict() for name, report in self.sites.items()},
            "finished": self.finished,
            "failures": {name: str(error) for name, error in self.failures.items()},
            "seconds": self.seconds,
            "worker_peak_bytes": self.worker_peak_bytes,
        }

    def __str__(self) -> str:
        width = max(map(len, [*self.sites, *self.finished, *self.failures, "site"]))
        rows = [*self.sites.items(), ("in all", self.total())]
        counts = {name: _counts(report) for name, report in rows}
        shown = [name for name in _COUNTS if name != "filtered" or self.total().filtered]
        lines = [f"{'site':<{width}}" + "".join(f"{name:>13}" for name in shown)]
        for name, of_site in counts.items():
            lines.append(f"{name:<{width}}" + "".join(f"{of_site[one]:13,}" for one in shown))
        lines += [f"{name} nested: {table}" for name, table in self.total().tables.items()]
        lines += [f"{name:<{width}}  finished before" for name in self.finished]
        lines += [f"{name:<{width}}  failed: {error}" for name, error in self.failures.items()]
        total = self.total()
        size = total.dump_bytes + sum(table.bytes for table in total.tables.values())
        rate = size / 1e6 / self.seconds if self.seconds else 0.0
        lines.append(
            f"{size / 1e6:,.1f} MB to {total.output_bytes / 1e6:,.1f} MB in "
            f"{self.seconds:.1f} s ({rate:.0f} MB/s), "
            f"at most {self.worker_peak_bytes / 2**20:.0f} MiB a Python worker"
        )
        return "\n".join(lines)


def _counts(report: Report) -> dict[str, int]:
    strays, others = sum(report.strays.values()), sum(report.other_types.values())
    counts = (report.rows, report.questions, report.answers, strays, others, report.filtered)
    return dict(zip(_COUNTS, counts, strict=True))


def _tables(reports: Iterable[Report]) -> dict[str, TableCounts]:
    found: dict[str, TableCounts] = {}
    for report in reports:
        for name, table in report.tables.items():
            total = found.setdefault(name, TableCounts())
            total.rows += table.rows
            total.bytes += table.bytes
            total.add({"nested": table.nested, "filtered": table.filtered, **table.strays})
    return found


def _sum(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for some in counts:
        found.update(some)
    return dict(sorted(found.items()))
