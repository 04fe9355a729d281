"""Iterate over the documents of a dump without writing an output."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from itertools import chain
from typing import TYPE_CHECKING, Unpack

import orjson

from so2docs.api.resolve import options_for
from so2docs.api.spills import opened_spill
from so2docs.dump.source import DumpLike, Source, open_first
from so2docs.errors import So2docsError, explain
from so2docs.options.request import build_run_options, read_keywords
from so2docs.options.signatures import spell_out
from so2docs.options.table import OF_ITERATOR, Options, RunOptions
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import Provenance
from so2docs.pipeline.session import Session
from so2docs.report import Report

if TYPE_CHECKING:
    from so2docs.options.keywords import IteratorKeywords
    from so2docs.types import Question


class Documents(AbstractContextManager["Documents"]):
    """An iterator over documents; `report` is available after the last one.

    Attributes:
        provenance: Provenance of the documents; None until all documents are read.
        lines: Iterator over the remaining documents as JSON.
    """

    def __init__(self, source: Source, options: Options, run: RunOptions) -> None:
        self.path = source.name
        self._report: Report | None = None
        self.provenance: Provenance | None = None
        self.lines = self._lines(source, options, run)
        self._iterator: Iterator[Question] = map(orjson.loads, self.lines)

    def __repr__(self) -> str:
        state = "in progress" if self._report is None else "complete"
        return f"<Documents of {self.path}, {state}>"

    @property
    def report(self) -> Report:
        """The counts, sizes and times of the conversion.

        Raises:
            So2docsError: Not all documents have been read yet.
        """
        if self._report is None:
            raise So2docsError("the report is not complete; read all documents first")
        return self._report

    def __iter__(self) -> Iterator[Question]:
        return self._iterator

    def __next__(self) -> Question:
        return next(self._iterator)

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the iteration and remove the temporary spill."""
        self.lines.close()

    def _lines(
        self, source: Source, options: Options, run: RunOptions
    ) -> Generator[bytes, None, None]:
        names = OutputPaths("-", run.work_dir)
        with explain(), source:
            files = source.find_to_convert(options.tables, run.tables)
            open_first(files, run.threads, names.work_folder)
            with opened_spill(names) as spill:
                session = Session(files, spill, options, names, run)
                for _, line in chain.from_iterable(session.documents()):
                    yield line
            self._report = session.report
            self.provenance = session.provenance.having_read(self._report.dump_bytes).with_counts(
                self._report
            )


@spell_out(OF_ITERATOR)
def documents(source: DumpLike, **keywords: Unpack[IteratorKeywords]) -> Documents:
    """Iterate over the documents of a dump without writing an output.

    Examples:
        >>> with so2docs.documents("Posts.xml", tags="python") as questions:
        ...     for question in questions: ...

    Args:
        source: A dump as for `convert`: the `Posts.xml` of a Stack Exchange dump, plain or
            compressed, a folder with this file, `-` for standard input, or an open binary file.
        keywords: Options for filters, the form of documents, and the run:
            `so2docs.options.keywords.IteratorKeywords`.

    Returns:
        An iterator over the documents, in ascending order of question id.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: The dump does not exist. The other errors that `convert` raises are raised while
            iterating.
    """
    values = read_keywords(keywords, OF_ITERATOR)
    with Source(source) as dump:
        return Documents(dump, options_for(dump, values), build_run_options(values))
