"""Documents in, one SQLite database out: rows first, then indexes, then the full-text index.

The file is written under `DATABASE.part`, without a journal, and gets its name when it is whole.
Memory: some batches of documents, and what `file` lets SQLite have. Rows are made, and the
full-text index, in processes of their own; this one nests documents, and inserts.
"""

from __future__ import annotations

import itertools
import os
import pickle
import sqlite3
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, get_args

import orjson

from so2docs._version import __version__
from so2docs.domain import SCORE_BINS
from so2docs.errors import OptionError, OutputError, flag, resumable
from so2docs.options.choices import Search
from so2docs.options.sites import checked_host, published_host
from so2docs.output.new_files import NewFiles, temporary_folder
from so2docs.output.part_files import finish_file, part_path
from so2docs.pipeline.workers import Workers
from so2docs.progress import bar
from so2docs.reader.folder import check_holds_outputs, is_folder_of_outputs, outputs_in, readable
from so2docs.schema import ANSWERS, RESERVED
from so2docs.sqlite.about import metadata, metadata_name, read_about
from so2docs.sqlite.file import connect, explained
from so2docs.sqlite.layout import (
    ABOUT,
    FORMAT,
    LAYOUTS,
    NESTED,
    index_name,
    listed,
    quoted,
    search_sql,
    table_sql,
    texts_sql,
)
from so2docs.sqlite.rows import USERS_DIFFER, Batch, Made, Row, Tally, make_rows
from so2docs.sqlite.search import Texts, copy_index, index_texts
from so2docs.sqlite.sources import DocumentSource, PathLike, open_source

_MOST_TAGS = 30

Connection = sqlite3.Connection


def create_indexes(
    connection: Connection, tables: list[str], site_field: str | None, *, progress: bool
) -> None:
    """Make the tables of tags, users whom documents only name, and all indexes."""
    import sqlite_utils  # Not while rows are made: it imports pandas, where that is installed.

    site = [] if site_field is None else [site_field]
    has_users = "users" in tables
    own_site = "".join(f"questions.{quoted(name)}, " for name in site)
    tag = listed([*site, "Tag"])
    statements = [
        table_sql("tags", site_field, with_users=has_users),
        table_sql("question_tags", site_field, with_users=has_users),
        # In the order of the key, so that the tree is written from left to right.
        f"INSERT OR IGNORE INTO question_tags ({listed([*site, 'Tag', 'QuestionId'])}) "
        f"SELECT {own_site}value AS Tag, questions.Id FROM questions, json_each(questions.Tags) "
        f"ORDER BY {own_site}Tag, questions.Id",
        f"INSERT INTO tags ({listed([*site, 'Name', 'Questions'])}) "
        f"SELECT {tag}, count(*) FROM question_tags GROUP BY {tag}",
    ]
    if has_users:
        # Of users whom posts name and the dump does not know, nothing but their ids.
        statements += [
            f"INSERT OR IGNORE INTO users ({listed([*site, 'Id'])}) "
            f"SELECT DISTINCT {listed([*site, column])} FROM {table} WHERE {column} IS NOT NULL"
            for table in tables
            for column, other in LAYOUTS[table].references
            if other == "users"
        ]
    indexes = [(table, columns) for table in tables for columns in LAYOUTS[table].indexes]
    database = sqlite_utils.Database(connection)
    steps = len(statements) + len(indexes)
    with bar("indexes", steps, unit=" steps", shown=progress) as progress_bar:
        for statement in statements:
            connection.execute(statement)
            progress_bar.update(1)
        for table, columns in indexes:
            database.table(table).create_index([*site, *columns], index_name(table, columns))
            progress_bar.update(1)
    database.analyze()


