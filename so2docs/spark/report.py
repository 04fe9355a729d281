"""What a conversion on Spark did: a `Report` for each site, and their sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from so2docs.errors import So2docsError
from so2docs.report import Report


@dataclass(slots=True)
class SparkReport:
    """Counts, bytes and seconds of all sites.

    Attributes:
        sites: The report of each site that was converted, by name.
        finished: Names of the sites that an earlier run had finished.
        failures: Why the others were not converted, by name.
        seconds: Wall time.
    """

    sites: dict[str, Report] = field(default_factory=dict)
    finished: list[str] = field(default_factory=list)
    failures: dict[str, So2docsError] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def worker_peak_bytes(self) -> int:
        """Most resident memory of a task: of a Python worker and the processes it started.

        The heap of the executor.
        """
        return max((report.peak_memory_bytes for report in self.sites.values()), default=0)

    def total(self, dump: str = "all sites", output: str = "") -> Report:
        """The sum of the reports; of times, memory and processes, the most.

        Args:
            dump: What to call the dumps.
            output: What to call the folder.
        """
        result = Report(dump, output, files=0)
        for report in self.sites.values():
            result += report
            result.recipe = report.recipe
        result.seconds = self.seconds
        return result

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
        of_all = self.total()
        counts = {
            name: _counts(column) for name, column in [*self.sites.items(), ("in all", of_all)]
        }
        columns = [name for name in counts["in all"] if name != "filtered" or of_all.filtered]
        lines = [f"{'site':<{width}}" + "".join(f"{name:>13}" for name in columns)]
        for name, of_site in counts.items():
            lines.append(
                f"{name:<{width}}" + "".join(f"{of_site[column]:13,}" for column in columns)
            )
        lines += [f"{name} nested: {table}" for name, table in of_all.tables.items()]
        lines += [f"{name:<{width}}  finished before" for name in self.finished]
        lines += [f"{name:<{width}}  failed: {error}" for name, error in self.failures.items()]
        size = of_all.dump_bytes + sum(table.bytes for table in of_all.tables.values())
        rate = size / 1e6 / self.seconds if self.seconds else 0.0
        lines.append(
            f"{size / 1e6:,.1f} MB to {of_all.output_bytes / 1e6:,.1f} MB in "
            f"{self.seconds:.1f} s ({rate:.0f} MB/s), "
            f"at most {self.worker_peak_bytes / 2**20:.0f} MiB a Python worker"
        )
        return "\n".join(lines)


def _counts(report: Report) -> dict[str, int]:
    return {
        "rows": report.rows,
        "questions": report.questions,
        "answers": report.answers,
        "strays": sum(report.strays.values()),
        "other types": sum(report.other_types.values()),
        "filtered": report.filtered,
    }
