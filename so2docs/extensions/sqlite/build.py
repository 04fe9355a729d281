"""Make a database from documents: first rows, then indexes, then the full-text index.

The file is written as `DATABASE.part`, without a journal, and renamed when complete. A few
batches of documents, some rows of later answers and SQLite's page cache are in memory. A worker
process makes the full-text index, and others make rows if there are more than two processes; this
process reads documents and inserts rows.
"""

from __future__ import annotations

import itertools
import math
import os
import sqlite3
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard, Unpack, cast

import orjson

from so2docs.domain import SCORE_BINS
from so2docs.dump.source import Source
from so2docs.errors import OptionError, OutputError, flag, resumable, taking_options
from so2docs.escape import on_one_line
from so2docs.extensions.options import DatabaseOptions
from so2docs.extensions.sites.outputs import (
    check_holds_outputs,
    is_folder_of_outputs,
    outputs_in,
    readable,
)
from so2docs.extensions.sqlite.about import datasette_files, read_about
from so2docs.extensions.sqlite.ascending import AscendingRows
from so2docs.extensions.sqlite.layout import (
    ABOUT,
    BY_ROW,
    FORMAT,
    LAYOUTS,
    PAGES,
    PROFILE,
    SEARCH,
    TEXTS,
    create_by_row,
    create_table,
    create_views,
    listed,
    quoted,
    wrap,
)
from so2docs.extensions.sqlite.rows import (
    Batch,
    Made,
    Tally,
    Values,
    make_packed_rows,
    make_rows,
    unpack,
)
from so2docs.extensions.sqlite.search import copy_index, index_texts
from so2docs.extensions.sqlite.sources import (
    DocumentSource,
    PathLike,
    identify_profiles,
    identify_tags,
    open_source,
    read_profiles,
)
from so2docs.extensions.sqlite_file import connect, explained
from so2docs.extensions.tables.tags import Tags
from so2docs.extensions.tables.tags import tags as read_tags
from so2docs.options.choices import Search, split_compression
from so2docs.options.request import read_options, recorded
from so2docs.options.signatures import spell_out
from so2docs.options.sites import published_host
from so2docs.options.table import options_of
from so2docs.output.new_files import NewFiles, temporary_folder, write_file
from so2docs.output.part_files import FileState, finish_file, part_path
from so2docs.output.product import Product, read_provenance
from so2docs.output.provenance import File, Provenance, make_record, printable_name
from so2docs.processes.pool import Workers
from so2docs.processes.processors import count_processors
from so2docs.processes.worker import rare_collections
from so2docs.progress import Shown, bar
from so2docs.reader.reading import read
from so2docs.schema import DUMP, RESERVED

if TYPE_CHECKING:
    import sqlite_utils

    from so2docs.options.keywords import DatabaseKeywords

_MOST_TAGS = 30
_LISTS = ("drop_users", "drop_posts")

Connection = sqlite3.Connection


def create_indexes(
    database: sqlite_utils.Database, tables: list[str], site_field: str | None, *, progress: Shown
) -> None:
    """Make the tag tables, rows for users known only by id, the views, and all indexes."""
    site = [] if site_field is None else [site_field]
    has_users = "users" in tables
    own_site = "".join(f"questions.{quoted(name)}, " for name in site)
    tag = listed([*site, "Tag"])
    for table in _MADE_AT_THE_END:
        create_table(database, table, site_field, with_users=has_users)
    statements = [
        # Insert in key order, so that the tree is written from left to right.
        f"INSERT OR IGNORE INTO question_tags ({listed([*site, 'Tag', 'QuestionId'])}) "
        f"SELECT {own_site}value AS Tag, questions.Id FROM questions, json_each(questions.Tags) "
        f"ORDER BY {own_site}Tag, questions.Id",
        f"INSERT INTO tags ({listed([*site, 'Name', 'Questions'])}) "
        f"SELECT {tag}, count(*) FROM question_tags GROUP BY {tag}",
    ]
    if has_users:
        # Add a row with only an id for each user who is referenced but missing in the documents.
        statements += [
            f"INSERT OR IGNORE INTO users ({listed([*site, 'Id'])}) "
            f"SELECT DISTINCT {listed([*site, column])} FROM {table} WHERE {column} IS NOT NULL"
            for table in tables
            for column, other in LAYOUTS[table].references
            if other == "users"
        ]
    create_views(database, site_field)
    indexes = [(table, columns) for table in tables for columns in LAYOUTS[table].indexes]
    steps = len(statements) + len(indexes)
    with bar("indexes", steps, unit=" steps", shown=progress) as progress_bar:
        for statement in statements:
            database.execute(statement)
            progress_bar.update(1)
        for table, columns in indexes:
            database.table(table).create_index([*site, *columns])
            progress_bar.update(1)
    for table in tables:
        database.execute(f"ANALYZE {table}")


