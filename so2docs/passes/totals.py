"""The tallies of all chunks, added up in the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from so2docs.passes.first_pass import FirstPass
from so2docs.report import Report, TableCounts
from so2docs.schema import TYPE_NAMES
from so2docs.sources.source import End
from so2docs.store.tally import ChunkTally


def add_posts(tallies: Mapping[int, ChunkTally], report: Report) -> dict[int, dict[int, int]]:
    """Add the chunks of the posts to a report.

    Returns:
        By chunk, what `repeats.of_chunk` says of ids under several questions of that chunk.
    """
    strays: Counter[str] = Counter()
    types: Counter[int] = Counter()
    for tally in tallies.values():
        report.rows += tally.rows
        report.filtered += tally.filtered
        report.repaired_characters += tally.repaired
        strays.update(tally.strays)
        types.update(tally.other_types)
    report.strays = dict(strays)
    report.other_types = {
        TYPE_NAMES.get(kind, f"PostTypeId {kind}"): types[kind] for kind in sorted(types, key=str)
    }
    return {
        chunk: tally.first_questions for chunk, tally in tallies.items() if tally.first_questions
    }


def add_table(step: FirstPass, end: End, report: Report) -> None:
    """Add another table that was read to a report."""
    strays: Counter[str] = Counter()
    counts = TableCounts(bytes=end.size, seconds=step.seconds)
    report.repaired_characters += end.repaired
    for tally in step.tallies().values():
        counts.rows += tally.rows
        report.repaired_characters += tally.repaired
        strays.update(tally.strays)
    counts.strays = dict(sorted((+strays).items()))
    counts.spill_bytes = step.spill.size_of(step.table.sequence)
    if not step.table.kind:  # The merge counts no users.
        counts.nested = counts.rows - strays.total()
    report.tables[step.table.name] = counts
