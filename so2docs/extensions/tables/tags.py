"""Read tags with their descriptions: a document for each tag, from `Tags.xml` and posts.

Posts of two types describe tags. Workers find these few posts without parsing the other posts, and
a temporary database holds them, so memory depends neither on the dump nor on the order of its
tables.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import orjson

from so2docs.counts import list_by_name
from so2docs.dump.source import Source
from so2docs.errors import OptionError
from so2docs.extensions.options import TagsOptions
from so2docs.options.choices import Compression, split_compression
from so2docs.options.request import read_options, recorded
from so2docs.options.signatures import spell_out
from so2docs.options.table import Filters, options_of
from so2docs.output.file import Target
from so2docs.output.new_files import NewFiles, temporary_folder
from so2docs.output.product import Product
from so2docs.output.provenance import Provenance, identify_tables, make_record
from so2docs.parse.opt_outs import OptOuts
from so2docs.parse.posts import number
from so2docs.parse.rows import TextRow
from so2docs.report import Printed
from so2docs.scan.chunk import Visitor
from so2docs.scan.table import OpenVisitor, visit_tables
from so2docs.schema import BOOLEAN, DUMP, OTHER, POSTS, Table
from so2docs.store.disk import disk_errors
from so2docs.store.sqlite_errors import sqlite_errors

if TYPE_CHECKING:
    from so2docs.options.keywords import TagsKeywords

_TAGS = DUMP["tags"]
_TAGS_VERSION = 1
"""Version of the documents. Increase it when the same dump would give other documents."""
_TYPES = {4: "Excerpt", 5: "Wiki"}
"""Types of posts that describe tags, with the key of their text in documents."""

_POST_IDS = {"ExcerptPostId": "Excerpt", "WikiPostId": "Wiki"}
_MADE = {"Name", OTHER, *_POST_IDS.values(), *(f"{key}Post" for key in _POST_IDS.values())}
"""Keys added to a document. Attributes of the dump with these names go into `Other`."""

_OF_TAG = re.compile(rb"PostTypeId\s*=\s*[\"'](?!0*[12][\"'])")
"""Matches the type of a post that is neither a question nor an answer."""

_ADVICE = "give a folder or an archive with Posts.xml and Tags.xml"
_BOOLEANS = {"True": True, "False": False}
_LEVELS: dict[Compression, int] = {"gzip": 2, "zstd": 3, "none": 0}

Document = dict[str, Any]


@dataclass(slots=True, repr=False)
class TagsReport(Printed):
    """Counts of the tags of a dump, and of the posts that describe them.

    Attributes:
        rows: Number of rows in `Tags.xml`.
        tags: Number of documents, one for each tag.
        strays: Number of rows in `Tags.xml` without a usable Id or without a name, by reason.
        excerpts: Number of documents with an excerpt.
        wikis: Number of documents with a wiki.
        posts: Number of posts of types 4 and 5.
        unused: Number of these posts that no tag refers to, or that repeat the Id of another post.
        filtered: Number of these posts that are left out because of `drop_users` or `drop_posts`.
        missing: Number of excerpts and wikis that a tag refers to, but that are not in the dump.
    """

    rows: int = 0
    tags: int = 0
    strays: Counter[str] = field(default_factory=Counter)
    excerpts: int = 0
    wikis: int = 0
    posts: int = 0
    unused: int = 0
    filtered: int = 0
    missing: int = 0

    def columns(self) -> dict[str, int | float]:
        """Return this dump's row of a table of several sites."""
        return {"tags": self.tags, "excerpts": self.excerpts, "wikis": self.wikis}

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield a line for each count."""
        yield "rows", f"{self.rows:,}"
        yield "tags", f"{self.tags:,}"
        yield "strays", list_by_name(self.strays)
        yield "with an excerpt", f"{self.excerpts:,}"
        yield "with a wiki", f"{self.wikis:,}"
        others = f"{self.unused:,} without a tag, {self.missing:,} missing"
        if self.filtered:
            others += f", {self.filtered:,} filtered"
        yield "tag posts", f"{self.posts:,}, {others}"


class Tags(AbstractContextManager["Tags"]):
    """The tags of a dump, as documents. They can be iterated over only once.

    Attributes:
        source: The dump.
        options: Options of the call.
        report: Counts of the tags and posts, complete after the last document.
    """

    def __init__(self, source: Source, options: TagsOptions) -> None:
        self.source = source
        self.options = options
        self.report = TagsReport()
        self._documents = self._read()

    def __iter__(self) -> Iterator[Document]:
        return self._documents

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop early, and remove the temporary files."""
        self._documents.close()

    def _read(self) -> Generator[Document, None, None]:
        options = self.options
        with (
            disk_errors(),
            sqlite_errors("the temporary database", "cannot be written"),
            temporary_folder(options.work_dir) as folder,
            closing(_open_database(os.path.join(folder, "tags.db"))) as database,
        ):
            lists = Filters(drop_users=options.drop_users, drop_posts=options.drop_posts)
            visitors: dict[str, OpenVisitor] = {
                POSTS.name: partial(_PostsVisitor, lists),
                _TAGS.name: _TagsVisitor,
            }
            results = visit_tables(
                self.source, visitors, folder, _ADVICE, jobs=options.jobs, progress=options.progress
            )
            for table, result in results:
                if table == POSTS:
                    statement = "INSERT OR IGNORE INTO posts (id, json) VALUES (?, ?)"
                    self.report.posts += len(result.value)
                    self.report.filtered += result.tally.filtered
                else:
                    statement = "INSERT INTO tags VALUES (?)"
                    self.report += result.tally
                database.executemany(statement, result.value)
            yield from self._join(database)

    def _join(self, database: sqlite3.Connection) -> Iterator[Document]:
        """Yield the tags with their descriptions, in the order of the dump."""
        report = self.report
        for (json,) in database.execute("SELECT json FROM tags ORDER BY rowid"):
            tag = orjson.loads(json)
            document = {"Id": tag.pop("Id"), "Name": tag.pop("TagName")}
            document |= {name: value for name, value in tag.items() if name not in _MADE}
            if other := {name: value for name, value in tag.items() if name in _MADE}:
                document[OTHER] = other
            posts: Document = {}
            for attribute, key in _POST_IDS.items():
                if type(post_id := tag.get(attribute)) is not int:
                    continue
                cursor = database.execute("SELECT json FROM posts WHERE id = ?", (post_id,))
                if (row := cursor.fetchone()) is None:
                    report.missing += 1
                    continue
                if row[0] is None:
                    del document[attribute]
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
        report.unused = report.posts - report.filtered - used


