"""The result of a conversion: counts and files, as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from so2docs.counts import MOST, Counts, RowCounts, describe_part, list_by_name, plural
from so2docs.errors import InternalError, flag
from so2docs.escape import on_one_line

_ALARMING = 3

UNKNOWN_ON_DATE = ("revision_missing", "question_revision_missing")
"""Reasons for strays whose text on the date of `as_of` is unknown: a post, or an answer to it."""


class Printed(Counts):
    """Base class of results that are shown as lines of text."""

    __slots__ = ()

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield the label and the value of each line of the summary."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(f"{label:<20} {on_one_line(value)}" for label, value in self.lines())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}\n{self}>"


@dataclass(slots=True, repr=False)
class Report(Printed, RowCounts):
    """The result of a conversion: row counts (see `RowCounts`), sizes and times.

    Attributes:
        dump: Name of the dump.
        output: Name of the output.
        recipe: Name of the recipe that made the records; None if documents were written.
        as_of: Date or time of the restored state; None if posts are those of the dump.
        later_until: Date or time of the state of questions asked after `as_of`; None without them.
        shared_ids: Post ids that occur under several questions; each row is nested under the
            question that it names.
        fabricated: Nested posts and strays that the publisher made up, recognized by their ids.
        strays_path: Side file with the strays; None if there are none.
        index_path: The index next to the output; None if the output has no index.
        dump_bytes: Size of the decompressed dump.
        file_bytes: Size of the dump file, compressed or not; 0 if `dump` is not a file on disk.
        output_bytes: Total size of the output files.
        files: Number of output files.
        first_file: Name of the first file of a split output; None otherwise.
        last_file: Name of the last file of a split output; None otherwise.
        empty_shares: Names of the shares of `split` that got no document; None without shares.
        spill_bytes: Maximum size of the spill during the conversion.
        spill_compressed_bytes: Size of the compressed blocks in the spill.
        seconds: Wall time of this session, excluding earlier interrupted sessions.
        first_pass_seconds: Wall time of the first pass, which reads the dump and the tables.
        second_pass_seconds: Wall time of the second pass, which nests and writes documents.
        peak_memory_bytes: Peak resident memory, summed over all processes; 0 if unknown.
        jobs: Number of worker processes.
        resumed: Whether an interrupted conversion was continued.
        core: The core that parsed the rows, `compiled` or `python`.
        is_new: Whether this call made the output; False if it was already up to date.
    """

    dump: str
    output: str
    recipe: str | None = None
    as_of: str | None = None
    later_until: str | None = None
    shared_ids: int = 0
    fabricated: int = 0
    strays_path: str | None = None
    index_path: str | None = None
    dump_bytes: int = 0
    file_bytes: int = 0
    output_bytes: int = 0
    files: int = 1
    first_file: str | None = None
    last_file: str | None = None
    empty_shares: list[str] | None = None
    spill_bytes: int = 0
    spill_compressed_bytes: int = 0
    seconds: float = field(default=0.0, metadata=MOST)
    first_pass_seconds: float = field(default=0.0, metadata=MOST)
    second_pass_seconds: float = field(default=0.0, metadata=MOST)
    peak_memory_bytes: int = field(default=0, metadata=MOST)
    jobs: int = field(default=1, metadata=MOST)
    resumed: bool = False
    core: str = "python"
    is_new: bool = True

    def check(self) -> None:
        """Raise `InternalError` unless every row of the dump and its tables is accounted for."""
        placed = (
            self.questions
            + self.answers
            + sum(self.strays.values())
            + sum(self.other_types.values())
            + self.filtered
        )
        check_placed(self.dump, self.rows, placed)
        for name, table in self.tables.items():
            placed = table.nested + table.filtered + sum(table.strays.values())
            check_placed(f"{self.dump} ({name})", table.rows, placed)

    def warnings(self, sample_size: int | None = None) -> Iterator[str]:
        """Yield warnings: too few questions passed, or a table seems to be from another dump.

        Args:
            sample_size: Number of questions of the sample; None if it has no fixed size.
        """
        has_questions = bool(self.questions or self.filtered)
        if not has_questions:
            yield "the dump has no question, so the output is empty; is it the Posts.xml of a dump?"
        elif problem := explain_few(self.questions, sample_size):
            yield problem
        for name, table in self.tables.items():
            if table.without_post * _ALARMING > table.rows:
                part = describe_part(table.without_post, table.rows, "row")
                yield (
                    f"{name}: {part} no post; is the table from the same site and release as the "
                    "posts?"
                )
        if self.ends_before_date():
            yield f"{flag('as_of', self.as_of)}: {self._describe_end()}"
        if self.later_until is not None and self.last_day[:7] < self.later_until[:7]:
            last_day = self.last_day or "no known day"
            yield (
                f"the latest post until {self.later_until} is of {last_day}; if the dump ends "
                "there, later links are missing"
            )

    def ends_before_date(self) -> bool:
        """Whether the date of `as_of` is later than all rows of the dump."""
        return is_before(self.last_row, self.as_of)

    def _describe_end(self) -> str:
        return f"the latest row of the dump is of {(self.last_row or '')[:10]}"

    def has_strays(self) -> bool:
        """Whether any row of any table is a stray."""
        return any(self.strays.values()) or any(
            any(table.strays.values()) for table in self.tables.values()
        )

    def columns(self) -> dict[str, int | float]:
        """Return the numbers for this site's row in a table of sites, by column name."""
        numbers = {"questions": self.questions, "answers": self.answers}
        numbers["strays"] = self.strays.total()
        optional = {"filtered": self.filtered, "dropped": self.dropped}
        numbers |= {name: count for name, count in optional.items() if count}
        if self.records is not None:
            numbers["records"] = self.records
        return {**numbers, "seconds": self.seconds}

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield the labels and values of the summary: row counts, files, sizes and times."""
        yield "rows", f"{self.rows:,}"
        hint = "" if self.questions or not self.filtered else "; none passed the filters"
        yield "questions", f"{self.questions:,}{hint}"
        yield "answers nested", f"{self.answers:,}"
        strays = list_by_name(self.strays)
        if of_tables := sum(sum(table.strays.values()) for table in self.tables.values()):
            strays += f", and {of_tables:,} of other tables"
        yield "strays", strays + (f" -> {self.strays_path}" if self.strays_path else "")
        yield "other types", list_by_name(self.other_types)
        if self.filtered:
            yield "filtered", f"{self.filtered:,}"
        if self.dropped:
            yield "dropped", f"{self.dropped:,} by the lists of users and posts"
        if self.records is not None:
            linked = self.linked_elsewhere or 0
            without = (self.without_record or 0) - linked
            note = f" ({plural(without, 'question')} gave none)" if without else ""
            yield f"records ({self.recipe})", f"{self.records:,}{note}"
            if linked:
                yield "left out", f"{plural(linked, 'question')} linked to another share"
        yield from self._lines_of_tables()
        if self.shared_ids:
            yield "shared ids", f"{plural(self.shared_ids, 'id')} under several questions"
        if self.fabricated:
            hint = f"ids above 1,000,000,000; {flag('drop_fabricated', True)} leaves them out"
            yield "made up", f"{self.fabricated:,} ({hint})"
        yield "repaired characters", f"{self.repaired_characters:,}"
        if self.is_new:
            is_packed = 0 < self.file_bytes != self.dump_bytes
            packed = f" of XML in {as_size(self.file_bytes)}" * is_packed
            yield "dump", f"{as_size(self.dump_bytes)}{packed}  {self.dump}"
        state = "" if self.is_new else ", up to date"
        yield "output", f"{as_size(self.output_bytes)}  {self.file_names()}{state}"
        if self.empty_shares:
            yield "empty shares", ", ".join(self.empty_shares)
        if self.index_path:
            yield "index", self.index_path
        if not self.is_new:
            return
        compressed = as_size(self.spill_compressed_bytes)
        yield "spill", f"{as_size(self.spill_bytes)} ({compressed} compressed)"
        yield (
            "time",
            f"{self.seconds:.2f} s ({self._pace()}, {self.core} core)",
        )
        if self.peak_memory_bytes:
            yield memory_line(self.peak_memory_bytes)

    def _lines_of_tables(self) -> Iterator[tuple[str, str]]:
        """Yield the lines of the restored date and of the other tables."""
        if self.as_of is not None:
            yield f"as of {self.as_of}", self._describe_state()
        if self.later_until is not None:
            yield "later questions", f"as of {self.later_until}"
        for name, table in self.tables.items():
            # Documents repeat users, so the number of nested users is unknown.
            if name == "users" or not table.is_nested:
                strays = f", strays {list_by_name(table.strays)}" if table.strays else ""
                yield f"{name} read", f"{table.rows:,}{strays}"
            else:
                yield f"{name} nested", str(table)

    def _describe_state(self) -> str:
        """Count the posts by the origin of their bodies."""
        unknown = sum(self.strays[reason] for reason in UNKNOWN_ON_DATE)
        end = f"; {self._describe_end()}" if self.ends_before_date() else ""
        return (
            f"{plural(self.unchanged or 0, 'post')} with the body of the dump, "
            f"{self.restored or 0:,} with that of a revision, {unknown:,} unknown; posts deleted "
            f"since are missing{end}"
        )

    def file_names(self) -> str:
        """Return the output name; if split, the first and last file, and the number of files."""
        if self.first_file is None:
            return self.output
        if self.files == 1:
            return self.first_file
        return f"{self.first_file} to {self.last_file}, {self.files:,} files"

    def _pace(self) -> str:
        if self.resumed:
            return f"this session; resumed from an earlier one; {plural(self.jobs, 'job')}"
        size = self.dump_bytes + sum(table.bytes for table in self.tables.values())
        rate = size / 1e6 / self.seconds if self.seconds else 0.0
        return f"{rate:.0f} MB/s, {plural(self.jobs, 'job')}"


def is_before(last_row: str | None, as_of: str | None) -> bool:
    """Whether a dump with this latest row ends before a date or time; False if one is unknown."""
    return bool(last_row and as_of) and str(last_row)[: len(str(as_of))] < str(as_of)


def check_placed(name: str, rows: int, placed: int) -> None:
    """Raise `InternalError` if not all `rows`, but only `placed`, are accounted for."""
    if placed != rows:
        raise InternalError(
            f"{name}: {rows:,} rows were read but {placed:,} accounted for; "
            "this is a bug in so2docs; please report it"
        )


def memory_line(peak_bytes: int) -> tuple[str, str]:
    """Make the label and value of the summary line for peak memory."""
    return "peak memory", f"{peak_bytes / 2**20:.0f} MiB in all processes"


def as_size(size: float) -> str:
    """Format a number of bytes with a decimal unit, such as `1.02 MB`."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size} B"


def explain_few(questions: int, sample_size: int | None) -> str:
    """Explain why there is no question, or a smaller sample; empty if there are enough."""
    if not questions:
        return "no question passed all filters; the output is empty"
    if sample_size is None or questions >= sample_size:
        return ""
    passed = f"only {plural(questions, 'question')} passed the filters"
    return f"{flag('sample_size', sample_size)}: {passed}"