def _overview(connection: Connection, site_field: str | None, site: str | None) -> dict[str, Any]:
    """Compute the counts for the front page of a site."""
    where = "1" if site_field is None else f"{quoted(site_field)} = :site"

    def rows(sql: str, **values: Any) -> list[Any]:
        return connection.execute(sql.format(where=where), values | {"site": site}).fetchall()

    def by_year(table: str) -> dict[str, int]:
        return dict(
            rows(
                f"SELECT substr(CreationDate, 1, 4), count(*) FROM {table} WHERE {{where}} "
                "AND CreationDate IS NOT NULL GROUP BY 1 ORDER BY 1"
            )
        )

    def by_score(table: str) -> dict[str, int]:
        sql = f"SELECT count(*) FROM {table} WHERE {{where}} AND Score BETWEEN :low AND :high"
        least, most = -(1 << 63), (1 << 63) - 1
        return {
            label: rows(
                sql, low=least if low is None else low, high=most if high is None else high
            )[0][0]
            for label, low, high in SCORE_BINS
        }

    [(questions, accepted)] = rows(
        "SELECT count(*), count(AcceptedAnswerId) FROM questions WHERE {where}"
    )
    # Two queries, each of which reads an index instead of all questions.
    [(first, last)] = rows(
        "SELECT min(CreationDate), max(CreationDate) FROM questions WHERE {where}"
    )
    [(answers, answered)] = rows(
        "SELECT count(*), count(DISTINCT ParentId) FROM answers WHERE {where}"
    )
    return {
        "site": site,
        "questions": questions,
        "answers": answers,
        "accepted": accepted,
        "unanswered": questions - answered,
        "first": first,
        "last": last,
        "tags": rows("SELECT count(*) FROM tags WHERE {where}")[0][0],
        "questions_by_year": by_year("questions"),
        "answers_by_year": by_year("answers"),
        "question_scores": by_score("questions"),
        "answer_scores": by_score("answers"),
        "top_tags": rows(
            "SELECT Name, Questions FROM tags WHERE {where} ORDER BY Questions DESC, Name "
            f"LIMIT {_MOST_TAGS}"
        ),
    }


_BATCH = 500
"""Number of documents in a batch; 2,000 need 413 MiB of memory for 100 MB of a dump."""
_BATCH_BYTES = 8 * 1024 * 1024
_MOST_ADDED = 4 * 1024 * 1024
"""Number of characters after which waiting rows are sorted and inserted."""
_MOST_MAKERS = 2
"""Maximum number of processes that make rows; two are as fast as the inserts."""
_MADE_AT_THE_END = ("tags", "question_tags")


