"""Tags with their descriptions: a document a tag, from `Tags.xml` and two types of posts.

The posts are searched for the few rows that describe tags, in the workers, without parsing the
others. What is found goes into a temporary database, so that memory depends neither on the dump nor
on the order of its tables.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from so2docs.counts import ChunkTally, list_by_name
from so2docs.dump.dump import Chunk, slices
from so2docs.dump.opening import STANDARD_INPUT, Catalog
from so2docs.dump.tables import TableFile
from so2docs.errors import DiskFullError, OptionError
from so2docs.flat.tables import TableReader, find_dump_tables
from so2docs.options.choices import Compression, split_compression
from so2docs.options.table import OPTIONS
from so2docs.output.file import Output
from so2docs.output.new_files import NewFiles, temporary_folder
from so2docs.parse import core, rows
from so2docs.parse.posts import number
from so2docs.pipeline.chunk import malformed_error
from so2docs.pipeline.workers import Workers
from so2docs.progress import Progress
from so2docs.report import Printed
from so2docs.schema import BOOLEAN, DUMP, POSTS, Table
from so2docs.store.disk import disk_errors

_TAGS = DUMP["tags"]
_WORTH_A_PROCESS = 64 * 1024 * 1024
_TYPES = {4: "Excerpt", 5: "Wiki"}
"""Types of posts that describe tags, and the key of their text."""

_POST_IDS = {"ExcerptPostId": "Excerpt", "WikiPostId": "Wiki"}
_OF_TAG = re.compile(rb"PostTypeId\s*=\s*[\"'](?!0*[12][\"'])")
"""In a row that is neither a question nor an answer."""

_ADVICE = "give a folder or an archive with Posts.xml and Tags.xml"
_BOOLEANS = {"True": True, "False": False}
_LEVELS: dict[Compression, int] = {"gzip": 2, "zstd": 3, "none": 0}

Document = dict[str, Any]


@dataclass(slots=True, repr=False)
class TagsReport(Printed):
    """The result for the tags of a dump and the posts that describe them.

    Attributes:
        rows: Rows of `Tags.xml`.
        tags: Documents.
        strays: Rows of `Tags.xml` without a usable Id or a name, by reason.
        excerpts: Documents with an excerpt.
        wikis: Documents with a wiki.
        posts: Posts of the types 4 and 5.
        unused: Posts among them that no tag names, or that have an Id of an earlier one.
        missing: Excerpts and wikis that a tag names and that are not in the dump.
    """

    rows: int = 0
    tags: int = 0
    strays: Counter[str] = field(default_factory=Counter)
    excerpts: int = 0
    wikis: int = 0
    posts: int = 0
    unused: int = 0
    missing: int = 0

    def lines(self) -> Iterator[tuple[str, str]]:
        """Rows of the tags, and what describes them."""
        yield "rows", f"{self.rows:,}"
        yield "tags", f"{self.tags:,}"
        yield "strays", list_by_name(self.strays)
        yield "with an excerpt", f"{self.excerpts:,}"
        yield "with a wiki", f"{self.wikis:,}"
        yield "tag posts", f"{self.posts:,}, {self.unused:,} of no tag, {self.missing:,} missing"


@dataclass(frozen=True, slots=True)
class _Task:
    """A range of the posts or the tags."""

    chunk: Chunk
    table: Table


@dataclass(slots=True)
class _Result:
    """The result for a range.

    Attributes:
        task: The range.
        tally: Counts of its rows, as far as they were parsed.
        records: Post ids and JSON of posts, or 0 and JSON of tags, in the order of the dump.
    """

    task: _Task
    tally: ChunkTally = field(default_factory=ChunkTally)
    records: list[tuple[int, bytes]] = field(default_factory=list)


class Tags:
    """The documents of the tags of a dump; iterate over it once.

    Attributes:
        report: Counts of the rows, complete after the last document.
    """

    def __init__(
        self,
        dump: str,
        *,
        jobs: int | None = None,
        work_dir: str | None = None,
        progress: bool = False,
    ) -> None:
        self.report = TagsReport()
        self._documents = self._read(dump, jobs, work_dir, Progress(shown=progress))

    def __iter__(self) -> Iterator[Document]:
        return self._documents

    def __enter__(self) -> Tags:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop early, and remove the temporary files."""
        self._documents.close()

    def _read(
        self, dump: str, jobs: int | None, work_dir: str | None, progress: Progress
    ) -> Generator[Document, None, None]:
        with (
            disk_errors(),
            _database_errors(),
            Catalog() as catalog,
            temporary_folder(work_dir) as folder,
        ):
            files = find_dump_tables(dump, (POSTS.name, _TAGS.name), catalog, _ADVICE)
            size = sum(file.size for file in files)
            count = jobs or (1 if size < _WORTH_A_PROCESS else os.cpu_count() or 1)
            progress.plan(size)
            with closing(_open_database(os.path.join(folder, "tags.db"))) as database:
                with Workers(count) as workers, progress:
                    for file in files:
                        self._read_table(file, database, TableReader(workers, progress, folder))
                yield from self._join(database)

    def _read_table(
        self, file: TableFile, database: sqlite3.Connection, reader: TableReader
    ) -> None:
        is_of_posts = file.table == POSTS
        statement = (
            "INSERT OR IGNORE INTO posts (id, json) VALUES (?, ?)"
            if is_of_posts
            else "INSERT INTO tags VALUES (?, ?)"
        )
        with reader.open(file, _read_chunk, partial(_Task, table=file.table)) as (_, results):
            for result in results:
                database.executemany(statement, result.records)
                if is_of_posts:
                    self.report.posts += len(result.records)
                else:
                    self.report += result.tally

    def _join(self, database: sqlite3.Connection) -> Iterator[Document]:
        """Put the descriptions into the tags, in the order of the dump."""
        report = self.report
        for _, json in database.execute("SELECT place, json FROM tags ORDER BY rowid"):
            tag = orjson.loads(json)
            document = {"Id": tag.pop("Id"), "Name": tag.pop("TagName"), **tag}
            posts: Document = {}
            for attribute, key in _POST_IDS.items():
                if type(post_id := tag.get(attribute)) is not int:
                    continue
                cursor = database.execute("SELECT json FROM posts WHERE id = ?", (post_id,))
                if (row := cursor.fetchone()) is None:
                    report.missing += 1
                    continue
                database.execute("UPDATE posts SET used = 1 WHERE id = ?", (post_id,))
                post = orjson.loads(row[0])
                if text := post.pop("Body", ""):
                    document[key] = text
                posts[f"{key}Post"] = post
            report.tags += 1
            report.excerpts += "Excerpt" in document
            report.wikis += "Wiki" in document
            yield document | posts
        [(used,)] = database.execute("SELECT count(*) FROM posts WHERE used")
        report.unused = report.posts - used