def _overview(connection: Connection, site_field: str | None, site: str | None) -> dict[str, Any]:
    """The counts of a site that a front page shows."""
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

    [(questions, accepted, first, last)] = rows(
        "SELECT count(*), count(AcceptedAnswerId), min(CreationDate), max(CreationDate) "
        "FROM questions WHERE {where}"
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
_BATCH_BYTES = 8 * 1024 * 1024
_MOST_MAKERS = 2
"""Processes that make rows: two make them as fast as they are inserted."""
_MADE_AT_THE_END = ("tags", "question_tags")


@dataclass(slots=True)
class Database:
    """A database that was made.

    Attributes:
        path: Its name.
        rows: Rows by table.
        search: What words are found in: `titles`, `all` or `none`.
        file_bytes: Its size.
        seconds: How long it took.
        lost: What does not come back the same when documents are made of the rows again; nothing,
            for outputs of `convert`.
    """

    path: str
    rows: dict[str, int] = field(default_factory=dict)
    search: Search = "all"
    file_bytes: int = 0
    seconds: float = 0.0
    lost: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """All fields in JSON types."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [f"{name:<20} {count:,}" for name, count in self.rows.items()]
        words = {"all": "titles, tags, bodies", "titles": "titles, tags", "none": "no"}
        lines.append(f"{'full text':<20} {words[self.search]}")
        lines.append(f"{'database':<20} {self.file_bytes / 1e6:,.2f} MB  {self.path}")
        lines.append(f"{'time':<20} {self.seconds:.2f} s")
        lines += [f"not kept: {line}" for line in self.lost]
        return "\n".join(lines)


def to_sqlite(
    source: PathLike | Sequence[PathLike] | Iterable[dict[str, Any]],
    database: PathLike | None = None,
    *,
    search: Search = "all",
    stemming: bool = False,
    site_field: str | None = None,
    site: str | None = None,
    nest: Iterable[str] = (),
    tags: Iterable[dict[str, Any]] = (),
    jobs: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> Database:
    """Make an SQLite database with full-text search of an output, or of a dump.

    Next to it goes `NAME.metadata.json`, for Datasette.

    Args:
        source: An output of `convert` in JSON lines, or a dump in any form that `convert` takes; a
            list of them, or a folder of outputs, with `site_field`; or documents.
        database: Name of the database; that of the source with `.db` if None, in the current
            folder.
        search: Find words in `titles` (with tags), in `all` (with the text of bodies), or make no
            full-text index: `none`.
        stemming: Find English words in all their forms: `baking` finds `bake` and `baked`.
        site_field: Column for the site, as the first part of every key: for several sites. Its
            value is that of the documents' field of this name, or else the source's name.
        site: Address of the site, such as `beer.stackexchange.com`, for links to where posts come
            from; that in the source's name if None.
        nest: Tables to nest, of a dump.
        tags: What `tags` returns of the dump: excerpts and wikis for the table of tags.
        jobs: Worker processes for reading a dump and making rows; all cores if None. With 1, this
            process does all, the full-text index, too.
        force: Overwrite an existing database.
        progress: Show progress bars.

    Returns:
        What was made: rows by table, bytes, seconds.

    Raises:
        So2docsError: A source or the database cannot be read or written, or documents lack an
            `Id`.
    """
    begun = time.perf_counter()
    if search not in get_args(Search):
        raise OptionError(f"{flag('search')} is {search!r}; it must be one of: titles, all, none")
    _check_site_field(site_field)
    site = None if site is None else checked_host(site)
    if tags != () and site_field is not None:
        raise OptionError(
            f"descriptions of tags are of one site; leave {flag('site_field')} out, or them"
        )
    sources = [open_source(item) for item in _each(source)]
    if not sources:
        raise OptionError("a database needs an output or a dump; give one")
    if len(sources) > 1 and site_field is None:
        raise OptionError(
            "ids are unique per site only; for several inputs, name a column with "
            f"{flag('site_field')}"
        )
    path = os.fspath(database) if database is not None else f"{sources[0].stem}.db"
    with NewFiles() as files, resumable(False):
        read = [source.name for source in sources]
        files.claim(path, read, force=force, advice="choose another database")
        with (
            temporary_folder(os.path.dirname(path) or ".") as folder,
            explained(path),
            closing(connect(part_path(path))) as connection,
        ):
            building = _Building(connection, search, site_field, stemming=stemming)
            loaded = building.load_all(
                (
                    (item, item.read(nest=nest, jobs=jobs, progress=progress), site)
                    for item in sources
                ),
                jobs,
            )
            make_indexes = partial(building.make_indexes, progress=progress)
            if search == "none":
                deque(loaded, maxlen=0)
                make_indexes()
            else:
                index = os.path.join(folder, "search.db")
                sql = search_sql(site_field, stemming=stemming)
                index_texts(loaded, index, sql, is_apart=jobs != 1, meanwhile=make_indexes)
                copy_index(connection, index, sql)
            building.describe_tags(tags)
            rows = building.finish()
        files.add(path, finish_file(path))
        files.write(metadata_name(path), metadata(path, read_about(part_path(path))))
    seconds = time.perf_counter() - begun
    return Database(path, rows, search, os.path.getsize(path), seconds, building.lost)


class _Building:
    """A database on its way."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        search: Search,
        site_field: str | None,
        *,
        stemming: bool,
    ) -> None:
        self.connection, self.search, self.site_field = connection, search, site_field
        self.stemming = stemming and search != "none"
        self._inserts: dict[str, str] = {}
        self._sources: list[dict[str, Any]] = []
        self._next_row = 0
        self._clashing = 0
        self.lost: list[str] = []

    def load_all(
        self, sources: Iterable[tuple[DocumentSource, Iterable[Any], str | None]], jobs: int | None
    ) -> Iterator[Texts]:
        """Insert the rows of all sources; yields those of the texts, batch by batch."""
        for source, documents, site in sources:
            self._sources.append((yield from self._load(source, documents, site, jobs)))

    def _load(
        self,
        source: DocumentSource,
        documents: Iterable[Any],
        site: str | None,
        jobs: int | None,
    ) -> Generator[Texts, None, dict[str, Any]]:
        """Insert the rows of all documents of a source; returns what is to be known of it."""
        total = Tally()
        batches = self._batches(source, documents)
        start = list(itertools.islice(batches, 2))  # Two batches at most: they may stay.
        # Processes cost more than they save where there is little to do.
        is_apart = jobs != 1 and source.documents is None and len(start) > 1
        under_way: deque[Batch] = deque()

        def tasks() -> Iterator[Batch]:
            for batch in itertools.chain(start, batches):
                under_way.append(batch)
                yield batch

        makers = min(_MOST_MAKERS, max(1, (jobs or os.cpu_count() or 1) - 1)) if is_apart else 1
        with Workers(makers, is_apart=is_apart) as workers:
            for made in workers.run(make_rows, tasks()):
                yield self._insert(made, under_way.popleft())
                total += made.tally
        clashing, self._clashing = self._clashing, 0
        self.lost += [f"{source.label}: {line}" for line in total.lost()]
        if clashing:
            self.lost.append(f"{source.label}: {USERS_DIFFER} ({clashing:,} times)")
        sites = sorted(total.sites) if self.site_field is not None else [None]
        return {
            "source": source.identity(),
            "provenance": None if source.provenance is None else source.provenance.as_dict(),
            "shape": sorted(total.shape),
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

    def _insert(self, made: Made, batch: Batch) -> Texts:
        """Insert the rows of a batch of documents.

        Returns:
            The rows of the texts.
        """
        rows, first_row = made.rows, self._next_row
        if made.texts:
            rows["texts"] = pickle.loads(made.texts)
        if self.site_field is not None:
            self._next_row += made.tally.numbered
            for table in {"questions", "answers"} & rows.keys():
                rows[table] = [(*row[:-1], row[-1] + first_row) for row in rows[table]]
            if "texts" in rows:
                rows["texts"] = [(row[0] + first_row, *row[1:]) for row in rows["texts"]]
        # Tables of posts refer to users only where there are any in the first documents.
        for table in ("users", "questions", "answers", *rows):
            if table not in self._inserts and (table != "users" or table in rows):
                self._create(table)
        for table, values in rows.items():
            before = self.connection.total_changes
            try:
                self.connection.executemany(self._inserts[table], values)
            except sqlite3.IntegrityError:
                # The rows before it are in the table.
                row = values[self.connection.total_changes - before]
                place, key, record_id = _second(table, row, self.site_field, batch)
                raise OutputError(
                    f"{batch.where(place)}: {key}: {record_id} occurs twice; ids are unique per "
                    f"site only: for several sites, name a column with {flag('site_field')}"
                ) from None
        return Texts(made.texts, first_row)

    def _clash(self) -> int:
        """Called by SQLite where a user has another value than before; keeps what was."""
        self._clashing += 1
        return 0

    def _create(self, table: str) -> None:
        if table == "texts":
            self.connection.execute(texts_sql(self.site_field))
        else:
            with_users = "users" in self._inserts
            self.connection.execute(table_sql(table, self.site_field, with_users=with_users))
        columns = [row[1] for row in self.connection.execute(f"PRAGMA table_info({table})")]
        if table in LAYOUTS:
            row = (*LAYOUTS[table].attributes, *LAYOUTS[table].made)
            others = [name for name in columns if name not in row]  # The site, first, and `Row`.
            columns = [*others[:1], *row, *others[1:]] if self.site_field else list(row)
        marks = ",".join("?" * len(columns))
        end = ""
        if table == "users":
            # Users are told wherever they are named, sometimes with less of them.
            key, *more = LAYOUTS[table].columns
            news = " OR ".join(f"({n} IS NULL AND excluded.{n} IS NOT NULL)" for n in more)
            changes = ", ".join(f"{n} = coalesce({n}, excluded.{n})" for n in more)
            site = [] if self.site_field is None else [self.site_field]
            other = " OR ".join(f"{n} <> excluded.{n}" for n in more)
            end = (
                f" ON CONFLICT ({listed([*site, key])}) DO UPDATE SET {changes} "
                f"WHERE (({other}) AND so2docs_clash()) OR {news}"
            )
            self.connection.create_function("so2docs_clash", 0, self._clash)
        self._inserts[table] = f"INSERT INTO {table} ({listed(columns)}) VALUES ({marks}){end}"

    def make_indexes(self, *, progress: bool) -> None:
        """Make what can be made only of all rows, but for the full-text index."""
        tables = ["questions", "answers"] + (["texts"] if self.search != "none" else [])
        for table in tables:
            if table not in self._inserts:
                self._create(table)
        create_indexes(self.connection, self._tables(), self.site_field, progress=progress)

    def describe_tags(self, tags: Iterable[dict[str, Any]]) -> None:
        """Give tags their excerpts and wikis; those of no question have no row.

        Raises:
            OutputError: They are not what `so2docs tags` writes.
        """
        for tag in tags:
            texts = [tag.get(name) for name in ("Excerpt", "Wiki", "Name")]
            if texts[-1] is None or not all(isinstance(text, str | None) for text in texts):
                raise OutputError(
                    "tags: a line is not a tag; give an output of so2docs tags, or the dump"
                )
            self.connection.execute("UPDATE tags SET Excerpt = ?, Wiki = ? WHERE Name = ?", texts)

    def _tables(self) -> list[str]:
        return [name for name in LAYOUTS if name in {*self._inserts, *_MADE_AT_THE_END}]

    def finish(self) -> dict[str, int]:
        """Say in the database what is in it, and commit; returns the rows by table."""
        rows = {
            name: self.connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in self._tables()
        }
        sites = dict.fromkeys(site["name"] for source in self._sources for site in source["sites"])
        about = {
            "format": FORMAT,
            "version": __version__,
            "site_field": self.site_field,
            "search": self.search,
            "stemming": self.stemming,
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
    """Sources: one, or a list of paths; the outputs of folders that are no dumps."""
    is_list = isinstance(source, list | tuple)
    sources = list(source) if is_list and all(map(_is_path, source)) else [source]
    return [item for entry in sources for item in (_inside(entry) if _is_path(entry) else [entry])]


def _inside(path: PathLike) -> list[PathLike]:
    """The outputs in a folder; otherwise the path itself."""
    name = os.fspath(path)
    if not is_folder_of_outputs(name):
        return [path]
    outputs = outputs_in(name)
    check_holds_outputs(name, outputs)
    return [readable(paths) for paths in outputs.values()]


def _is_path(source: object) -> bool:
    return isinstance(source, str | os.PathLike)


def _second(table: str, row: Row, site_field: str | None, batch: Batch) -> tuple[int, str, int]:
    """Find an id in a batch of documents that occurred before.

    Args:
        table: The table that has it already.
        row: The row with the id.
        site_field: Column of the site.
        batch: The documents.

    Returns:
        Place of the last document that has it, its key, and the id.
    """
    if table == "texts":
        record_id = row[0] if site_field is None else row[2]
    else:
        record_id = row[0 if site_field is None else 1]
    paths = {
        "questions": ("Id",),
        "answers": ("Answers.Id",),
        "texts": ("Id", "Answers.Id"),
        **{
            key.lower(): (f"{key}.Id", f"{ANSWERS}.{key}.Id")
            for key, nested in NESTED.items()
            if nested.shape == "list"
        },
    }.get(table, ())
    for place in range(len(batch.documents) - 1, -1, -1):
        for path in reversed(paths):
            if record_id in _values([batch.document(place)], path.split(".")):
                return place, path, record_id
    return 0, f"{table}.Id", record_id


def _values(objects: list[dict[str, Any]], path: list[str]) -> list[Any]:
    """The values at a path, of all objects."""
    if len(path) == 1:
        return [record.get(path[0]) for record in objects]
    inner = [item for record in objects for item in record.get(path[0]) or ()]
    return _values(inner, path[1:])


def _check_site_field(name: str | None) -> None:
    names_in_use = {column.lower() for layout in LAYOUTS.values() for column in layout.columns}
    names_in_use |= {key.lower() for key in ("", "Row", *RESERVED)}
    if name is not None and name.lower() in names_in_use:
        raise OptionError(f"{flag('site_field')} is {name!r}; it must be a name that no column has")