@dataclass(slots=True)
class Database:
    """The result of making a database.

    Attributes:
        path: Name of the database.
        rows: Number of rows in each table.
        search: Texts in the full-text index: `titles`, `all` or `none`.
        file_bytes: Size of the file in bytes.
        seconds: Wall time in seconds.
    """

    path: str
    rows: dict[str, int] = field(default_factory=dict)
    search: Search = "all"
    file_bytes: int = 0
    seconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values."""
        return asdict(self)

    def columns(self) -> dict[str, int | float]:
        """Return this site's row of a table of sites: numbers by column."""
        numbers = {name: self.rows[name] for name in ("questions", "answers")}
        return {**numbers, "bytes": self.file_bytes}

    def __str__(self) -> str:
        lines = [f"{name:<20} {count:,}" for name, count in self.rows.items()]
        words = {"all": "titles, tags, bodies", "titles": "titles, tags", "none": "no"}
        lines.append(f"{'full text':<20} {words[self.search]}")
        lines.append(f"{'database':<20} {self.file_bytes / 1e6:,.2f} MB  {on_one_line(self.path)}")
        lines.append(f"{'time':<20} {self.seconds:.2f} s")
        return "\n".join(lines)


@spell_out(options_of(DatabaseOptions))
def to_sqlite(
    source: PathLike | Sequence[PathLike] | Iterable[dict[str, Any]],
    database: PathLike | None = None,
    **keywords: Unpack[DatabaseKeywords],
) -> Database:
    """Make an SQLite database with full-text search from an output or a dump.

    Files for Datasette are written next to it: `NAME.metadata.json` and `NAME.datasette.yaml`.

    Args:
        source: An output of `convert` in JSON lines, or a dump in any form that `convert` accepts;
            with `site_field`, also a list of these or a folder of outputs. It can also be an
            iterable of documents.
        database: Name of the database; if None, the name of the source with `.db`, in the current
            folder.
        keywords: Options: `so2docs.options.keywords.DatabaseKeywords`.

    Returns:
        The path, numbers of rows and size of the new or existing database, and the time taken.

    Raises:
        So2docsError: A source cannot be read, a document does not fit the tables, or the database
            cannot be written.
    """
    product = find_database(source, database, **keywords)
    options = product.options
    return product.build(force=options.force, update=options.update)


@taking_options(options_of(DatabaseOptions))
def find_database(
    source: Any, database: PathLike | None = None, **keywords: Unpack[DatabaseKeywords]
) -> DatabaseFile:
    """Check the arguments of `to_sqlite`; return the database to make."""
    options = read_options(DatabaseOptions, keywords)
    _check_site_field(options.site_field)
    sources = [open_source(item) for item in _each(source)]
    if not sources:
        raise OptionError("a database needs an output or a dump; give one")
    if len(sources) > 1 and options.site_field is None:
        raise OptionError(
            "ids are only unique per site; for several inputs, name a column with "
            f"{flag('site_field')}"
        )
    options = _with_tags_of_dump(sources, options)
    _check_lists(sources, options)
    tags, profiles = options.tag_texts, options.profiles
    files = [
        file._replace(role=f"{number} {file.role}")
        for number, item in enumerate(sources, 1)
        for file in item.identify(options.nest, options.as_of)
    ]
    if _is_path(tags):
        path = os.fspath(tags)
        files.append(File.of("tags", path) if _is_output_of_tags(path) else identify_tags(path))
    elif tags is not None:
        files.append(File.read_once("tags", ""))
    if profiles is not None:
        files.append(identify_profiles(profiles))
    output = os.fspath(database) if database is not None else f"{sources[0].stem}.db"
    record = make_record("sqlite", FORMAT, recorded(options), files)
    lists = {name: keywords[name] for name in _LISTS if name in keywords}  # type: ignore[literal-required]
    return DatabaseFile(output, record, sources, options, lists)


def _with_tags_of_dump(sources: list[DocumentSource], options: DatabaseOptions) -> DatabaseOptions:
    """Add the texts of tags from a dump that has them, unless it is restored as of a date."""
    name = sources[0].name
    is_dump = os.path.exists(name) and not sources[0].is_output
    if not is_dump or (options.tag_texts, options.site_field, options.as_of) != (None, None, None):
        return options
    with Source(name) as source:
        has_tags = source.locate(DUMP["tags"]) is not None
    return replace(options, tag_texts=name) if has_tags else options


