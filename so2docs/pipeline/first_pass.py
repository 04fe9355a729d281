"""The first pass, seen from the main process: chunks of a table -> blocks in the spill.

Rows of a table are filed under the question of their post. Where a table comes before the posts, in
an archive that is decompressed once, its rows are kept in the order of the table until the question
of every post is known. Each chunk is committed as it comes back, so that an interrupted pass
resumes with the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import TypeVar

from so2docs.counts import ChunkTally
from so2docs.dump.dump import Chunk, Dump
from so2docs.dump.source import End
from so2docs.dump.stream import AnyDump
from so2docs.dump.tables import TableFile
from so2docs.errors import DumpError
from so2docs.options.table import Options
from so2docs.parse import repeats
from so2docs.pipeline import strict
from so2docs.pipeline.chunk import ChunkResult, ChunkTask, FilingTask, file_kept_chunk, spill_chunk
from so2docs.pipeline.workers import Workers
from so2docs.progress import Progress
from so2docs.schema import POSTS, Table
from so2docs.spill import KEPT, SEQUENCE_BITS, Spill

Result = TypeVar("Result")

_KEPT_CHUNKS = KEPT << SEQUENCE_BITS

_STREAM_WORK = 2
"""What a byte costs that is read from a stream, about, where one of a plain file costs 1: only the
bar follows it."""


@dataclass
class FirstPass:
    """Reads one table into a spill.

    Attributes:
        file: Which, and where it is.
        spill: Where its rows go.
        options: How to convert.
        chunk_bytes: Bytes of a chunk; 0 for pieces that grow with the stream.
        progress: Told how far it is.
        work_dir: Folder for an archive that has to be unpacked from another.
        threads: How many may decompress.
        is_early: Whether it comes before the posts that its rows belong to.
        seconds: Time spent so far.
        work: Share of reading the table in all work; 0 if that is not known.
    """

    file: TableFile
    spill: Spill
    options: Options
    chunk_bytes: int
    progress: Progress
    work_dir: str | None
    threads: int
    is_early: bool = False
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.table, self.name = self.file.table, self.file.name
        self.work = self.file.size * (1 if self.file.is_plain else _STREAM_WORK)
        self.first_chunk = self.table.sequence << SEQUENCE_BITS
        self.label = "reading" if self.table == POSTS else f"reading {self.table.name}"

    @property
    def end(self) -> End | None:
        """The result of reading the table to its end in any session, or None."""
        values = self.spill.get(f"end of {self.table.name}")
        return None if values is None else End(**values)

    def tallies(self) -> dict[int, ChunkTally]:
        """Counts of the committed chunks, by their numbers in the spill, filed or not."""
        kept_tallies = self.spill.tallies(self.table.sequence + KEPT)
        tallies = {number - _KEPT_CHUNKS: tally for number, tally in kept_tallies.items()}
        return dict(sorted((tallies | self.spill.tallies(self.table.sequence)).items()))

    def run(
        self, workers: Workers, posts_map: str = "", seen_ids: repeats.SeenIds | None = None
    ) -> End:
        """Spill every chunk that is not yet committed.

        Args:
            workers: Where the chunks are parsed.
            posts_map: The map from post ids to question ids, if the table needs one.
            seen_ids: Gets the post ids of these chunks.
        """
        begun = time.perf_counter()
        tallies = self.tallies()
        if self.options.strict:
            strict.check_tallies(self.name, tallies)
        end = self.end
        if end is None:
            dump = self.file.open(threads=self.threads, work_dir=self.work_dir)
            with closing(dump):
                self.read(dump, workers, posts_map, seen_ids or repeats.SeenIds())
                end = dump.chunk_end(self.chunk_bytes)
            self.spill.put(f"end of {self.table.name}", asdict(end))
        else:
            with self.progress.step(self.label, self.work, 1, 1):
                pass
        if self.options.strict:
            strict.check_decoded(self.name, end.repaired)
        self.seconds = time.perf_counter() - begun
        return end

    def read(
        self, dump: AnyDump, workers: Workers, posts_map: str, seen_ids: repeats.SeenIds
    ) -> None:
        """Spill the chunks of an open table."""
        spilled = {number - self.first_chunk for number in self.tallies()}
        total, before = dump.progress_total(self.chunk_bytes, spilled)
        with self.progress.step(self.label, self.work, total, before) as progress_bar:
            results = workers.run(spill_chunk, self.tasks(dump, spilled, posts_map))
            for result in read_to_end(results, dump, self.table, lambda: self.tallies().values()):
                self.commit(result)
                seen_ids.add(result.pages)
                progress_bar.update(dump.progress(result.task.chunk))

    def tasks(self, dump: AnyDump, spilled: Collection[int], posts_map: str) -> Iterator[ChunkTask]:
        """The chunks that are left to do."""
        for chunk in dump.chunks(self.chunk_bytes, spilled, self.spill.folder):
            number = self.number(chunk)
            path = self.spill.new_file(number)
            room = self.spill.budget.grant(number, chunk.end - chunk.start)
            yield ChunkTask(chunk, path, self.options, self.table, posts_map, room)

    def commit(self, result: ChunkResult) -> None:
        """Make a chunk part of the spill."""
        task = result.task
        self.spill.commit(self.number(task.chunk), task.path, result.blocks, result.tally)

    def number(self, chunk: Chunk) -> int:
        """Number of a chunk in the spill."""
        return self.first_chunk + (_KEPT_CHUNKS if self.is_early else 0) + chunk.number

    def file_kept(self, workers: Workers, posts_map: str) -> None:
        """File the rows that were kept until the question of every post is known.

        Args:
            workers: Where that happens.
            posts_map: The map from post ids to question ids.
        """
        begun = time.perf_counter()
        tallies = self.spill.tallies(self.table.sequence + KEPT)
        for task, blocks in workers.run(file_kept_chunk, self.filing_tasks(tallies, posts_map)):
            number = task.number + _KEPT_CHUNKS
            self.spill.commit(task.number, task.path, blocks, tallies[number], instead_of=number)
        self.seconds += time.perf_counter() - begun

    def filing_tasks(self, numbers: Collection[int], posts_map: str) -> Iterator[FilingTask]:
        """The chunks whose rows are to be filed."""
        for number in numbers:
            blocks = self.spill.read_blocks(number)
            room = self.spill.budget.grant(
                number - _KEPT_CHUNKS, sum(block.raw_size for _, block in blocks)
            )
            path = self.spill.new_file(number - _KEPT_CHUNKS)
            yield FilingTask(
                number - _KEPT_CHUNKS, blocks, path, self.options, self.table, posts_map, room
            )


def read_to_end(
    results: Iterable[Result],
    dump: AnyDump,
    table: Table,
    tallies: Callable[[], Collection[ChunkTally]],
) -> Iterator[Result]:
    """Hand on what became of the chunks of a table, and check how the table ends.

    Args:
        results: What became of each chunk, in order.
        dump: The table.
        table: Which it is.
        tallies: Gives the tallies of the chunks that were handed on, in order.

    Raises:
        DumpError: The dump is damaged, with the location within the table, or has changed.
    """
    try:
        yield from results
        dump.check_end()
    except DumpError as error:
        # A dump that was overwritten looks malformed, but is not to be downloaded again.
        if isinstance(dump, Dump):
            dump.check_unchanged()
        _complete_location(error, dump, tallies(), table)
        raise


def _complete_location(
    error: DumpError, dump: AnyDump, before: Collection[ChunkTally], table: Table
) -> None:
    """Turn a location within a chunk into one within the table.

    Args:
        error: Gets the location.
        dump: The table.
        before: The tallies of the chunks before that one, in order.
        table: Which it is.
    """
    location = error.location
    if location is None or location.line is None:
        return
    location.row = table.row
    location.line += dump.first_line
    for tally in before:
        location.line += tally.lines
    if location.last_id is None:
        ids = [tally.last_id for tally in before if tally.last_id is not None]
        location.last_id = ids[-1] if ids else None
