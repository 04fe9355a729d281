"""A dump in, documents out as an iterator, without an output file."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Unpack

import orjson

from so2docs.convert import opened, work_folder
from so2docs.errors import DumpError, So2docsError, starts_over
from so2docs.options.conversion import Options
from so2docs.options.keywords import IteratorKeywords, Tables
from so2docs.options.request import checked, options_of
from so2docs.options.signatures import spelled_out
from so2docs.output.paths import Names
from so2docs.passes.session import Session
from so2docs.posts.core import resolve
from so2docs.report import Report
from so2docs.sources import storage
from so2docs.sources.opening import STANDARD_INPUT, Given
from so2docs.sources.tables import find_tables
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

    def __enter__(self) -> Documents:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop early, and remove the spill."""
        self._iterator.close()

    def _documents(
        self, source: Given, names: Names, options: Options, tables: Tables
    ) -> Generator[dict[str, Any], None, None]:
        with nested(source, names, options, tables) as session:
            for lines in session.documents():
                for _, line in lines:
                    yield orjson.loads(line)
            self.report = session.report


@contextmanager
def nested(source: Given, names: Names, options: Options, tables: Tables) -> Iterator[Session]:
    """A session whose documents are to be iterated over, not written; its spill goes with it."""
    with disk_errors(), opened(source, options, names) as dump:
        others = find_tables(source, options.nest, tables)
        spill = names.open_spill(restart=False)
        try:
            yield Session(dump, spill, options, names, tables=others)
        except So2docsError as error:
            starts_over(error)
            raise
        finally:
            spill.remove()


@spelled_out
def documents(source: Given, **keywords: Unpack[IteratorKeywords]) -> Documents:
    """Nest the questions of a dump without writing an output.

    >>> with so2docs.documents("Posts.xml", tags="python") as questions:
    ...     for question in questions: ...

    Args:
        source: What `convert` takes: the `Posts.xml` of a Stack Exchange dump, as it is or
            compressed, a folder with one, `-` for standard input, or an open binary file.
        keywords: What is kept of the dump, how documents are made of it, and how the conversion
            runs: `so2docs.options.keywords.IteratorKeywords`.

    Returns:
        An iterator over the documents, in ascending question id.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: The dump does not exist. Whatever else is wrong with it is raised, as by
            `convert`, when the iteration starts.
    """
    given = checked(keywords, IteratorKeywords)
    options = options_of(given, core=resolve(given.get("core", "auto")))
    if isinstance(source, str | os.PathLike) and source != STANDARD_INPUT:
        _check_exists(os.fspath(source))
    return Documents(source, work_folder(given), options, given.get("tables"))


def _check_exists(path: str) -> None:
    if storage.is_url(path):
        return
    try:
        os.stat(path)
    except OSError as error:
        raise DumpError(path, f"cannot be read: {error.strerror}") from error