def _check_lists(sources: list[DocumentSource], options: DatabaseOptions) -> None:
    """Refuse tags that may hold texts of users and posts that the documents leave out.

    Raises:
        OptionError: The tags were made without the lists of the documents, or no dump is read, to
            which the lists of the call apply.
    """
    own = {name: recorded(options)[name] for name in _LISTS}
    tags, of_tags = options.tag_texts, dict[str, Any]()
    reads_dump = not all(source.is_output for source in sources)
    if _is_path(tags) and _is_output_of_tags(tags):
        record = read_provenance(os.fspath(tags))
        of_tags = {} if record is None else record.options
    elif _is_path(tags):
        of_tags, reads_dump = own, True
    elif isinstance(tags, Tags):
        of_tags = recorded(tags.options)
    for name in _LISTS:
        if own[name] is not None and not reads_dump:
            raise OptionError(f"{flag(name)} applies only to dumps; leave it out, or give the dump")
        if not (_is_path(tags) or isinstance(tags, Tags)):
            continue  # No tags, or those of a program, which are not known to be of a dump.
        for source in sources:
            expected = own[name]
            if source.is_output:
                expected = source.provenance and source.provenance.options.get(name)
            if expected is not None and expected != of_tags.get(name):
                raise OptionError(
                    f"{source.label}: was made with {flag(name)} ({expected}), but the tags were "
                    "not, so they may contain texts that the list leaves out; make the tags with "
                    "the same list"
                )


class DatabaseFile(Product[Database]):
    """A database as a product; a table of the database has its record, too."""

    noun = "database"

    def __init__(
        self,
        path: str,
        provenance: Provenance,
        sources: list[DocumentSource],
        options: DatabaseOptions,
        lists: dict[str, Any],
    ) -> None:
        super().__init__(path, provenance, [source.name for source in sources])
        self.options = options
        self._sources, self._lists = sources, lists

    def recorded_files(self, files: NewFiles) -> list[tuple[str, FileState]]:
        """Return the database alone: users may edit the files for Datasette."""
        return files.main_files()[:1]

    def counts(self, result: Database) -> dict[str, Any]:
        """Return no counts, because the database has them."""
        return {}

    def load(self, records: list[Provenance]) -> Database:
        """Return the numbers of rows and the size of the database."""
        about = read_about(self.path)
        size = os.path.getsize(self.path)
        return Database(self.path, about.rows, records[0].options["search"], size)

    def find(self, *, force: bool, update: bool = False) -> Database | None:
        """Find the database as any product; if it is up to date, write missing Datasette files.

        These files are not compared, because users may edit them.
        """
        result = super().find(force=force, update=update)
        if result is not None:
            for name, content in datasette_files(self.path, read_about(self.path)).items():
                if not os.path.exists(name):
                    write_file(name, content)
        return result

    def make(self, files: NewFiles) -> Database:
        """Read the documents, insert their rows, and make the indexes."""
        begun = time.perf_counter()
        path, options = self.path, self.options
        with resumable(False):
            with (
                rare_collections(),
                temporary_folder(os.path.dirname(path) or ".") as folder,
                explained(path),
                closing(connect(part_path(path))) as connection,
                closing(_Building(connection, self.provenance, folder)) as building,
            ):
                loaded = building.load_all(self._read_documents(), options.jobs)
                make_indexes = partial(building.make_indexes, progress=options.progress)
                if options.search == "none":
                    deque(loaded, maxlen=0)
                    make_indexes()
                else:
                    index = os.path.join(folder, "search.db")
                    sql = building.create_search()
                    index_texts(
                        loaded, index, sql, is_apart=options.jobs != 1, meanwhile=make_indexes
                    )
                    copy_index(connection, index)
                building.describe_tags(_read_tags(options.tag_texts, options.jobs, self._lists))
                if options.profiles is not None:
                    building.add_profiles(
                        read_profiles(
                            options.profiles, jobs=options.jobs, progress=options.progress
                        )
                    )
                rows = building.finish()
            database = finish_file(path)
            files.add(path, database)
            for name, content in datasette_files(path, read_about(part_path(path))).items():
                files.write(name, content)
        seconds = time.perf_counter() - begun
        return Database(path, rows, options.search, database.size, seconds)

    def _read_documents(self) -> Iterator[tuple[DocumentSource, Iterable[Any], str | None]]:
        options = self.options
        given = {"nest": options.nest, "as_of": options.as_of}
        conversion = {name: value for name, value in given.items() if value}
        for item in self._sources:
            lists = {} if item.is_output else self._lists
            documents = item.read(conversion | lists, jobs=options.jobs, progress=options.progress)
            yield item, documents, options.site


