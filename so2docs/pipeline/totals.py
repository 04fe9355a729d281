"""The tallies of all chunks, added up in the report."""

from __future__ import annotations

from collections.abc import Mapping

from so2docs.counts import Counts
from so2docs.dump.source import End
from so2docs.pipeline.first_pass import FirstPass
from so2docs.report import Report, TableCounts
from so2docs.schema import Table
from so2docs.store.tally import ChunkTally


def add_posts(tallies: Mapping[int, ChunkTally], report: Report) -> None:
    """Add the chunks of the posts to a report."""
    report.add(Counts.total(tally.counts for tally in tallies.values()))


def within_chunks(tallies: Mapping[int, ChunkTally]) -> dict[int, dict[int, int]]:
    """By chunk, what `repeats.of_chunk` says of ids under several questions of that chunk."""
    return {
        chunk: tally.first_questions for chunk, tally in tallies.items() if tally.first_questions
    }


def add_table(step: FirstPass, end: End, report: Report) -> None:
    """Add another table that was read to a report."""
    counts = add_table_chunks(step.table, step.tallies(), end.size, report)
    counts.seconds = step.seconds
    counts.spill_bytes = step.spill.committed_bytes(step.table.sequence)
    report.repaired_characters += end.repaired


def add_table_chunks(
    table: Table, tallies: Mapping[int, ChunkTally], size: int, report: Report
) -> TableCounts:
    """Add the chunks of another table to a report.

    Args:
        table: Which.
        tallies: What was counted in its chunks.
        size: Bytes of the table.
        report: Gets the counts.

    Returns:
        What became of its rows, as far as the chunks tell.
    """
    total = Counts.total(tally.counts for tally in tallies.values())
    report.repaired_characters += total.repaired
    report.dropped += total.dropped
    counts = report.tables[table.name] = TableCounts(total.rows, bytes=size)
    counts.add(+total.strays)
    counts.filtered = total.filtered
    if not table.kind:  # The merge counts no users.
        counts.nested = counts.rows - total.strays.total()
    return counts
