"""`duplicates`: pairs of questions that are linked as duplicates, for training embeddings.

The output is a folder with the subsets of sentence-transformers/stackexchange-duplicates on the
Hugging Face Hub, with the names and columns that its users load: `title-title-pair` (`title1`,
`title2`), `body-body-pair` (`body1`, `body2`) and `post-post-pair` (`post1`, `post2`: title and
body). The first question is the duplicate, the second one the original. That set has no
attribution. Here, `attribution` has the licences and authors of both questions: its records are in
the order of the pairs, so that trainers that use all columns of a subset get only the texts.

A link names a question in another document. The records of a document are therefore the question,
and the ids of the originals. At the end, SQLite sorts the links by original, to be joined with the
questions, and then by duplicate. Everything is read and written from start to end.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain, repeat
from typing import Annotated, Any, TypedDict

import orjson

from so2docs.errors import explain
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.recipe import Document, Recipe, Record, SetFile
from so2docs.extensions.recipes.record_sets import README
from so2docs.plugin import Output

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


_START = b'{"%b":{"id":' % _QUESTION.encode()

_TABLES = """
PRAGMA journal_mode=OFF;
PRAGMA synchronous=OFF;
CREATE TABLE links (original, duplicate);
CREATE TABLE originals (duplicate, original, json);
BEGIN;
"""


def _links(part: str) -> Iterator[tuple[int, int]]:
    """Yield the ids of each original and its duplicate."""
    with open(part, "rb") as lines:
        for line in lines:
            if not line.startswith(_START):
                link = orjson.loads(line)[_LINKS]
                yield from ((original, link["id"]) for original in link["originals"])


def _questions(part: str) -> Iterator[tuple[int, bytes]]:
    """Yield id and record of each question, in ascending order."""
    with open(part, "rb") as lines:
        for line in lines:
            if line.startswith(_START):
                yield int(line[len(_START) : line.index(b",")]), line


def _add_questions(rows: Iterable[tuple[Any, ...]], part: str) -> Iterator[tuple[Any, ...]]:
    """Yield each row with the record of the question that it names first, if there is one."""
    questions = chain(_questions(part), repeat((sys.maxsize, b"")))
    question_id, question = next(questions)
    for row in rows:
        while question_id < row[0]:
            question_id, question = next(questions)
        if question_id == row[0]:
            yield *row, question


def _join(part: str) -> Iterator[tuple[bytes, bytes]]:
    """Yield the records of each duplicate and its original, in the order of their ids."""
    # SQLite removes a database without a name by itself.
    with explain(part), closing(sqlite3.connect("", isolation_level=None)) as database:
        database.executescript(_TABLES)
        database.executemany("INSERT INTO links VALUES (?, ?)", _links(part))
        links = database.execute("SELECT DISTINCT * FROM links ORDER BY 1, 2")
        originals = ((second, first, json) for first, second, json in _add_questions(links, part))
        database.executemany("INSERT INTO originals VALUES (?, ?, ?)", originals)
        found = database.execute("SELECT * FROM originals ORDER BY 1, 2")
        for *_, original, duplicate in _add_questions(found, part):
            yield duplicate, original


def write_pairs(part: str, outputs: Mapping[str, Output]) -> int:
    """Write the subsets and the attribution of the pairs; return their number.

    Args:
        part: Path of the temporary file of records.
        outputs: The files to write, by name.
    """
    count = 0
    for texts_of_pair in _join(part):
        pair = [orjson.loads(text)[_QUESTION] for text in texts_of_pair]
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
    write=write_pairs,
    about=_README_TEXT,
    without_banner=True,
    answers="none",
    summary="a question and the question that it duplicates, for embeddings",
    tasks=("sentence-similarity", "text-ranking"),
)
