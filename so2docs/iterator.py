"""A dump in, documents out as an iterator, without an output file."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

import orjson

from so2docs.convert import opened
from so2docs.merge import AnswersBy
from so2docs.options.conversion import Options
from so2docs.options.filters import filters_of
from so2docs.output.paths import Names
from so2docs.passes.session import Session
from so2docs.posts.bodies import BodyAs
from so2docs.posts.core import Core
from so2docs.report import Report
from so2docs.sources.opening import Given
from so2docs.sources.tables import Tables, asked, find_tables
from so2docs.store.disk import disk_errors


class Documents:
    """An iterator over nested questions; `report` is complete when it has ended."""

    def __init__(
        self, source: Given, work_dir: str | None, options: Options, tables: Tables | None = None
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
        self, source: Given, names: Names, options: Options, tables: Tables
    ) -> Generator[dict[str, Any], None, None]:
        with disk_errors(), opened(source, options, names) as dump:
            others = find_tables(source, options.nest, tables)
            spill = names.open_spill(restart=False)
            try:
                session = Session(dump, spill, options, names, tables=others)
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
    core: Core = "auto",
    strict: bool = False,
    nest: Iterable[str] = (),
    tables: Tables | None = None,
) -> Documents:
    """Nest the questions of a dump without writing an output.

    Args:
        source: The `Posts.xml` of a Stack Exchange dump, as it is or compressed (7z, zip, gzip,
            bzip2, xz, zstd), a folder with one, `-` for standard input, or an open binary file,
            which is left open. What can be read only once cannot be gone on with.
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
        core: What turns rows into JSON, as in `convert`.
        strict: Raise where a character has to be repaired or a row left out.
        nest: Tables to nest into the posts.
        tables: Their files.

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
        nest=asked(nest, tables or {}),
        core=core,
        strict=strict,
    )
    return Documents(source, None if work_dir is None else os.fspath(work_dir), options, tables)
