"""The report on flat tables, which accounts for every row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from so2docs.counts import MOST
from so2docs.plugin import Counts, plural
from so2docs.report import Printed, as_size, memory_line


@dataclass(slots=True)
class FlatTable(Counts):
    """Counts of a table; `rows` is the sum of `written`, `filtered`, `repeated` and all `strays`.

    Attributes:
        name: Name of the table.
        path: File or database of the table.
        rows: Number of rows in the dump.
        written: Number of rows written.
        filtered: Number of rows excluded by a filter.
        repeated: Number of rows left out of a database because another row has their `Id`.
        strays: Number of rows without a usable `Id`, and of malformed rows, by reason.
        misfits: Number of rows with a value in `Other`.
        repaired_characters: Number of characters replaced by U+FFFD.
        bytes: Size of the file in bytes; that of the database, which contains all tables.
        is_new: Whether this call wrote the table.
    """

    name: str
    path: str
    rows: int = 0
    written: int = 0
    filtered: int = 0
    repeated: int = 0
    strays: Counter[str] = field(default_factory=Counter)
    misfits: int = 0
    repaired_characters: int = 0
    bytes: int = 0
    is_new: bool = True

    @property
    def unaccounted(self) -> int:
        """Rows not accounted for; always 0."""
        return self.rows - self.written - self.filtered - self.repeated - self.strays.total()

    def __str__(self) -> str:
        parts = [plural(self.written, "row")]
        if self.filtered:
            parts.append(f"{self.filtered:,} filtered")
        if self.repeated:
            parts.append(f"{self.repeated:,} repeated")
        parts += [f"{count:,} {reason}" for reason, count in sorted(self.strays.items())]
        if self.misfits:
            parts.append(f"{self.misfits:,} with values in Other")
        state = "" if self.is_new else ", up to date"
        return f"{', '.join(parts)} -> {self.path} ({as_size(self.bytes)}{state})"


@dataclass(slots=True, repr=False)
class TablesReport(Printed, Mapping[str, FlatTable]):
    """The tables of a dump by name, in the order in which they are read.

    Attributes:
        folder: Folder of the tables.
        tables: Counts of each table, by name.
        jobs: Number of worker processes.
        seconds: Wall time in seconds.
        peak_memory_bytes: Peak resident memory, summed over all processes.
    """

    folder: str
    tables: dict[str, FlatTable] = field(default_factory=dict)
    jobs: int = field(default=1, metadata=MOST)
    seconds: float = field(default=0.0, metadata=MOST)
    peak_memory_bytes: int = field(default=0, metadata=MOST)

    def __getitem__(self, name: str) -> FlatTable:
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def is_new(self) -> bool:
        """Whether this call wrote any table."""
        return any(table.is_new for table in self.tables.values())

    def columns(self) -> dict[str, int | float]:
        """Return this dump's row of a table of several sites; a database counts once."""
        tables = self.tables.values()
        return {
            "tables": len(tables),
            "rows": sum(table.rows for table in tables),
            "written": sum(table.written for table in tables),
            "bytes": sum({table.path: table.bytes for table in tables}.values()),
            "seconds": self.seconds,
        }

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield a line for each table, then wall time and memory."""
        for name, table in self.tables.items():
            yield name, str(table)
        yield "time", f"{self.seconds:.2f} s ({plural(self.jobs, 'job')})"
        yield memory_line(self.peak_memory_bytes)
