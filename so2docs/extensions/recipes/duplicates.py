"""`duplicates`: pairs of questions that are linked as duplicates, for training embeddings.

The output is a folder with the subsets of sentence-transformers/stackexchange-duplicates on the
Hugging Face Hub, with the names and columns that its users load: `title-title-pair` (`title1`,
`title2`), `body-body-pair` (`body1`, `body2`) and `post-post-pair` (`post1`, `post2`: title and
body). The first question is the duplicate, the second one the original. That set has no
attribution. Here, `attribution` has the licences and authors of both questions: its records are in
the order of the pairs, so that trainers that use all columns of a subset get only the texts.

A link names a question in another document. The records of a document are therefore the question,
and the ids of the originals. At the end, two sorts bring each original to its duplicates: the links
are sorted by original, joined with the questions, and sorted by duplicate. Everything is read and
written from start to end, in bounded memory.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from tempfile import TemporaryFile
from typing import IO, Annotated, Any, TypedDict

import orjson

from so2docs.errors import explain
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.recipe import Document, Recipe, Record, SetFile
from so2docs.extensions.recipes.record_sets import README, finish_set
from so2docs.output.file import Output

_DUPLICATE = 3
"""`LinkTypeId` of links to originals: table LinkTypes of the Stack Exchange Data Explorer."""

_TEXTS = {"post": ("title", "body"), "title": ("title",), "body": ("body",)}
"""The parts of a text of each subset, by the start of the names of its columns."""

_FILES = {name: f"{name}-{name}-pair/train.jsonl" for name in _TEXTS}
_ATTRIBUTION = "attribution/train.jsonl"
_QUESTION, _LINKS = "question", "duplicate_of"


def _columns(name: str, values: Iterable[Any]) -> Record:
    return {f"{name}{number}": value for number, value in enumerate(values, start=1)}


def duplicates(question: Document) -> Iterator[Record]:
    """Make a record of a question, and one of the ids of the questions that it duplicates."""
    links = question.get("Links", ())
    originals = {link["RelatedPostId"] for link in links if link.get("LinkTypeId") == _DUPLICATE}
    originals.discard(question["Id"])
    if originals:
        yield {_LINKS: {"id": question["Id"], "originals": sorted(originals)}}
    yield {
        _QUESTION: {
            "id": question["Id"],
            "title": question.get("Title", ""),
            "body": posts.text(question),
            "metadata": posts.metadata(question),
        }
    }


_MOST_BYTES = 1 << 24
"""Number of bytes that a sort keeps in memory, as lines that take up to twice as much."""

_OFFSET = 1 << 63
"""Added to ids, so that negative ids sort before positive ones."""


class Sorter(AbstractContextManager["Sorter"]):
    """Sorts lines by two ids. Lines that do not fit in memory are in sorted temporary files.

    Args:
        folder: Folder for temporary files, which have no names.
        most_bytes: Number of bytes to keep in memory.
    """

    def __init__(self, folder: str, most_bytes: int = _MOST_BYTES) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._lines: list[bytes] = []
        self._bytes = 0
        self._files = ExitStack()
        self._runs: list[IO[bytes]] = []

    def __exit__(self, *exception: object) -> None:
        self._files.close()

    def add(self, first: int, second: int, data: bytes = b"") -> None:
        """Add a line, which contains no line break."""
        line = b"%020d %020d %b\n" % (first + _OFFSET, second + _OFFSET, data)
        self._lines.append(line)
        self._bytes += len(line)
        if self._bytes >= self._most_bytes:
            self._write_run()

    def _write_run(self) -> None:
        self._lines.sort()
        with explain(self._folder):
            run = self._files.enter_context(TemporaryFile(dir=self._folder))  # noqa: SIM115
            run.writelines(self._lines)
            run.seek(0)
        self._runs.append(run)
        self._lines, self._bytes = [], 0

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield the ids and the data of all lines in ascending order."""
        self._lines.sort()
        for line in heapq.merge(*self._runs, self._lines):
            first, second, data = line[:-1].split(b" ", 2)
            yield int(first) - _OFFSET, int(second) - _OFFSET, data


_START = b'{"%b":{"id":' % _QUESTION.encode()


def _questions(part: str) -> Iterator[tuple[int, bytes]]:
    """Yield id and record of each question, in ascending order."""
    with open(part, "rb") as lines:
        for line in lines:
            if line.startswith(_START):
                yield int(line[len(_START) : line.index(b",")]), line[:-1]


def _join(part: str, links: Sorter) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Yield each link with the record of the question that it names first, if there is one."""
    questions = _questions(part)
    question_id, question = next(questions, (_OFFSET, b""))
    for first, second, data in links:
        while question_id < first:
            question_id, question = next(questions, (_OFFSET, b""))
        if question_id == first:
            yield first, second, data, question


def write_pairs(part: str, outputs: Mapping[str, Output]) -> int:
    """Write the subsets and the attribution of the pairs; return their number.

    Args:
        part: Path of the temporary file of records.
        outputs: The files to write, by name.
    """
    count, folder = 0, os.path.dirname(part)
    with Sorter(folder) as by_original, Sorter(folder) as by_duplicate:
        with open(part, "rb") as lines:
            for line in lines:
                if not line.startswith(_START):
                    link = orjson.loads(line)[_LINKS]
                    for original in link["originals"]:
                        by_original.add(original, link["id"])
        for original, duplicate, _, question in _join(part, by_original):
            by_duplicate.add(duplicate, original, question)
        for *_, original_question, question in _join(part, by_duplicate):
            pair = [orjson.loads(text)[_QUESTION] for text in (question, original_question)]
            for name, parts in _TEXTS.items():
                texts = ("\n\n".join(filter(None, map(side.get, parts))) for side in pair)
                outputs[_FILES[name]].write(orjson.dumps(_columns(name, texts)) + b"\n")
            sides = _columns("question", (side["metadata"] for side in pair))
            outputs[_ATTRIBUTION].write(orjson.dumps(sides) + b"\n")
            count += 1
    return count


_README_TEXT = """\
# Duplicate questions

Made from a Stack Exchange data dump by so2docs. The subsets `title-title-pair`, `body-body-pair`
and `post-post-pair` have the texts of the same pairs, a duplicate and its original. `attribution`
has the licence and the authors of both questions of each pair, in the same order.
"""


def _pair_of(prefix: str, kind: Any, meaning: str) -> Any:
    """Make the `TypedDict` of a column of the duplicate, and one of the original."""
    sides = _columns(prefix, ("duplicate", "original"))
    columns = {name: Annotated[kind, meaning.format(side)] for name, side in sides.items()}
    return TypedDict(prefix, columns)  # type: ignore[operator]


_SOURCES = _pair_of("question", posts.Metadata, "source, licence and authors of the {}")
DUPLICATES = Recipe(
    "duplicates",
    duplicates,
    tables=("links",),
    optional_tables=("users",),
    fields=("Id", "Title", "Body", "Score", "Tags", "Links.LinkTypeId", "Links.RelatedPostId"),
    body="text",
    attributed="posts",
    files={
        **{
            file: SetFile(_pair_of(name, str, "text of the {}"), os.path.dirname(file))
            for name, file in _FILES.items()
        },
        _ATTRIBUTION: SetFile(_SOURCES, "attribution"),
        README: None,
    },
    finish=partial(finish_set, write=write_pairs, text=_README_TEXT),
    without_banner=True,
    questions_only=True,
    summary="a question and the question that it duplicates, for embeddings",
    tasks=("sentence-similarity", "text-ranking"),
)
