"""The first pass, seen from the main process: chunks of the dump -> blocks in the spill.

Commits each chunk as it comes back, so that an interrupted pass goes on with the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from so2docs.errors import DumpError
from so2docs.options.conversion import Options
from so2docs.passes import strict
from so2docs.passes.chunk import ChunkResult, ChunkTally, ChunkTask, spill_chunk
from so2docs.passes.workers import Workers
from so2docs.posts import repeats
from so2docs.progress import Notify, bar, silent
from so2docs.report import Report
from so2docs.schema import TYPE_NAMES
from so2docs.sources.dump import Chunk, Dump
from so2docs.sources.stream import AnyDump
from so2docs.spill import Spill


class FirstPass:
    """Reads a dump into a spill."""

    def __init__(
        self,
        dump: AnyDump,
        spill: Spill,
        options: Options,
        chunk_bytes: int,
        notify: Notify = silent,
    ) -> None:
        self.dump = dump
        self.spill = spill
        self.options = options
        self.notify = notify
        self.chunk_bytes = chunk_bytes

    def run(self, workers: Workers, report: Report) -> dict[int, int]:
        """Spill every chunk that is not yet committed.

        Args:
            workers: Where the chunks are parsed.
            report: Gets the counts of this pass.

        Returns:
            For post ids that stand under several questions, the question id of the first in the
            dump.
        """
        done = self.spill.tallies()
        self.dump.go_on(self.spill.get("end"))
        if self.options.strict:
            strict.check_tallies(self.dump.path, done)
        seen = repeats.SeenIds()
        if done:
            for _, keys in self.spill.all_keys():
                pages, _ = repeats.of_chunk(repeats.pairs(keys))
                seen.add(pages)
        total, before = self.dump.progress_total(self.chunk_bytes, done)
        if done:
            whole = self.dump.end - self.dump.start if isinstance(self.dump, Dump) else total
            part = f"{100 * before // whole} %" if whole and before < whole else "all"
            self.notify(f"resuming: {part} of the dump is already spilled")
        with bar("reading", total, before, shown=self.options.progress) as shown:
            try:
                for result in workers.run(spill_chunk, self.chunk_tasks(done)):
                    self.commit(result)
                    seen.add(result.pages)
                    shown.update(self.dump.progress(_chunk(result.task)))
                self.dump.check_end()
            except DumpError as error:
                # A dump that was overwritten looks malformed, but is not to be downloaded again.
                if isinstance(self.dump, Dump):
                    self.dump.check_unchanged()
                complete_place(error, self.dump, self.spill.tallies().values())
                raise
        self.spill.put("end", self.dump.end_state)
        report.dump_bytes = self.dump.size
        report.repaired_characters = (self.dump.end_state or {}).get("repaired", 0)
        if self.options.strict:
            strict.check_decoded(self.dump.path, report.repaired_characters)
        return self.take_stock(seen.repeated, report)

    def chunk_tasks(self, done: dict[int, dict[str, Any]]) -> Iterator[ChunkTask]:
        """The chunks that are left to do."""
        for number, dump, start, end in self.dump.chunks(self.chunk_bytes, done, self.spill.folder):
            path = self.spill.new_file(number)
            room = self.spill.budget.grant(number, end - start)
            yield ChunkTask(dump, number, start, end, path, self.options, room)

    def commit(self, result: ChunkResult) -> None:
        """Make a chunk part of the spill."""
        task = result.task
        self.spill.commit(task.chunk, task.path, result.blocks, asdict(result.tally))

    def take_stock(self, repeated: repeats.Pages, report: Report) -> dict[int, int]:
        """Add the chunks' tallies up, and find which of several posts with one id stays."""
        within = add_up(self.spill.tallies(), report)
        return repeats.owners(self.spill.all_keys, repeated, within)


def _chunk(task: ChunkTask) -> Chunk:
    return Chunk(task.chunk, task.dump, task.start, task.end)


def complete_place(error: DumpError, dump: AnyDump, tallies: Iterable[dict[str, Any]]) -> None:
    """Turn a place within a chunk into one within the dump, with the tallies of those before."""
    place = error.place
    if place is None or place.line is None:
        return
    before = [ChunkTally(**tally) for tally in tallies]
    place.line += dump.first_line + sum(tally.lines for tally in before)
    if place.last_id is None:
        ids = [tally.last_id for tally in before if tally.last_id is not None]
        place.last_id = ids[-1] if ids else None


def add_up(tallies: Mapping[int, dict[str, Any]], report: Report) -> dict[int, dict[int, int]]:
    """Add the tallies of all chunks to a report.

    Returns:
        By chunk, what `repeats.of_chunk` says of ids under several questions of that chunk.
    """
    strays: Counter[str] = Counter()
    types: Counter[str] = Counter()
    within: dict[int, dict[int, int]] = {}
    for chunk, values in tallies.items():
        tally = ChunkTally(**values)
        report.rows += tally.rows
        report.filtered += tally.filtered
        report.repaired_characters += tally.repaired
        strays.update(tally.strays)
        types.update(tally.other_types)
        if tally.owners:
            within[chunk] = {int(post_id): first for post_id, first in tally.owners.items()}
    report.strays = dict(strays)
    report.other_types = {
        TYPE_NAMES.get(int(kind), f"PostTypeId {kind}"): count
        for kind, count in sorted(types.items())
    }
    return within
