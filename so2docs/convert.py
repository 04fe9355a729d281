"""The door of the library: a dump in, documents out, as a file or as an iterator."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import orjson

from so2docs.bodies import BodyAs
from so2docs.disk import disk_errors
from so2docs.dump import open_dump
from so2docs.errors import DumpError
from so2docs.filters import filters_of
from so2docs.form import FormatName, default_output, form_of
from so2docs.merge import AnswersBy
from so2docs.options import Options
from so2docs.output import Compression
from so2docs.paths import Names
from so2docs.report import Report
from so2docs.session import Session


def convert(
    source: str | os.PathLike[str],
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
) -> Report:
    """Convert a dump into one document per question, with its answers inside.

    An interrupted conversion goes on where it was when called again in the same way, and ends with
    the same bytes.

    Args:
        source: The `Posts.xml` of a Stack Exchange dump.
        output: File for the documents, in ascending question id; `questions.jsonl.gz` if None (of
            another format, such as `questions.parquet`). Its name says format and compression
            where they are not given. `-` is standard output, uncompressed.
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
            the answers' attributes. Without any of the answers, documents have no `Answers`.
        without: Attributes to leave out, such as `Body,Answers.Body`.
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
        jobs, answers_by, level, skip_malformed, chunk_bytes, progress, form, filters, body
    )
    names = Names(path, None if work_dir is None else os.fspath(work_dir), form)
    started = time.perf_counter()
    try:
        dump = open_dump(os.fspath(source))
        names.check(dump, force=force)
        with disk_errors():
            spill = names.open_spill(restart=restart)
            try:
                report = Session(dump, spill, options, names).run()
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

    def __init__(self, source: str, work_dir: str | None, options: Options) -> None:
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
        self, source: str, names: Names, options: Options
    ) -> Generator[dict[str, Any], None, None]:
        dump = open_dump(source)
        with disk_errors():
            spill = names.open_spill(restart=False)
            try:
                session = Session(dump, spill, options, names)
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
    answers_by: AnswersBy = "id",
    skip_malformed: bool = False,
    progress: bool = False,
) -> Documents:
    """Nest the questions of a dump without writing an output.

    Args:
        source: The `Posts.xml` of a Stack Exchange dump.
        jobs: Worker processes for reading the dump; all cores if None.
        work_dir: Folder for the spill (about 0.4 times the dump), which is removed at the end; the
            system's temporary folder if None.
        tags: As in `convert`, like all that follow.
        all_tags: They need all of them.
        min_score: Least score of a question.
        min_answer_score: Least score of an answer.
        answered: Keep questions that have answers.
        accepted: Keep questions that have an accepted answer.
        since: Earliest creation of a question.
        until: Creation of a question must be before.
        sample: Share of the questions.
        limit: Most documents.
        fields: Attributes to keep.
        without: Attributes to leave out.
        body: Form of the bodies.
        answers_by: Order of the answers.
        skip_malformed: Leave out rows that are not XML, instead of raising.
        progress: Show a progress bar.

    Returns:
        An iterator over the documents, in ascending question id.

    Raises:
        So2docsError: As `convert` does, when the iteration starts.
    """
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
        skip_malformed=skip_malformed,
        progress=progress,
        filters=filters,
        body=body,
    )
    return Documents(os.fspath(source), None if work_dir is None else os.fspath(work_dir), options)