def _read_tags(tags: Any, jobs: int | None, lists: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Read tags from an output of `so2docs tags` or a dump, or return the given tags."""
    if not _is_path(tags):
        return cast("Iterable[dict[str, Any]]", tags or ())
    if _is_output_of_tags(tags):
        return cast("Iterable[dict[str, Any]]", read(tags))
    return read_tags(tags, jobs=jobs, **lists)


def _is_output_of_tags(path: PathLike) -> bool:
    return split_compression(os.fspath(path))[0].endswith(".jsonl")


class _Building:
    """A database that is being made."""

    def __init__(self, connection: sqlite3.Connection, record: Provenance, folder: str) -> None:
        self.connection, self._record = connection, record
        self._database = wrap(connection)
        self.search: Search = record.options["search"]
        self.site_field: str | None = record.options["site_field"]
        self._inserts: dict[str, str] = {}
        self._sources: list[dict[str, Any]] = []
        self._next_row = 0
        # Row numbers ascend in a database of several sites.
        waiting = ("answers", "texts") if self.site_field is None else ()
        self._waiting = {name: AscendingRows(os.path.join(folder, name)) for name in waiting}

    def close(self) -> None:
        """Close the temporary files."""
        for waiting in self._waiting.values():
            waiting.close()

    def load_all(
        self, sources: Iterable[tuple[DocumentSource, Iterable[Any], str | None]], jobs: int | None
    ) -> Iterator[list[Values]]:
        """Insert the rows of all sources; yield lists of texts to index."""
        for source, documents, site in sources:
            self._sources.append((yield from self._load(source, documents, site, jobs)))

    def _load(
        self,
        source: DocumentSource,
        documents: Iterable[Any],
        site: str | None,
        jobs: int | None,
    ) -> Generator[list[Values], None, dict[str, Any]]:
        """Insert the rows of a source; yield the texts to index, and return its description."""
        total = Tally()
        batches = self._batches(source, documents)
        # Peek at the first batches; at most two stay in memory.
        start = list(itertools.islice(batches, 2))
        # This process makes the rows if there are two, because sending rows costs CPU time. For
        # small inputs, processes cost more than they save.
        makers = min(_MOST_MAKERS, (jobs or count_processors()) - 2)
        is_apart = makers > 0 and source.documents is None and len(start) > 1
        make = make_packed_rows if is_apart else make_rows
        with Workers(makers if is_apart else 1, is_apart=is_apart) as workers:
            for made in workers.run(make, itertools.chain(start, batches)):
                yield from self._add(made, source.label)
                total += made.tally
        yield from self._insert_waiting(math.inf, source.label)
        sites = sorted(total.sites) if self.site_field is not None else [None]
        return {
            "source": printable_name(source.name),
            "provenance": None if source.provenance is None else source.provenance.as_dict(),
            "parts": sorted(total.parts),
            "sites": [
                {"name": name, "host": site or published_host(name) or source.host}
                for name in sites
            ],
        }

    def _batches(self, source: DocumentSource, documents: Iterable[Any]) -> Iterator[Batch]:
        make = partial(
            Batch,
            label=source.label,
            unit="line" if source.is_output else "document",
            site_field=self.site_field,
            site=source.stem,
            search=self.search,
        )
        first, some, size = 1, list[Any](), 0
        for document in documents:
            some.append(document)
            size += len(document) if isinstance(document, bytes) else 0
            if len(some) >= _BATCH or size >= _BATCH_BYTES:
                yield make(some, first=first)
                first, some, size = first + len(some), [], 0
        if some:
            yield make(some, first=first)

    def _add(self, made: Made, label: str) -> Iterator[list[Values]]:
        """Insert the rows of a batch of documents, except those with ids of later questions.

        Yields:
            The texts inserted, each with its row number, for the full-text index.
        """
        rows: dict[str, list[Values]] = unpack(made.rows)
        first_row = self._next_row
        if self.site_field is not None:
            self._next_row += made.tally.numbered
            for table in {"questions", "answers"} & rows.keys():
                rows[table] = [(*row[:-1], row[-1] + first_row) for row in rows[table]]
            for table in {"texts", "documents", PAGES} & rows.keys():
                rows[table] = [(row[0] + first_row, *row[1:]) for row in rows[table]]
            rows["documents"] = [
                (*row[:-2], row[-2] + first_row, row[-1]) for row in rows["documents"]
            ]
        # Create the table of users first: other tables refer to it only if it already exists, which
        # requires that the first documents have users.
        for table in ("users", "questions", "answers", *rows):
            if table not in self._inserts and (table != "users" or table in rows):
                self._create(table)
        for table, values in rows.items():
            if table in self._waiting:
                self._waiting[table].add(values)
            else:
                self._insert(table, values, label)
        if any(waiting.added > _MOST_ADDED for waiting in self._waiting.values()):
            yield from self._insert_waiting(rows["questions"][-1][0], label)
        elif not self._waiting and "texts" in rows:
            yield [(row[0], *row[-len(TEXTS) :]) for row in rows["texts"]]

    def _insert_waiting(self, limit: float, label: str) -> Iterator[list[Values]]:
        """Insert the waiting rows with ids below a limit; yield the texts among them."""
        for table, waiting in self._waiting.items():
            for rows in waiting.up_to(limit):
                self._insert(table, rows, label)
                if table == "texts":
                    yield rows

    def _insert(self, table: str, rows: list[Values], label: str) -> None:
        """Insert rows, which come from the source with this label.

        Raises:
            OutputError: An id occurs twice.
        """
        before = self.connection.total_changes
        try:
            self.connection.executemany(self._inserts[table], rows)
        except sqlite3.IntegrityError:
            # Find the failing row by the number of rows inserted before it.
            row = rows[self.connection.total_changes - before]
            place = 0 if self.site_field is None else 2 if table in BY_ROW else 1
            raise OutputError(
                f"{label}: {table}: Id {row[place]} occurs twice; ids are only unique "
                f"per site: for several sites, name a column with {flag('site_field')}"
            ) from None

    def _create(self, table: str) -> None:
        if table == PAGES or table in BY_ROW:
            create_by_row(self._database, table, self.site_field)
        else:
            with_users = "users" in self._inserts
            create_table(self._database, table, self.site_field, with_users=with_users)
        columns = [row[1] for row in self.connection.execute(f"PRAGMA table_info({table})")]
        if table in LAYOUTS:
            row = (*LAYOUTS[table].attributes, *LAYOUTS[table].made)
            # The others are the site, which comes first, and `Row`, which comes last.
            others = [name for name in columns if name not in row]
            columns = [*others[:1], *row, *others[1:]] if self.site_field else list(row)
        marks = ",".join("?" * len(columns))
        end = ""
        if table == "users":
            # Fill in missing attributes, because the same user occurs several times, sometimes with
            # fewer attributes.
            key, *more = LAYOUTS[table].columns
            news = " OR ".join(f"({n} IS NULL AND excluded.{n} IS NOT NULL)" for n in more)
            changes = ", ".join(f"{n} = coalesce({n}, excluded.{n})" for n in more)
            site = [] if self.site_field is None else [self.site_field]
            end = f" ON CONFLICT ({listed([*site, key])}) DO UPDATE SET {changes} WHERE {news}"
        self._inserts[table] = f"INSERT INTO {table} ({listed(columns)}) VALUES ({marks}){end}"

    def create_search(self) -> str:
        """Create the texts and the full-text index over them; return the SQL of the index."""
        self._create("texts")
        return str(self._database.table(SEARCH).schema)

    def make_indexes(self, *, progress: Shown) -> None:
        """Make the tables, views and indexes that need all rows, except the full-text index."""
        for table in ("questions", "answers", "documents", PAGES):
            if table not in self._inserts:
                self._create(table)
        create_indexes(self._database, self._tables(), self.site_field, progress=progress)

    def describe_tags(self, tags: Iterable[dict[str, Any]]) -> None:
        """Add excerpts and wikis to the tags of questions.

        Raises:
            OutputError: A line was not written by `so2docs tags`.
        """
        for tag in tags:
            is_tag = isinstance(tag, dict)
            texts = [tag.get(name) for name in ("Excerpt", "Wiki", "Name")] if is_tag else [None]
            if texts[-1] is None or not all(isinstance(text, str | None) for text in texts):
                raise OutputError(
                    "tags: a line is not a tag; give an output of so2docs tags, or the dump"
                )
            self.connection.execute("UPDATE tags SET Excerpt = ?, Wiki = ? WHERE Name = ?", texts)

    def add_profiles(self, profiles: Iterable[list[tuple[Any, ...]]]) -> None:
        """Add profiles to the users in the documents.

        Raises:
            OutputError: The documents have no users.
        """
        if "users" not in self._inserts:
            raise OutputError(
                f"{flag('profiles')}: the documents have no users; convert the dump with "
                f"{flag('nest', 'users')}, or leave the profiles out"
            )
        changes = ", ".join(f"{name} = coalesce({name}, ?)" for name in PROFILE)
        for rows in profiles:
            self.connection.executemany(f"UPDATE users SET {changes} WHERE Id = ?", rows)

    def _tables(self) -> list[str]:
        return [name for name in LAYOUTS if name in {*self._inserts, *_MADE_AT_THE_END}]

    def finish(self) -> dict[str, int]:
        """Write the description of the database and commit.

        Returns:
            Number of rows in each table.
        """
        rows = {
            name: self.connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in self._tables()
        }
        sites = dict.fromkeys(site["name"] for source in self._sources for site in source["sites"])
        about = {
            "format": FORMAT,
            "record": self._record.as_dict(),
            "rows": rows,
            "sources": self._sources,
            "overview": [_overview(self.connection, self.site_field, name) for name in sites],
        }
        self.connection.execute(f"CREATE TABLE {ABOUT} (name TEXT PRIMARY KEY, value TEXT)")
        self.connection.executemany(
            f"INSERT INTO {ABOUT} VALUES (?, ?)",
            [(name, orjson.dumps(value).decode()) for name, value in about.items()],
        )
        self.connection.execute("COMMIT")
        return rows


def _each(source: Any) -> list[Any]:
    """List the sources; a folder of outputs is replaced by its outputs."""
    is_list = isinstance(source, list | tuple)
    sources = list(source) if is_list and all(map(_is_path, source)) else [source]
    return [item for entry in sources for item in (_inside(entry) if _is_path(entry) else [entry])]


def _inside(path: PathLike) -> list[PathLike]:
    """List the outputs in a folder of outputs; return any other path unchanged, in a list."""
    name = os.fspath(path)
    if not is_folder_of_outputs(name):
        return [path]
    outputs = outputs_in(name)
    check_holds_outputs(name, outputs)
    return [readable(paths) for paths in outputs.values()]


def _is_path(source: object) -> TypeGuard[PathLike]:
    return isinstance(source, str | os.PathLike)


def _check_site_field(name: str | None) -> None:
    names_in_use = {column.lower() for layout in LAYOUTS.values() for column in layout.columns}
    names_in_use |= {key.lower() for key in ("", "Row", *RESERVED)}
    if name is not None and name.lower() in names_in_use:
        raise OptionError(f"{flag('site_field')} is {name!r}; it must be a name that no column has")
