"""Random access to the documents of an output by question id, through its index.

If the index is missing, one pass over the file finds the segments and rebuilds the index, byte for
byte as the conversion writes it.
"""

from __future__ import annotations

import operator
import os
import time
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson
from isal import isal_zlib

from so2docs.counts import plural
from so2docs.dump.layers import is_damage
from so2docs.dump.storage import unreadable_output
from so2docs.errors import (
    DocumentNotFoundError,
    OptionError,
    OutputError,
    So2docsError,
    flag,
    resumable,
)
from so2docs.output import index
from so2docs.output.compression import (
    GZIP_HEADER,
    SEGMENT_BYTES,
    read_seek_table,
    stream_header,
    stream_trailer,
    trailer_bytes,
)
from so2docs.output.index import Index, UnfitIndexError, UnusableIndexError
from so2docs.output.new_files import NewFiles, output_lock
from so2docs.output.product import read_recipe
from so2docs.output.provenance import Provenance
from so2docs.output.provenance import load as load_provenance
from so2docs.output.segments import Journal, Segment
from so2docs.progress import bar, log
from so2docs.reader.reading import (
    MOST_LINE_BYTES,
    SegmentReader,
    decompress_frame,
    describe_foreign,
    find_line,
)
from so2docs.zstd import ZstdError

_MARK = b"\x00\x00\xff\xff"
_EMPTY_LAST_BLOCK = b"\x01\x00\x00\xff\xff"
_READ_BYTES = 1024 * 1024
_LARGEST_SEGMENT = 16 * 1024 * 1024

Found = Iterator[tuple[int, bytes]]
"""The segments of a file in order, each with its size in the file and its uncompressed lines."""


def _plain_segments(file: BinaryIO) -> Found:
    """Split an uncompressed output into segments of whole lines, about a megabyte each."""
    while raw := b"".join(file.readlines(SEGMENT_BYTES)):
        yield len(raw), raw


def _gzip_segments(name: str, file: BinaryIO, size: int) -> Found:
    """Yield the segments of a gzip output."""
    before, lines = 0, b""
    for length, raw in _find_flushes(name, file, size):
        if before and raw:
            yield before, lines
            before = 0
        # ISA-L sometimes flushes twice; add the second flush to the same segment.
        before, lines = before + length, raw or lines
    if before:
        yield before, lines


def _find_flushes(name: str, file: BinaryIO, size: int) -> Found:
    """Yield the segments between the flush markers that the compressor wrote."""
    if file.read(len(GZIP_HEADER)) != GZIP_HEADER:
        raise _foreign(name)
    offset, searched, buffer = len(GZIP_HEADER), 0, bytearray()
    remaining = size - trailer_bytes("gzip", 0) - offset
    while len(buffer) <= _LARGEST_SEGMENT:
        at = buffer.find(_MARK, searched)
        if at < 0:
            searched = max(0, len(buffer) - len(_MARK) + 1)
            data = file.read(min(_READ_BYTES, max(0, remaining)))
            if not data:
                break
            buffer += data
            remaining -= len(data)
            continue
        end = at + len(_MARK)
        raw = _inflate(name, bytes(buffer[:end]))
        if raw is None:
            searched = at + 1
            continue
        yield end, raw
        offset += end
        searched = 0
        del buffer[:end]
    if len(buffer) > _LARGEST_SEGMENT and offset == len(GZIP_HEADER):
        raise _foreign(name)
    if buffer or remaining:
        raise _damage_error(name, f"after byte {offset:,}")


def _zstd_segments(name: str, file: BinaryIO, size: int) -> Found:
    """Yield the segments of a zstd output, each a frame in the seek table at its end."""
    frames = read_seek_table(file, size)
    if frames is None or any(max(sizes) > MOST_LINE_BYTES for sizes in frames):
        raise _foreign(name)
    file.seek(0)
    for length, raw_size in frames:
        offset = file.tell()
        try:
            yield length, decompress_frame(file.read(length), raw_size)
        except ZstdError:
            raise _damage_error(name, f"after byte {offset:,}") from None


