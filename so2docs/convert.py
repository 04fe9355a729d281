"""The door of the library: a dump in, documents out, as a file or as an iterator."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import closing

from so2docs.errors import DumpError
from so2docs.merge import AnswersBy
from so2docs.options.conversion import Options
from so2docs.options.filters import filters_of
from so2docs.options.output_form import FormatName, default_output, form_of
from so2docs.output.compression import Compression
from so2docs.output.paths import Names
from so2docs.passes.session import Session
from so2docs.posts.bodies import BodyAs
from so2docs.posts.core import Core
from so2docs.progress import Notify, silent
from so2docs.report import Report
from so2docs.sources.opening import Given, open_source
from so2docs.sources.stream import AnyDump
from so2docs.sources.tables import Tables, asked, find_tables
from so2docs.store.disk import disk_errors


def convert(
    source: Given,
    output: str | os.PathLike[str] | None = None,
    *,
    format: FormatName | None = None,  # noqa: A002
    compression: Compression | None = None,
    index: str | None = None,
    split: str | int | None = None,
    tags: str | Sequence[str] = (),
    all_tags: bool = False,
    min_score: int | None = None,
    min_answer_score: int | None = None,
    answered: bool = False,
    accepted: bool = False,
    since: str | None = None,
    until: str | None = None,
    sample: str | float | None = None,
    limit: int | None = None,
    fields: str | Sequence[str] | None = None,
    without: str | Sequence[str] | None = None,
    body: BodyAs = "html",
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
    nest: Iterable[str] = (),
    tables: Tables | None = None,
    notify: Notify | None = None,
) -> Report:
    """Convert a dump into one document per question, with its answers inside.

    An interrupted conversion goes on where it was when called again in the same way, and ends with
    the same bytes.

    Args:
        source: The `Posts.xml` of a Stack Exchange dump, as it is or compressed (7z, zip, gzip,
            bzip2, xz, zstd), a folder with one, `-` for standard input, or an open binary file,
            which is left open. What can be read only once cannot be gone on with.
        output: File for the documents, in ascending question id; `questions.jsonl.gz` if None (of
            another format, such as `questions.parquet`). Its name says format and compression
            where they are not given. `-` is standard output, uncompressed.
            Beside one file of `jsonl`, unless by zstd, goes a small `OUTPUT.index`, with which
            `open` finds single documents.
        format: `jsonl`: one JSON object a line. `json`: one array. `elasticsearch`: lines for the
            bulk API. `mongodb`: lines for mongoimport. `ravendb`: RavenDB's import file.
            `parquet`: typed columns (install `so2docs[parquet]`).
        compression: `gzip`, `zstd` or `none`.
        index: Name of the Elasticsearch index; `questions` if None.
        split: Write several files, `questions-00000.jsonl.gz` and so on, each of them whole and all
            together in the order of the ids. A size such as `1GB`: no file is larger, as it stands
            on the disk, unless a single document is. A number: so many files, with about as much
            JSON in each.
        tags: Keep questions that have any of these tags.
        all_tags: They need all of them.
        min_score: Keep questions with this score or a higher one.
        min_answer_score: Keep answers with this score or a higher one.
        answered: Keep questions whose `AnswerCount` is 1 or more.
        accepted: Keep questions that have an `AcceptedAnswerId`.
        since: Keep questions created at this time (UTC; a date is its midnight) or later.
        until: Keep questions created before this time.
        sample: Keep this share of the questions, such as `1%` or 0.01, chosen by a hash of the id:
            the same from every dump, and part of every larger sample.
        limit: Write only so many documents, those with the lowest ids that pass the rest.
        fields: Attributes to keep, such as `Id,Title,Answers.Body`; `Answers` alone means all of
            the answers' attributes. Without any of the answers, documents have no `Answers`. What
            is nested has names such as `Comments.Text` and `Answers.Owner.DisplayName`.
        without: Attributes to leave out, such as `Body,Answers.Body,Comments.UserId`.
        body: `html`: as in the dump. `text` or `markdown` (install `so2docs[body]`): converted.
        jobs: Worker processes; all cores if None, and one where the dump is too small to gain.
        work_dir: Folder for the spill (about 0.4 times the dump); that of the output if None.
        keep_spill: Keep the spill of a finished conversion, for another with other options.
        force: Overwrite an existing output.
        restart: Forget what an earlier, interrupted conversion did.
        answers_by: `id`: answers in ascending `Id`. `votes`: the accepted one first, then falling
            `Score`, then `Id`.
        level: Of the gzip compression: 0 to 3 by ISA-L, 4 to 9 by zlib (smaller and far slower);
            of zstd, up to 19.
        skip_malformed: Put rows that are not XML with the strays, instead of raising.
        chunk_bytes: Bytes of the dump that one task of the first pass takes.
        progress: Show progress bars, on stderr or in the notebook.
        core: What turns rows into JSON: `compiled` (built where a C compiler was at installation),
            `python`, or `auto`: what the environment variable `SO2DOCS_CORE` says, else compiled if
            there is one. The documents are the same.
        site_field: Name and value of a field to add to each document before its answers, such as
            `("Site", "beer")`: post ids are unique per site only.
        strict: Raise where a character has to be repaired or a row left out.
        nest: Tables to nest into the posts: `comments`, `links`, `votes`, `users`, or `all`.
        tables: Files of tables by those names, which nests them too; a table without one is looked
            for in the archive or folder of the posts, or beside them. Each in any form that the
            posts may have, but for standard input and open files.
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
    path = default_output(format) if output is None else os.fspath(output)
    form = form_of(path, format=format, compression=compression, index=index, split=split)
    filters = filters_of(
        tags=tags,
        all_tags=all_tags,
        min_score=min_score,
        min_answer_score=min_answer_score,
        answered=answered,
        accepted=accepted,
        since=since,
        until=until,
        sample=sample,
        limit=limit,
        fields=fields,
        without=without,
    )
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
        form=form,
        filters=filters,
        body=body,
        nest=asked(nest, tables or {}),
    )
    names = Names(path, None if work_dir is None else os.fspath(work_dir), form)
    started = time.perf_counter()
    try:
        with disk_errors(), opened(source, options, names) as dump:
            others = find_tables(source, options.nest, tables or {})
            read = [dump.file, *(table.file for table in others.values())]
            for file in read:
                names.check(file)
            is_once = None in read
            is_fresh = restart or is_once
            if is_fresh or not names.has_spill():
                names.refuse_existing(force=force)
            spill = names.open_spill(restart=is_fresh)
            try:
                session = Session(
                    dump, spill, options, names, notify=notify or silent, tables=others
                )
                report = session.run(force=force)
                if keep_spill:
                    spill.put_all({"finished": True, "sealed": None, "checkpoint": None})
                else:
                    spill.remove()
            finally:
                names.leave_spill(spill, for_good=is_once)
    except DumpError as error:
        names.save_excerpt(error)
        raise
    report.seconds = time.perf_counter() - started
    return report


def opened(source: Given, options: Options, names: Names) -> closing[AnyDump]:
    """A dump that is closed at the end."""
    return closing(open_source(source, threads=options.threads, work_dir=names.work_folder))