@spell_out(options_of(TagsOptions))
def tags(dump: str | os.PathLike[str], **keywords: Unpack[TagsKeywords]) -> Tags:
    """Read the tags of a dump with their descriptions.

    Each tag is a dictionary of the attributes of `Tags.xml`, with `TagName` as `Name`. Described
    tags also have `Excerpt`, a short text, and `Wiki`, a long description in HTML. `ExcerptPost`
    and `WikiPost` hold the other attributes of the posts that contain these texts, such as dates,
    authors, editors and licences. Tags keep the order of the dump.

    Examples:
        >>> for tag in so2docs.tags("sample.stackexchange.com.7z"):
        ...     print(tag["Name"], tag["Count"], tag.get("Excerpt", ""))

    Args:
        dump: An archive or a folder with `Posts.xml` and `Tags.xml`, or one of these files with the
            other next to it. An archive is decompressed once.
        keywords: Options: `so2docs.options.keywords.TagsKeywords`.

    Returns:
        An iterator over the tags, with a `report` that is complete after the last tag.

    Raises:
        OptionError: An option has a value that is not allowed.
        DumpError: The dump has no tags, or is truncated, malformed, or changed while being read.
            Raised when the iteration starts.
    """
    source = Source(dump)
    source.check_named("tags are read")
    return Tags(source, read_options(TagsOptions, keywords))