def _inflate(name: str, data: bytes) -> bytes | None:
    """Decompress a segment, which may be empty; None if the bytes are not a complete segment."""
    stream = isal_zlib.decompressobj(-15)
    try:
        raw = stream.decompress(data + _EMPTY_LAST_BLOCK, MOST_LINE_BYTES)
    except Exception as error:
        if not is_damage(error):
            raise
        return None
    if len(raw) >= MOST_LINE_BYTES:
        raise _foreign(name)
    is_whole = stream.eof and not stream.unused_data
    return raw if is_whole and (not raw or raw.endswith(b"\n")) else None


def _foreign(name: str) -> OutputError:
    return OutputError(
        f"{name}: is truncated, or was not compressed by so2docs, so single documents cannot be "
        "looked up; unpack it (gunzip -k, zstd -d) and open the .jsonl, or read all of it with "
        "so2docs.read"
    )


def _damage_error(name: str, where: str) -> OutputError:
    return OutputError(f"{name}: is damaged or truncated {where}; convert the dump again")


def _line_error(name: str, offset: int) -> OutputError:
    return OutputError(
        f"{name}: after byte {offset:,}, a line is not a document with an Id; if "
        f"{flag('fields')} or {flag('drop_fields')} left it out, convert again with Id"
    )


def build(reader: SegmentReader, reason: str, *, progress: bool = False) -> bytes:
    """Read a whole output and return its index as bytes; log `reason` as the cause."""
    name, file = reader.path, reader.file
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if reader.compression == "gzip":
        found = _gzip_segments(name, file, size)
    elif reader.compression == "zstd":
        found = _zstd_segments(name, file, size)
    else:
        found = _plain_segments(file)
    made, journal = BytesIO(), Journal(stream_header(reader.compression))
    last_id: int | None = None
    with bar("indexing", size, shown=progress) as progress_bar:
        for length, raw in found:
            progress_bar.update(length)
            lines = raw.splitlines()
            ids = _first_and_last_id(name, lines, journal.end, is_first=not journal.count)
            if last_id is None:
                log.warning("%s: %s; building an index in one pass over the file", name, reason)
            elif ids[0] <= last_id:
                raise _not_ascending(name, ids[0], last_id)
            if ids[1] < ids[0]:
                raise _not_ascending(name, ids[1], ids[0])
            last_id = ids[1]
            try:
                index.add_answers(made, index.pack_answer_ids(map(orjson.loads, lines)))
            except (orjson.JSONDecodeError, AttributeError, TypeError):
                raise _line_error(name, journal.end) from None
            crc = isal_zlib.crc32(raw)
            journal.add(Segment(ids[0], journal.end, length, len(raw), len(lines), crc))
    file.seek(journal.end)
    if file.read() != stream_trailer(reader.compression, journal):
        raise _damage_error(name, "at its end")
    index.complete(made, journal, file)
    return made.getvalue()


def _first_and_last_id(
    name: str, lines: list[bytes], offset: int, *, is_first: bool
) -> tuple[int, int]:
    """Return the ids of the first and the last document of a segment."""
    try:
        first_id, last_id = (orjson.loads(line)["Id"] for line in (lines[0], lines[-1]))
    except (orjson.JSONDecodeError, TypeError, LookupError):
        first_id = last_id = None
    if isinstance(first_id, int) and isinstance(last_id, int):
        return first_id, last_id
    if is_first and (foreign := describe_foreign(b"\n".join(lines))):
        raise OutputError(f"{name}: {foreign}")
    raise _line_error(name, offset)


def _not_ascending(name: str, question_id: int, before: int) -> OutputError:
    return OutputError(
        f"{name}: question {question_id} comes after question {before}, but outputs are in "
        "ascending order of Id; convert the dump again"
    )


