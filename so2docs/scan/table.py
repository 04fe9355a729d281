"""Read the chunks of a table in workers; the results come in the order of the dump."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import AbstractContextManager, closing, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from so2docs.counts import ChunkTally
from so2docs.dump.dump import Chunk, Dump
from so2docs.dump.opening import TableFile
from so2docs.dump.storage import is_url
from so2docs.errors import DumpError
from so2docs.processes.pool import MOST_STREAMS, Workers, choose_jobs
from so2docs.progress import Bar, Progress, Shown
from so2docs.scan.chunk import ChunkResult, ChunkTask, Visitor, read_chunk

if TYPE_CHECKING:
    from so2docs.dump.stream import AnyDump

OpenVisitor = Callable[[], AbstractContextManager[Visitor]]
ReadTable = Callable[["TableReader"], object]


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads the chunks of tables in parallel, with progress bars."""

    workers: Workers
    progress: Progress
    work_dir: str | None
    threads: int

    @contextmanager
    def open(
        self,
        file: TableFile,
        visit: Callable[[Chunk], OpenVisitor],
        folder: str | Path,
        chunk_bytes: int | None = None,
        done: Mapping[int, ChunkTally] | None = None,
    ) -> Iterator[tuple[AnyDump, Iterator[ChunkResult]]]:
        """Open a table, and read its chunks in workers.

        Args:
            file: The table.
            visit: Chooses the visitor of a chunk.
            folder: Folder for the pieces of a table that is read as a stream.
            chunk_bytes: Size of a chunk, in bytes; None for the default.
            done: Counts of the chunks read by an earlier session, by chunk number.

        Yields:
            The open table, and the results of the chunks not in `done`, in order.
        """
        done = done or {}
        dump = file.open(threads=self.threads, work_dir=self.work_dir)
        with closing(dump):
            size = dump.chunk_bytes if chunk_bytes is None else chunk_bytes
            tasks = (
                ChunkTask(chunk, visit(chunk)) for chunk in dump.chunks(size, done, Path(folder))
            )
            total, before = dump.progress_total(size, done)
            with self.progress.step(file.label, file.work, total, before) as bar:
                results = self.workers.run(read_chunk, tasks)
                yield dump, _read_to_end(results, dump, file, bar, done.values())

    def read_tables(self, tables: Sequence[tuple[TableFile, ReadTable]]) -> None:
        """Read each table with its function; a few streams of local archives are read at once.

        A stream is decompressed by one thread, so several of them keep more workers busy. The error
        is that of the first table that has one, in the given order.
        """
        streams = [[*group] for _, group in groupby(tables, lambda table: table[0].place[:2])]
        is_local = all(file.entry and not is_url(file.source.path) for file, _ in tables)
        count = min(len(streams), self.workers.jobs, MOST_STREAMS) if is_local else 1
        reader = replace(self, threads=max(1, self.threads // max(1, count)))

        def read_stream(stream: Sequence[tuple[TableFile, ReadTable]]) -> None:
            for _, read in stream:
                read(reader)

        if count < 2:
            return read_stream(tables)
        submit = self.workers.readers.submit
        started = [submit(copy_context().run, read_stream, stream) for stream in streams]
        try:
            for future in started:
                while not future.done():
                    wait([future], 0.2)  # A signal may have come to another thread.
                future.result()
        finally:
            for file, _ in tables:
                file.source.close()


@contextmanager
def start_reader(
    files: Sequence[TableFile], work_dir: str | None, *, jobs: int | None, progress: Shown
) -> Iterator[TableReader]:
    """Start workers and a progress bar to read tables.

    Args:
        files: The tables.
        work_dir: Folder for temporary files; the system's temporary folder if None.
        jobs: Number of worker processes. If None, all cores, or one process for small tables.
        progress: Show a progress bar.
    """
    bars = Progress(shown=progress)
    bars.plan(sum(file.work for file in files))
    jobs = choose_jobs(jobs, sum(file.size for file in files))
    with Workers(jobs) as workers, bars:
        yield TableReader(workers, bars, work_dir, jobs)


def _read_to_end(
    results: Iterable[ChunkResult],
    dump: AnyDump,
    file: TableFile,
    bar: Bar,
    earlier: Iterable[ChunkTally],
) -> Iterator[ChunkResult]:
    """Yield the results of the chunks, check the end of the table, and complete error locations."""
    passed = [(tally.lines, tally.last_id) for tally in earlier]
    try:
        for result in results:
            yield result
            passed.append((result.tally.lines, result.tally.last_id))
            bar.update(dump.progress(result.chunk))
        dump.check_end()
    except DumpError as error:
        # Report an overwritten dump as such: it looks malformed, but the advice to download it
        # again would be wrong.
        if isinstance(dump, Dump):
            dump.check_unchanged()
        location = error.location
        if location is not None:
            location.row = file.table.row
            if location.line is not None:
                location.line += dump.first_line + sum(lines for lines, _ in passed)
            if location.last_id is None:
                ids = [last_id for _, last_id in passed if last_id is not None]
                location.last_id = ids[-1] if ids else None
        raise
