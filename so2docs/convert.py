"""The door of the library: a dump in, documents out, as a file or as an iterator."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

import orjson

from so2docs.core import Core
from so2docs.disk import disk_errors
from so2docs.errors import DumpError
from so2docs.merge import AnswersBy
from so2docs.options import Options
from so2docs.paths import Names
from so2docs.progress import Notify, silent
from so2docs.report import Report
from so2docs.session import Session
from so2docs.sources.opening import Given, open_source
from so2docs.stream import AnyDump


def convert(
    source: Given,
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
    core: Core = "auto",
    site_field: tuple[str, str] | None = None,
    strict: bool = False,
    notify: Notify | None = None,
) -> Report:
    """Convert a dump into one document per question, with its answers inside.

    An interrupted conversion goes on where it was when called again in the same way, and ends with
    the same bytes.

    Args:
        source: The `Posts.xml` of a Stack Exchange dump, as it is or compressed (7z, zip, gzip,
            bzip2, xz, zstd), a folder with one, `-` for standard input, or an open binary file,
            which is left open. What can be read only once cannot be gone on with.
        output: File for the documents, one JSON object a line, in ascending question id. Compressed
            by gzip unless its name ends in `.jsonl`; `-` is standard output, uncompressed. Beside
            a file goes a small `OUTPUT.index`, with which `open` finds single documents.
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
        core: What turns rows into JSON: `compiled` (built where a C compiler was at installation),
            `python`, or `auto`: what the environment variable `SO2DOCS_CORE` says, else compiled if
            there is one. The documents are the same.
        site_field: Name and value of a field to add to each document before its answers, such as
            `("Site", "beer")`: post ids are unique per site only.
        strict: Raise where a character has to be repaired or a row left out.
        notify: Takes messages such as how much an interrupted conversion had done.

    Returns:
        Counts, bytes and seconds.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: The dump is truncated, malformed, or changed meanwhile; the error says where.
        StrictError: With `strict`, something would have to be repaired or left out.
        OutputError: The output exists (without `force`) or cannot be written.
        SpillError: The spill is in use, damaged, or was made from something else.
        DiskFullError: There is not enough room.
        WorkerDiedError: A worker process was killed.
    """
    options = Options(
        jobs=jobs,
        answers_by=answers_by,
        level=level,
        skip_malformed=skip_malformed,
        chunk_bytes=chunk_bytes,
        progress=progress,
        core=core,
        site_field=site_field,
        strict=strict,
    )
    names = Names(os.fspath(output), None if work_dir is None else os.fspath(work_dir))
    started = time.perf_counter()
    try:
        with disk_errors(), _opened(source, options, names) as dump:
            is_fresh = restart or dump.file is None
            names.check(dump)
            if is_fresh or not names.has_spill():
                names.refuse_existing(force=force)
            spill = names.open_spill(restart=is_fresh)
            try:
                session = Session(dump, spill, options, names, notify or silent)
                report = session.run(force=force)
                if keep_spill:
                    spill.put_all({"finished": True, "sealed": None, "checkpoint": None})
                else:
                    spill.remove()
            finally:
                names.leave_spill(spill, for_good=dump.file is None)
    except DumpError as error:
        names.save_excerpt(error)
        raise
    report.seconds = time.perf_counter() - started
    return report


def _opened(source: Given, options: Options, names: Names) -> closing[AnyDump]:
    return closing(open_source(source, threads=options.threads, work_dir=names.work_folder))


class Documents:
    """An iterator over nested questions; `report` is complete when it has ended."""

    def __init__(self, source: Given, work_dir: str | None, options: Options) -> None:
        self.report: Report | None = None
        self._iterator = self._documents(source, Names("-", work_dir), options)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._iterator

    def __next__(self) -> dict[str, Any]:
        return next(self._iterator)

    def close(self) -> None:
        """Stop early, and remove the spill."""
        self._iterator.close()

    def _documents(
        self, source: Given, names: Names, options: Options
    ) -> Generator[dict[str, Any], None, None]:
        with disk_errors(), _opened(source, options, names) as dump:
            spill = names.open_spill(restart=False)
            try:
                session = Session(dump, spill, options, names)
                for lines in session.documents():
                    yield from map(orjson.loads, lines)
                self.report = session.report
            finally:
                spill.remove()


def documents(
    source: Given,
    *,
    jobs: int | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    answers_by: AnswersBy = "id",
    skip_malformed: bool = False,
    progress: bool = False,
    core: Core = "auto",
    strict: bool = False,
) -> Documents:
    """Nest the questions of a dump without writing an output.

    Args:
        source: The `Posts.xml` of a Stack Exchange dump, as it is or compressed (7z, zip, gzip,
            bzip2, xz, zstd), a folder with one, `-` for standard input, or an open binary file,
            which is left open. What can be read only once cannot be gone on with.
        jobs: Worker processes for reading the dump; all cores if None.
        work_dir: Folder for the spill (about 0.4 times the dump), which is removed at the end; the
            system's temporary folder if None.
        answers_by: Order of the answers, as in `convert`.
        skip_malformed: Leave out rows that are not XML, instead of raising.
        progress: Show a progress bar.
        core: What turns rows into JSON, as in `convert`.
        strict: Raise where a character has to be repaired or a row left out.

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
        core=core,
        strict=strict,
    )
    return Documents(source, None if work_dir is None else os.fspath(work_dir), options)