def tags(
    dump: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> Tags:
    """Read the tags of a dump with their descriptions.

    Each is a dictionary of the attributes of `Tags.xml`, with `TagName` as `Name`; `Excerpt`, the
    text that describes it in short, and `Wiki`, the HTML that does so at length, where there are
    any; and `ExcerptPost` and `WikiPost`: the other attributes of those posts, which say when and
    by whom they were written and edited, and under which licence. They are in the order of the
    dump.

    Examples:
        >>> for tag in so2docs.tags("beer.stackexchange.com.7z"):
        ...     print(tag["Name"], tag["Count"], tag.get("Excerpt", ""))

    Args:
        dump: An archive or a folder with `Posts.xml` and `Tags.xml`, or one of these files with the
            other next to it; an archive is decompressed once.
        jobs: Worker processes; all cores if None, and one where the dump is small.
        work_dir: Folder for temporary files; that of the system if None.
        progress: Show progress bars.

    Returns:
        An iterator over the tags, which has a `report` at its end.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: The dump has no tags, or is truncated, malformed, or changed meanwhile: when the
            iteration starts.
    """
    source = os.fspath(dump)
    if source == STANDARD_INPUT:
        raise OptionError("tags are read from files; give an archive, a folder or a file")
    values = {"jobs": jobs, "work_dir": work_dir}
    read = {name: OPTIONS[name].read(OPTIONS[name].check(value)) for name, value in values.items()}
    return Tags(source, jobs=read["jobs"], work_dir=read["work_dir"], progress=progress)


def write_tags(documents: Tags, output: str, *, force: bool = False) -> TagsReport:
    """Write tags as JSON lines; the end of the name says how they are compressed.

    Args:
        documents: The tags, none of which was read.
        output: A name that ends in `.jsonl`, `.jsonl.gz` or `.jsonl.zst`; `-` is standard output.
        force: Overwrite an existing file.

    Raises:
        OutputError: It cannot be written.
        DumpError: The dump cannot be read.
    """
    name, by_name = split_compression(output)
    compression = by_name or "none"
    if output != "-" and not name.endswith(".jsonl"):
        raise OptionError(f"{output}: no format of tags; end the name in .jsonl, .jsonl.gz or .zst")
    with documents, NewFiles() as files:
        files.claim(output, force=force)
        with Output(output, compression, level=_LEVELS[compression]) as file:
            try:
                for document in documents:
                    file.write(orjson.dumps(document) + b"\n")
                complete = file.seal()
            except BaseException:
                file.discard()
                raise
        if output != "-":
            files.add(output, complete)
    return documents.report


@contextmanager
def _database_errors() -> Iterator[None]:
    """Turn what SQLite says of the temporary database into an error of this package."""
    try:
        yield
    except sqlite3.Error as error:
        raise DiskFullError(
            f"the temporary database cannot be written ({error})", retry="free some room"
        ) from error


def _open_database(path: str) -> sqlite3.Connection:
    """Make the temporary database."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TABLE posts (id INTEGER PRIMARY KEY, json BLOB, used DEFAULT 0)")
    database.execute("CREATE TABLE tags (place INTEGER, json BLOB)")
    return database


def _read_chunk(task: _Task) -> _Result:
    """Parse the rows of a range that matter.

    Raises:
        MalformedDumpError: One of them is not XML.
    """
    result = _Result(task)
    _, dump, start, end = task.chunk
    for offset, data in slices(dump, start, end):
        pieces = _candidates(data) if task.table == POSTS else iter([(0, data)])
        for position, piece in pieces:
            for part in rows.parse(piece):
                if isinstance(part, rows.Malformed):
                    result.tally.lines += data.count(b"\n", 0, position)
                    at = offset + position + part.position
                    raise malformed_error(dump, at, result.tally, piece, part)
                add = _add_post if task.table == POSTS else _add_tag
                for row in part.rows:
                    add(result, row)
        result.tally.lines += core.count_lines(data)
    return result


def _candidates(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Rows of a slice that may describe a tag; a raw `<` is in no attribute."""
    end = 0
    for match in _OF_TAG.finditer(data):
        start = data.rfind(b"<row", end, match.start())
        if start < 0:
            continue
        end = data.find(b"<row", match.end())
        end = len(data) if end < 0 else end
        yield start, data[start:end]


def _add_post(result: _Result, row: dict[str, Any]) -> None:
    post = _typed(row, POSTS)
    if post.get("PostTypeId") in _TYPES and type(post.get("Id")) is int:
        result.tally.last_id = post["Id"]
        result.records.append((post["Id"], orjson.dumps(post)))


def _add_tag(result: _Result, row: dict[str, Any]) -> None:
    tag = _typed(row, _TAGS)
    counts = result.tally
    counts.rows += 1
    if type(tag.get("Id")) is not int:
        counts.strays["tag_invalid_id" if "Id" in tag else "tag_missing_id"] += 1
    elif not tag.get("TagName"):
        counts.strays["tag_missing_name"] += 1
    else:
        result.tally.last_id = tag["Id"]
        result.records.append((0, orjson.dumps(tag)))


def _typed(row: dict[str, Any], table: Table) -> Document:
    """A row with numbers and booleans; what is neither, as the schema has it, stays a text."""
    typed = {}
    for name, text in row.items():
        is_boolean = table.attributes.get(name) == BOOLEAN
        typed[name] = number(text) if name in table.numbers else text
        if is_boolean:
            typed[name] = _BOOLEANS.get(text, text)
    return typed
