"""What a conversion did: one object, and its views as text, JSON and HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from so2docs.counts import FILTERED, NESTED, Counts
from so2docs.errors import InternalError, flag, spell_options
from so2docs.escape import for_html

_WITHOUT_POST = "_without_post"
_ALARMING = 3


@dataclass(slots=True)
class TableCounts:
    """Counts of the rows of a table other than the posts, by result.

    Attributes:
        rows: Rows of the table.
        nested: Rows inside the documents; of users, those that a document could name.
        filtered: Rows of posts that were left out on purpose.
        strays: Rows that no document holds, by reason.
        bytes: Size of its file.
        spill_bytes: What it takes of the spill.
        seconds: Wall time of reading it, of this session only.
    """

    rows: int = 0
    nested: int = 0
    filtered: int = 0
    strays: dict[str, int] = field(default_factory=dict)
    bytes: int = 0
    spill_bytes: int = 0
    seconds: float = 0.0

    def add(self, counts: Mapping[str, int]) -> None:
        """Add what the merge counted: `nested`, `filtered`, and strays by reason."""
        strays = Counter(self.strays) + Counter(counts)
        self.nested += strays.pop(NESTED, 0)
        self.filtered += strays.pop(FILTERED, 0)
        self.strays = dict(sorted(strays.items()))

    @property
    def without_post(self) -> int:
        """Rows whose post is in no document, nor left out on purpose: some are in every dump."""
        return sum(self.strays[reason] for reason in self.strays if reason.endswith(_WITHOUT_POST))

    def __str__(self) -> str:
        filtered = f", filtered {self.filtered:,}" if self.filtered else ""
        without_post = self.without_post
        missing = f", {without_post:,} of {self.rows:,} rows have no post" if without_post else ""
        reasons = {
            reason: count
            for reason, count in self.strays.items()
            if not reason.endswith(_WITHOUT_POST)
        }
        strays = f", strays {_by_name(reasons)}" if reasons else ""
        return f"{self.nested:,} of {self.rows:,}{filtered}{missing}{strays}"


@dataclass(slots=True)
class Report:
    """Counts, bytes and seconds of one conversion.

    Attributes:
        dump: Name of the dump.
        output: Name of the output.
        rows: Rows of the dump.
        questions: Documents written.
        answers: Answers nested in them.
        strays: Rows that no document holds, by reason.
        other_types: Rows of other post types, by name.
        filtered: Questions and answers that the filters left out.
        dropped: Posts and comments that `drop_users` or `drop_posts` names, which are among the
            filtered ones of their tables.
        recipe: The recipe that made records of the documents; None if they were written.
        records: Records that it made.
        without_record: Documents of which it made none.
        fabricated: Rows that the publisher made up, by their ids, in documents or among the strays.
        repaired_characters: Characters that XML forbids, replaced by U+FFFD.
        strays_path: Side file with the strays; None without strays.
        index_path: The index next to the output, or None.
        dump_bytes: Size of the dump, decompressed.
        file_bytes: Size of the file that it is in; 0 if it is in none.
        output_bytes: Size of the output, of all files together.
        files: Number of files.
        first_file: Name of the first of them, where the output is split; None otherwise.
        last_file: Name of the last one.
        spill_bytes: Size of the spill at its largest.
        spill_compressed_bytes: Of that, blocks that are compressed.
        seconds: Wall time, of this session only if an earlier one was interrupted.
        first_pass_seconds: Of that, reading the dump and the tables.
        second_pass_seconds: Of that, nesting and writing.
        peak_memory_bytes: Most resident memory, summed over all processes; 0 if not known.
        jobs: Worker processes.
        resumed: Whether an interrupted conversion was continued.
        core: Which core turned rows into posts, `compiled` or `python`.
        tables: What became of the rows of the tables that were asked for, by table.
        manifest: What `so2docs.verify` needs; None unless it was asked for.
    """

    dump: str
    output: str
    rows: int = 0
    questions: int = 0
    answers: int = 0
    strays: dict[str, int] = field(default_factory=dict)
    other_types: dict[str, int] = field(default_factory=dict)
    filtered: int = 0
    dropped: int = 0
    recipe: str | None = None
    records: int | None = None
    without_record: int | None = None
    fabricated: int = 0
    repaired_characters: int = 0
    strays_path: str | None = None
    index_path: str | None = None
    dump_bytes: int = 0
    file_bytes: int = 0
    output_bytes: int = 0
    files: int = 1
    first_file: str | None = None
    last_file: str | None = None
    spill_bytes: int = 0
    spill_compressed_bytes: int = 0
    seconds: float = 0.0
    first_pass_seconds: float = 0.0
    second_pass_seconds: float = 0.0
    peak_memory_bytes: int = 0
    jobs: int = 1
    resumed: bool = False
    core: str = "python"
    tables: dict[str, TableCounts] = field(default_factory=dict)
    manifest: dict[str, Any] | None = None

    def add(self, counts: Counts) -> None:
        """Add rows and what became of them."""
        self.rows += counts.rows
        self.questions += counts.questions
        self.answers += counts.answers
        self.filtered += counts.filtered
        self.dropped += counts.dropped
        self.repaired_characters += counts.repaired
        if self.recipe is not None:
            self.records = (self.records or 0) + counts.records
            self.without_record = (self.without_record or 0) + counts.without_record
        self.strays = dict(sorted((counts.strays + Counter(self.strays)).items()))
        other_types = counts.other_types + Counter(self.other_types)
        self.other_types = dict(sorted(other_types.items()))
        for name, of_table in counts.tables.items():
            self.tables[name].add(of_table)

    def check(self) -> None:
        """Raise `InternalError` unless every row of the dump went somewhere."""
        placed = (
            self.questions
            + self.answers
            + sum(self.strays.values())
            + sum(self.other_types.values())
            + self.filtered
        )
        self._check(self.dump, self.rows, placed)
        for name, table in self.tables.items():
            placed = table.nested + table.filtered + sum(table.strays.values())
            self._check(f"{self.dump} ({name})", table.rows, placed)

    def _check(self, name: str, rows: int, placed: int) -> None:
        if placed != rows:
            raise InternalError(
                f"{name}: {rows:,} rows were read but {placed:,} accounted for; "
                "this is a defect of so2docs, please report it"
            )

    def warnings(self) -> Iterator[str]:
        """Tables that come from another dump than the posts, by their rows."""
        for name, table in self.tables.items():
            if table.without_post * _ALARMING > table.rows:
                yield (
                    f"{name}: {table.without_post:,} of {table.rows:,} rows have no post; is the "
                    "table of the same site, and as old as the posts?"
                )

    def has_strays(self) -> bool:
        """Whether there is any row, of any table, that no document holds."""
        return any(self.strays.values()) or any(
            any(table.strays.values()) for table in self.tables.values()
        )

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Report:
        """The report that `as_dict` was called on."""
        tables = {name: TableCounts(**counts) for name, counts in values["tables"].items()}
        return cls(**{**values, "tables": tables})

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        return asdict(self)

    def lines(self) -> Iterator[tuple[str, str]]:
        """Label and value of each line of the summary."""
        yield "rows", f"{self.rows:,}"
        hint = "" if self.questions or not self.filtered else "; the filters left none of them"
        yield "questions", f"{self.questions:,}{hint}"
        yield "answers nested", f"{self.answers:,}"
        yield (
            "strays",
            _by_name(self.strays) + (f" -> {self.strays_path}" if self.strays_path else ""),
        )
        yield "other types", _by_name(self.other_types)
        if self.filtered:
            yield "filtered", f"{self.filtered:,}"
        if self.dropped:
            yield "dropped", f"{self.dropped:,} of the listed users and posts"
        if self.records is not None:
            none = f" ({self.without_record:,} questions gave none)" if self.without_record else ""
            yield f"records ({self.recipe})", f"{self.records:,}{none}"
        for name, table in self.tables.items():
            if name == "users":  # Documents repeat them: nobody counts how often.
                strays = f", strays {_by_name(table.strays)}" if table.strays else ""
                yield "users read", f"{table.rows:,}{strays}"
            else:
                yield f"{name} nested", str(table)
        if self.fabricated:
            hint = spell_options(
                f"ids above 1,000,000,000; {flag('drop_fabricated', True)} leaves them out"
            )
            yield "made up", f"{self.fabricated:,} ({hint})"
        yield "repaired characters", f"{self.repaired_characters:,}"
        packed = f" of XML in {as_size(self.file_bytes)}" if self._is_packed else ""
        yield "dump", f"{as_size(self.dump_bytes)}{packed}  {self.dump}"
        yield "output", f"{as_size(self.output_bytes)}  {self._files()}"
        if self.index_path:
            yield "index", self.index_path
        compressed = as_size(self.spill_compressed_bytes)
        yield "spill", f"{as_size(self.spill_bytes)} ({compressed} compressed)"
        yield "time", f"{self.seconds:.2f} s ({self._rate()}{self._jobs()}, {self.core} core)"
        if self.peak_memory_bytes:
            yield "peak memory", f"{self.peak_memory_bytes / 2**20:.0f} MiB in all processes"

    @property
    def _is_packed(self) -> bool:
        return 0 < self.file_bytes != self.dump_bytes

    def _files(self) -> str:
        """Names of the first and the last file, and their number."""
        if self.first_file is None:
            return self.output
        if self.files == 1:
            return self.first_file
        return f"{self.first_file} to {self.last_file}, {self.files:,} files"

    def _rate(self) -> str:
        if self.resumed:
            return "this session; resumed from an earlier one; "
        size = self.dump_bytes + sum(table.bytes for table in self.tables.values())
        return f"{size / 1e6 / self.seconds if self.seconds else 0.0:.0f} MB/s, "

    def _jobs(self) -> str:
        return f"{self.jobs} job{'s'[: self.jobs > 1]}"

    def __str__(self) -> str:
        return "\n".join(f"{label:<20} {value}" for label, value in self.lines())

    def __repr__(self) -> str:
        return f"<Report\n{self}>"

    def _repr_html_(self) -> str:
        cells = "".join(
            f"<tr><th style='text-align:left'>{for_html(label)}</th>"
            f"<td style='text-align:left'>{for_html(value)}</td></tr>"
            for label, value in self.lines()
        )
        return f"<table>{cells}</table>"


def _by_name(counts: dict[str, int]) -> str:
    total = sum(counts.values())
    if not total:
        return "0"
    names = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    return f"{total:,} ({names})"


def as_size(size: float) -> str:
    """A number of bytes for people, such as 1.02 MB."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size} B"
