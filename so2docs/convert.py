"""The door of the library: a dump in, documents out, as a file or as an iterator."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterable, Iterator
from typing import Any

import orjson

from so2docs import sources
from so2docs.disk import disk_errors
from so2docs.errors import DumpError
from so2docs.merge import AnswersBy
from so2docs.options import Options
from so2docs.paths import Names
from so2docs.report import Report
from so2docs.session import Session
from so2docs.sources import Tables


def convert(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str] = "questions.jsonl.gz",
    *,
    jobs: int | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    keep_spill: bool = False,
    force: bool = False,
    restart: bool = False,
    answers_by: AnswersBy = "id",
    level: int = 2,
    skip_malformed: bool = False,
    chunk_bytes: int | None = None,
    progress: bool = False,
    nest: Iterable[str] = (),
    tables: Tables | None = None,
) -> Report:
    """Convert a dump into one document per question, with its answers inside.

    An interrupted conversion goes on where it was when called again in the same way, and ends with
    the same bytes.

    Args:
        source: The `Posts.xml` of a Stack Exchange dump, or the folder that it is in.
        output: File for the documents, one JSON object a line, in ascending question id. Compressed
            by gzip unless its name ends in `.jsonl`; `-` is standard output, uncompressed.
        jobs: Worker processes; all cores if None, and one where the dump is too small to gain.
        work_dir: Folder for the spill (about 0.4 times the dump); that of the output if None.
        keep_spill: Keep the spill of a finished conversion, for another with other options.
        force: Overwrite an existing output.
        restart: Forget what an earlier, interrupted conversion did.
        answers_by: `id`: answers in ascending `Id`. `votes`: the accepted one first, then falling
            `Score`, then `Id`.
        level: Of the gzip compression: 0 to 3 by ISA-L, 4 to 9 by zlib (smaller and far slower).
        skip_malformed: Put rows that are not XML with the strays, instead of raising.
        chunk_bytes: Bytes of the dump that one task of the first pass takes.
        progress: Show progress bars, on stderr or in the notebook.
        nest: Tables to nest into the posts: `comments`, `links`, `votes`, `users`, or `all`.
        tables: Files of tables by those names, which nests them too; a table without one is looked
            for beside the posts.

    Returns:
        Counts, bytes and seconds.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: The dump is truncated, malformed, or changed meanwhile; the error says where.
        OutputError: The output exists (without `force`) or cannot be written.
        SpillError: The spill is in use, damaged, or was made from something else.
        DiskFullError: There is not enough room.
        WorkerDiedError: A worker process was killed.
    """
    wanted = sources.asked(nest, tables or {})
    options = Options(jobs, answers_by, level, skip_malformed, chunk_bytes, progress, wanted)
    names = Names(os.fspath(output), None if work_dir is None else os.fspath(work_dir))
    started = time.perf_counter()
    try:
        found = sources.open_sources(os.fspath(source), wanted, tables or {})
        for dump in (found.posts, *found.tables.values()):
            names.check(dump, force=force)
        with disk_errors():
            spill = names.open_spill(restart=restart)
            try:
                report = Session(found, spill, options, names).run()
            except BaseException:
                spill.close()
                raise
            if keep_spill:
                spill.put("finished", True)
                spill.close()
            else:
                spill.remove()
    except DumpError as error:
        names.save_excerpt(error)
        raise
    report.seconds = time.perf_counter() - started
    return report


class Documents:
    """An iterator over nested questions; `report` is complete when it has ended."""

    def __init__(
        self, source: str, work_dir: str | None, options: Options, tables: Tables | None = None
    ) -> None:
        self.report: Report | None = None
        self._iterator = self._documents(source, Names("-", work_dir), options, tables or {})

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._iterator

    def __next__(self) -> dict[str, Any]:
        return next(self._iterator)

    def close(self) -> None:
        """Stop early, and remove the spill."""
        self._iterator.close()

    def _documents(
        self, source: str, names: Names, options: Options, tables: Tables
    ) -> Generator[dict[str, Any], None, None]:
        found = sources.open_sources(source, options.nest, tables)
        with disk_errors():
            spill = names.open_spill(restart=False)
            try:
                session = Session(found, spill, options, names)
                for lines in session.documents():
                    yield from map(orjson.loads, lines)
                self.report = session.report
            finally:
                spill.remove()


def documents(
    source: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    answers_by: AnswersBy = "id",
    skip_malformed: bool = False,
    progress: bool = False,
    nest: Iterable[str] = (),
    tables: Tables | None = None,
) -> Documents:
    """Nest the questions of a dump without writing an output.

    Args:
        source: The `Posts.xml` of a Stack Exchange dump, or the folder that it is in.
        jobs: Worker processes for reading the dump; all cores if None.
        work_dir: Folder for the spill (about 0.4 times the dump), which is removed at the end; the
            system's temporary folder if None.
        answers_by: Order of the answers, as in `convert`.
        skip_malformed: Leave out rows that are not XML, instead of raising.
        progress: Show a progress bar.
        nest: Tables to nest into the posts, as in `convert`.
        tables: Their files, as in `convert`.

    Returns:
        An iterator over the documents, in ascending question id.

    Raises:
        So2docsError: As `convert` does, when the iteration starts.
    """
    options = Options(
        jobs=jobs,
        answers_by=answers_by,
        skip_malformed=skip_malformed,
        progress=progress,
        nest=sources.asked(nest, tables or {}),
    )
    folder = None if work_dir is None else os.fspath(work_dir)
    return Documents(os.fspath(source), folder, options, tables)