def _save_index(output: str, data: bytes) -> bool:
    """Save an index next to its output; return False if that fails or the output was replaced."""
    try:
        # Errors here are ignored, so they need no advice about resuming.
        with resumable(False), output_lock(output, seconds=0), NewFiles() as files:
            with Path(output).open("rb") as file:
                Index(data).check(file)
            files.write(index.index_path(output), data)
    except (OSError, So2docsError):
        return False
    return True


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
        self._lines = lru_cache(_CACHED_SEGMENTS)(self.reader.read)

    def _load(self, *, progress: bool) -> Index:
        try:
            fitting = self._fitting()
            if fitting.documents < 0:
                raise UnusableIndexError("its index does not describe documents")
            return fitting
        except UnusableIndexError as error:
            reason = str(error)
        try:
            data = build(self.reader, reason, progress=progress)
        except OSError as error:
            raise unreadable_output(self.path, error) from error
        except OutputError as error:
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

    @property
    def provenance(self) -> Provenance | None:
        """The provenance of the output; None if the index does not contain it."""
        return load_provenance(self.index.record) if self.index.record else None

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
        return (question_id for question_id, _ in self._numbered())

    def values(self) -> ValuesView[Question]:
        """Return a view of the documents; iterating over it streams the file."""
        return _Values(self)

    def items(self) -> ItemsView[int, Question]:
        """Return a view of the ids and documents; iterating over it streams the file."""
        return _Items(self)

    def documents(self) -> Iterator[Question]:
        """Iterate over all documents, in ascending order of question id."""
        return (document for _, document in self._numbered())

    def _numbered(self) -> Iterator[tuple[int, Question]]:
        """Iterate over pairs of question id and document."""
        for entry in self.index:
            lines = self.reader.read(entry).splitlines()
            with self._bad_lines(entry):
                documents: list[Question] = [orjson.loads(line) for line in lines]
                numbered = [(document["Id"], document) for document in documents]
            yield from numbered

    def __contains__(self, question_id: object) -> bool:
        try:
            return self._find(operator.index(question_id)) is not None  # type: ignore[arg-type]
        except TypeError:
            return False

    def __getitem__(self, question_id: int) -> Question:
        return self._found(question_id)[1]

    def line(self, question_id: int) -> bytes:
        """Return the document of a question as a line of JSON, without the line feed.

        Raises:
            DocumentNotFoundError: The output has no such question (a `KeyError`).
        """
        return self._found(question_id)[0]

    def find_question_id(self, answer_id: int) -> int | None:
        """Find the id of the question that an answer belongs to; None if the answer is missing.

        Args:
            answer_id: `Id` of the answer.
        """
        for segment in self.index.find_answer(_integer(answer_id)):
            entry = self.index[segment]
            lines = self._lines(entry).splitlines()
            with self._bad_lines(entry):
                for document in map(orjson.loads, lines):
                    if any(a.get("Id") == answer_id for a in document.get("Answers", ())):
                        return int(document["Id"])
        return None

    def _found(self, question_id: int) -> tuple[bytes, Question]:
        entry = self._find(_integer(question_id))
        if entry is None:
            raise DocumentNotFoundError(
                f"{self.path}: has no question {question_id}; if it is the id of an "
                "answer, `find_question_id` returns its question"
            )
        return entry

    def _find(self, question_id: int) -> tuple[bytes, Any] | None:
        segment = self.index.find(question_id)
        if segment is None:
            return None
        entry = self.index[segment]
        lines = self._lines(entry)
        with self._bad_lines(entry):
            return find_line(lines, question_id)

    @contextmanager
    def _bad_lines(self, entry: Segment) -> Iterator[None]:
        try:
            yield
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise _line_error(self.path, entry.offset) from None


def _integer(post_id: Any) -> int:
    """Return an id as an `int`; raise `OptionError` if it is not an integer."""
    try:
        return operator.index(post_id)
    except TypeError:
        raise OptionError(f"the id is {post_id!r}; it must be a whole number") from None


class _Values(ValuesView["Question"]):
    """View of the documents; iteration streams the file instead of looking up each id."""

    _mapping: Collection

    def __iter__(self) -> Iterator[Question]:
        return self._mapping.documents()


class _Items(ItemsView[int, "Question"]):
    """View of the ids and documents; iteration streams the file."""

    _mapping: Collection

    def __iter__(self) -> Iterator[tuple[int, Question]]:
        return self._mapping._numbered()


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
