"""What `tables` did: counts of every row, and their views as text and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from so2docs.counts import Counts
from so2docs.report import as_size


@dataclass(slots=True)
class FlatTable:
    """A table that was written, or is up to date: `rows = written + filtered + strays`.

    Attributes:
        name: Which.
        path: Its file, folder or database.
        rows: Rows of the dump.
        written: Rows in the file.
        filtered: Rows that were left out on purpose.
        strays: Rows without a usable `Id`, and those that are not XML, by reason.
        misfits: Rows with something in `Other`.
        repaired_characters: Characters replaced by U+FFFD.
        files: Number of files; that of a database holds all tables.
        bytes: Their size.
        is_new: Whether it was written now.
    """

    name: str
    path: str
    rows: int = 0
    written: int = 0
    filtered: int = 0
    strays: dict[str, int] = field(default_factory=dict)
    misfits: int = 0
    repaired_characters: int = 0
    files: int = 0
    bytes: int = 0
    is_new: bool = True

    def add(self, counts: Counts, misfits: int, rows_written: int) -> None:
        """Add the counts of a chunk."""
        self.rows += counts.rows
        self.filtered += counts.filtered
        self.repaired_characters += counts.repaired
        self.misfits += misfits
        self.written += rows_written
        for reason, count in counts.strays.items():
            self.strays[reason] = self.strays.get(reason, 0) + count

    @property
    def unaccounted(self) -> int:
        """Rows of which nobody knows what became of them: none."""
        return self.rows - self.written - self.filtered - sum(self.strays.values())

    def __str__(self) -> str:
        parts = [f"{self.written:,} rows"]
        if self.filtered:
            parts.append(f"{self.filtered:,} filtered")
        parts += [f"{count:,} {reason}" for reason, count in sorted(self.strays.items())]
        if self.misfits:
            parts.append(f"{self.misfits:,} with values in Other")
        state = "" if self.is_new else ", up to date"
        files = f" in {self.files:,} files" if self.files > 1 else ""
        return f"{', '.join(parts)} -> {self.path}{files} ({as_size(self.bytes)}{state})"


@dataclass(slots=True)
class TablesReport(Mapping[str, FlatTable]):
    """The tables of a dump by name, in the order in which they were read.

    Attributes:
        folder: Where they are.
        tables: Each by its name.
        jobs: Worker processes.
        seconds: Wall time.
        peak_memory_bytes: Most resident memory of all processes together.
    """

    folder: str
    tables: dict[str, FlatTable] = field(default_factory=dict)
    jobs: int = 1
    seconds: float = 0.0
    peak_memory_bytes: int = 0

    def __getitem__(self, name: str) -> FlatTable:
        return self.tables[name]

    def __iter__(self) -> Any:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{name:<10} {table}" for name, table in self.tables.items()]
        lines.append(f"{'time':<10} {self.seconds:.2f} s")
        lines.append(f"{'memory':<10} {as_size(self.peak_memory_bytes)}")
        return "\n".join(lines)