class TagsFile(Product[TagsReport]):
    """A file of tags as JSON lines: its name ends in `.jsonl`, `.jsonl.gz` or `.jsonl.zst`.

    The path `-` means standard output.
    """

    def __init__(self, documents: Tags, path: str) -> None:
        name, _ = split_compression(path)
        if path != "-" and not name.endswith(".jsonl"):
            raise OptionError(
                f"{path}: tags are written as JSON lines; choose a name that ends in .jsonl, "
                ".jsonl.gz or .jsonl.zst"
            )
        tables = () if path == "-" else (POSTS.name, _TAGS.name)
        files = identify_tables(documents.source, tables, _ADVICE) if tables else []
        options = recorded(documents.options)
        super().__init__(path, make_record("tags", _TAGS_VERSION, options, files))
        self._documents = documents

    def load(self, records: list[Provenance]) -> TagsReport:
        """Return the recorded counts of an earlier run."""
        return TagsReport.from_dict(records[0].counts)

    def make(self, files: NewFiles) -> TagsReport:
        """Read and write the tags, and return their counts."""
        level = _LEVELS[split_compression(self.path)[1] or "none"]
        with self._documents as documents, Target(files, self.path, level=level) as file:
            for document in documents:
                file.write(orjson.dumps(document) + b"\n")
        return documents.report

    def counts(self, result: TagsReport) -> dict[str, Any]:
        """Return all counts."""
        return result.as_dict()


def _open_database(path: str) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.execute("CREATE TABLE posts (id INTEGER PRIMARY KEY, json BLOB, used DEFAULT 0)")
    database.execute("CREATE TABLE tags (json BLOB)")
    return database


def _candidates(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the position in a slice and the bytes of each row that may describe a tag.

    A row ends at the next `<row`, since attributes never contain a raw `<`.
    """
    end = 0
    for match in _OF_TAG.finditer(data):
        start = data.rfind(b"<row", end, match.start())
        if start < 0:
            continue
        end = data.find(b"<row", match.end())
        end = len(data) if end < 0 else end
        yield start, data[start:end]


class _PostsVisitor(Visitor):
    """Collects the id of each post that describes a tag, and its JSON; None if it is dropped."""

    def __init__(self, lists: Filters) -> None:
        super().__init__()
        self._opt_outs = OptOuts(lists, POSTS)

    def select(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        return _candidates(data)

    def add(self, rows: list[TextRow]) -> None:
        for row in rows:
            is_dropped = self._opt_outs.drops(row, self.tally)
            post = _typed(row, POSTS)
            if post.get("PostTypeId") in _TYPES and type(post.get("Id")) is int:
                self.tally.filtered += is_dropped
                self.records.append((post["Id"], None if is_dropped else orjson.dumps(post)))


class _TagsVisitor(Visitor):
    """Collects the JSON of each tag, and counts strays."""

    def add(self, rows: list[TextRow]) -> None:
        strays = self.tally.strays
        for row in rows:
            tag = _typed(row, _TAGS)
            if type(tag.get("Id")) is not int:
                strays["tag_invalid_id" if "Id" in tag else "tag_missing_id"] += 1
            elif not tag.get("TagName"):
                strays["tag_missing_name"] += 1
            else:
                self.records.append((orjson.dumps(tag),))


def _typed(row: dict[str, Any], table: Table) -> Document:
    """Convert the numbers and booleans of a row to their types in the schema."""
    return {
        name: number(text)
        if name in table.numbers
        else _BOOLEANS.get(text, text)
        if table.attributes.get(name) == BOOLEAN
        else text
        for name, text in row.items()
    }
