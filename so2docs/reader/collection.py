"""Random access to the documents of an output by question id, through its index."""

from __future__ import annotations

import operator
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from so2docs.counts import plural
from so2docs.dump.storage import unreadable_output
from so2docs.errors import DocumentNotFoundError, OptionError, OutputError, So2docsError
from so2docs.output import index
from so2docs.output.index import Index, UnfitIndexError, UnusableIndexError
from so2docs.output.new_files import NewFiles, output_lock
from so2docs.output.segments import Segment
from so2docs.progress import log
from so2docs.reader import missing_index
from so2docs.reader.reading import SegmentReader

if TYPE_CHECKING:
    from so2docs.types import Question

_CACHED_SEGMENTS = 32
_PAUSE = 0.2
"""Seconds to wait for a new output, which gets its name just after its index does."""


class Collection(Mapping[int, "Question"], AbstractContextManager["Collection"]):
    """A mapping of question ids to the documents of an output, returned by `so2docs.open`.

    Iteration is in ascending order of question id.

    Examples:
        >>> docs[11227809]["Title"]
        >>> len(docs), 4 in docs
        >>> for question in docs.values(): ...

    Collections are thread-safe. A pickled collection reopens the file when it is unpickled. A
    collection caches the most recently used segments: 32, of about a megabyte each.
    """

    def __init__(self, path: str, *, progress: bool = False) -> None:
        """Open an output, as `so2docs.open` does."""
        self.path = path
        self.reader = SegmentReader(path)
        try:
            self.index = self._load(progress=progress)
        except BaseException:
            self.close()
            raise
        self._lines = lru_cache(_CACHED_SEGMENTS)(self._read_lines)
        # Iterating over values looks up one id after another; this halves the time for it.
        self._recent: dict[int, bytes] = {}

    def _load(self, *, progress: bool) -> Index:
        try:
            fitting = self._fitting()
            if fitting.documents < 0:
                raise UnusableIndexError("its index does not describe documents")
            return fitting
        except UnusableIndexError as error:
            reason = str(error)
        try:
            data = missing_index.build(self.reader, reason, progress=progress)
        except OSError as error:
            raise unreadable_output(self.path, error) from error
        except OutputError as error:
            from so2docs.output.product import read_recipe  # Needed only for this message.

            if (recipe := read_recipe(self.path)) is None:
                raise
            raise OutputError(
                f"{self.path}: holds records of the recipe {recipe}, not documents; count them "
                "with so2docs inspect, or read them with so2docs.read"
            ) from error
        self.reader.check_current()
        if not _save_index(self.path, data):
            log.warning(
                "%s: cannot be written; the index is kept in memory", index.index_path(self.path)
            )
        return Index(data)

    def _fitting(self) -> Index:
        """Load the index next to the file.

        If it belongs to another file, both may be being replaced, so this opens them once more.
        """
        try:
            return index.load(self.path, self.reader.file)
        except UnfitIndexError:
            time.sleep(_PAUSE)
            self.reader.close()
            self.reader = SegmentReader(self.path)
            return index.load(self.path, self.reader.file)

    def close(self) -> None:
        """Close the output file."""
        self.reader.close()

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        return Collection, (self.path,)

    def __repr__(self) -> str:
        return f"<Collection of {plural(len(self), 'question')} in {self.path}>"

    def __len__(self) -> int:
        return self.index.documents

    def __iter__(self) -> Iterator[int]:
        return chain.from_iterable(map(self._lines, self.index))

    def _read_lines(self, segment: Segment) -> dict[int, bytes]:
        """Return the line of each question in a segment."""
        try:
            return {_find_id(line): line for line in self.reader.read(segment).splitlines()}
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise missing_index.line_error(self.path, segment.offset) from None

    def __contains__(self, question_id: object) -> bool:
        try:
            return self._find(operator.index(question_id)) is not None  # type: ignore[arg-type]
        except TypeError:
            return False

    def __getitem__(self, question_id: int) -> Question:
        question: Question = orjson.loads(self.line(question_id))
        return question

    def line(self, question_id: int) -> bytes:
        """Return the document of a question as a line of JSON, without the line feed.

        Raises:
            DocumentNotFoundError: The output has no such question (a `KeyError`).
        """
        line = self._find(_integer(question_id))
        if line is None:
            raise DocumentNotFoundError(
                f"{self.path}: has no question {question_id}; if it is the id of an "
                "answer, `find_question_id` returns its question"
            )
        return line

    def _find(self, question_id: int) -> bytes | None:
        lines = self._recent  # Another thread may replace it.
        if question_id not in lines and (number := self.index.find(question_id)) is not None:
            lines = self._recent = self._lines(self.index[number])
        return lines.get(question_id)

    def find_question_id(self, answer_id: int) -> int | None:
        """Find the id of the question that an answer belongs to; None if the answer is missing.

        Args:
            answer_id: `Id` of the answer.
        """
        for number in self.index.find_answer(_integer(answer_id)):
            for question_id, line in self._lines(self.index[number]).items():
                answers = orjson.loads(line).get("Answers", ())
                if any(answer.get("Id") == answer_id for answer in answers):
                    return question_id
        return None


def _save_index(output: str, data: bytes) -> bool:
    """Save an index next to its output; return False if that fails or the output was replaced."""
    try:
        with output_lock(output, seconds=0), NewFiles(output) as files:
            with Path(output).open("rb") as file:
                Index(data).check(file)
            files.write(index.index_path(output), data)
    except (OSError, So2docsError):
        return False
    return True


_ID = re.compile(rb'\{"Id":(-?[0-9]+)[,}]')


def _find_id(line: bytes) -> int:
    """Return the question id of a line, which is parsed only if it does not begin with the id."""
    match = _ID.match(line)
    question_id: int = int(match[1]) if match else orjson.loads(line)["Id"]
    return question_id


def _integer(post_id: Any) -> int:
    """Return an id as an `int`; raise `OptionError` if it is not an integer."""
    try:
        return operator.index(post_id)
    except TypeError:
        raise OptionError(f"the id is {post_id!r}; it must be a whole number") from None


def open(  # noqa: A001
    path: str | os.PathLike[str], *, progress: bool = False
) -> Collection:
    """Open an output to look up documents by id, in milliseconds for files of any size.

    Look-ups use the index that `convert` wrote next to the output. If the index is missing, damaged
    or belongs to another file, one pass over the output builds a new index, and a warning is
    logged.

    Args:
        path: An output of `convert`, compressed or not; or any uncompressed file of JSON lines in
            ascending order of `Id`.
        progress: Show a progress bar while building an index.

    Returns:
        A collection; close it after use, or use it as a context manager. It supports `docs[4]`,
        `4 in docs`, `len(docs)` and `for question in docs.values()`.

    Raises:
        OutputError: The file cannot be read, is damaged, or cannot be indexed.
    """
    return Collection(os.fspath(path), progress=progress)
