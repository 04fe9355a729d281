"""The main process of the first pass: from the chunks of a table to blocks in the spill.

Rows of a table are filed under the question of their post. If an archive is decompressed only
once and contains a table before the posts, the rows of this table are kept in their order until the
question of every post is known. Each chunk is committed as soon as a worker returns it, so that an
interrupted pass resumes with the remaining chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

from so2docs.counts import ChunkTally
from so2docs.dump.dump import Chunk
from so2docs.dump.opening import TableFile
from so2docs.options.table import Options
from so2docs.parse.id_set import IdSetWriter
from so2docs.pipeline.filing import Filing, file_kept_chunk
from so2docs.processes.pool import Workers
from so2docs.progress import log
from so2docs.scan.table import OpenVisitor, TableReader
from so2docs.spill import KEPT, SEQUENCE_BITS, Spill
from so2docs.store.blocks import Block

_KEPT_CHUNKS = KEPT << SEQUENCE_BITS


@dataclass
class FirstPass:
    """Reads one table into a spill.

    Attributes:
        file: The table and its location.
        spill: The spill for the rows.
        options: Options of the conversion.
        chunk_bytes: Size of a chunk, in bytes; 0 for pieces that grow with the stream.
        is_early: Whether the table comes before the posts that its rows belong to.
    """

    file: TableFile
    spill: Spill
    options: Options
    chunk_bytes: int
    is_early: bool = False

    def __post_init__(self) -> None:
        self.table, self.name = self.file.table, self.file.name
        self.first_chunk = self.table.sequence << SEQUENCE_BITS
        self._end = f"end of {self.table.name}"

    @property
    def is_read(self) -> bool:
        """Whether the whole table was read, in any session."""
        return self.spill.get(self._end) is not None

    @property
    def end(self) -> dict[str, int]:
        """Size of the whole table in bytes, and number of characters that the decoder replaced."""
        return dict(self.spill.get(self._end))

    def tallies(self) -> dict[int, ChunkTally]:
        """Return the counts of the committed chunks, filed or not, by their number in the spill."""
        sequence = self.table.sequence
        tallies = self.spill.tallies(sequence, sequence + KEPT)
        return dict(sorted((number % _KEPT_CHUNKS, tally) for number, tally in tallies.items()))

    def run(
        self, reader: TableReader, posts_map: str = "", seen_ids: IdSetWriter | None = None
    ) -> None:
        """Spill the chunks that are not yet committed, and check the end of the table.

        Args:
            reader: Reads the chunks in workers.
            posts_map: Path of the map of posts to their questions.
            seen_ids: Set to which the ids of posts are added.
        """
        with self.spill.lock:
            done = {number - self.first_chunk: tally for number, tally in self.tallies().items()}
            if self.is_read:
                with reader.progress.step(self.file.label, self.file.work, 1, 1):
                    return

        def visit(chunk: Chunk) -> OpenVisitor:
            with self.spill.lock:
                return self.filing(self.number(chunk), chunk.end - chunk.start, posts_map).open

        folder = self.spill.folder
        if done and not self.file.source.is_plain:
            log.info("resuming: decompressing %s from its start", self.name)
        opened = reader.open(self.file, visit, folder, self.chunk_bytes, done)
        with opened as (dump, results):
            for result in results:
                blocks, ids = result.value
                with self.spill.lock:
                    self.spill.commit(self.number(result.chunk), blocks, result.tally)
                if seen_ids is not None:
                    for pages in ids:
                        seen_ids.add(pages)
            end = {"size": dump.size, "repaired": dump.repaired}
        with self.spill.lock:
            self.spill.put(self._end, end, commits=False)

    def number(self, chunk: Chunk) -> int:
        """Return the number of a chunk in the spill."""
        return self.first_chunk + (_KEPT_CHUNKS if self.is_early else 0) + chunk.number

    def file_kept(self, workers: Workers, posts_map: str) -> None:
        """File the rows that were kept until the question of every post was known."""
        tallies = self.spill.tallies(self.table.sequence + KEPT)
        tasks = (self.refiling(number, posts_map) for number in tallies)
        results = workers.run(file_kept_chunk, tasks)
        for (number, tally), blocks in zip(tallies.items(), results, strict=True):
            self.spill.commit(number - _KEPT_CHUNKS, blocks, tally, instead_of=number)

    def refiling(self, number: int, posts_map: str) -> tuple[Filing, list[tuple[str, Block]]]:
        """Return the task for a chunk whose rows were kept in their order."""
        blocks = self.spill.read_blocks(number)
        size = sum(block.raw_size for _, block in blocks)
        return self.filing(number - _KEPT_CHUNKS, size, posts_map), blocks

    def filing(self, number: int, size: int, posts_map: str) -> Filing:
        """Choose a file, and a share of the budget, for the rows of a chunk of `size` bytes."""
        path, room = self.spill.new_file(number), self.spill.budget.grant(number, size)
        return Filing(path, room, self.table, self.options, posts_map)
