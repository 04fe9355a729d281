"""Read tables of a dump with visitors, without writing files."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import ExitStack, closing
from functools import partial

from so2docs.dump.dump import Chunk
from so2docs.dump.opening import Catalog
from so2docs.dump.tables import find_dump_tables
from so2docs.flat.tables import CHUNK_BYTES
from so2docs.output.provenance import File
from so2docs.scan.chunk import ChunkResult, Visitor
from so2docs.scan.table import start_reader
from so2docs.schema import Table


def visit_tables(
    dump: str,
    visitors: Mapping[str, type[Visitor]],
    folder: str,
    advice: str,
    *,
    jobs: int | None,
    progress: bool,
) -> Generator[tuple[Table, ChunkResult], None, None]:
    """Read tables of a dump with visitors. An archive is read only once, from start to end.

    Args:
        dump: An archive or a folder with the tables, or one of their files.
        visitors: The visitor class for each table, by name of the table.
        folder: Folder for temporary files.
        advice: Advice for the error if a table is missing.
        jobs: Number of worker processes. If None, all cores, or one process for a small dump.
        progress: Show progress bars.

    Yields:
        The table and the result of each chunk.

    Raises:
        DumpError: A table is missing, truncated or malformed.
    """
    with Catalog() as catalog:
        files = find_dump_tables(dump, tuple(visitors), catalog, advice)
        with start_reader(files, folder, jobs=jobs, progress=progress) as reader:
            for file in files:
                visit = partial(_choose, visitors[file.table.name])
                with reader.open(file, visit, folder, CHUNK_BYTES) as (_, results):
                    for result in results:
                        yield file.table, result


def _choose(visitor: type[Visitor], chunk: Chunk) -> type[Visitor]:
    """Return the same visitor for every chunk of a table."""
    return visitor


def identify_tables(dump: str, names: tuple[str, ...], advice: str) -> list[File]:
    """Identify the files that contain these tables of a dump.

    Raises:
        DumpError: A table is missing.
    """
    with Catalog() as catalog, ExitStack() as stack:
        files = find_dump_tables(dump, names, catalog, advice)
        for file in files:
            stack.enter_context(closing(file))
        return [File.of_table(file) for file in files]
