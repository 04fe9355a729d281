"""The options of tables, and of other products made from rows.

Flags, keyword arguments, checks, docstrings and the options in provenance are derived from these
classes, as those of a conversion are from `table.py`. An option that a conversion has too is
declared there, and is declared here only as `like` it, with the words of this product.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal, get_args

from so2docs.options.choices import BodyAs, Core
from so2docs.options.option import names, none_of
from so2docs.options.table import PartFilters
from so2docs.plugin import DUMP, OptionError, Shown, checked_host, flag, like, option

TableErrors = Literal["repair", "skip"]
TableFormat = Literal["parquet", "csv", "jsonl", "sqlite", "arrow"]
SqlSystem = Literal["postgres", "mysql"]


def _table_names(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    """Parse names of tables or of their files."""
    by_any_name = {table.stem.lower(): table.name for table in DUMP.values()}
    tables = []
    for table in names(name, value):
        tables.append(by_any_name.get(table.lower(), table.lower()))
        if tables[-1] not in DUMP:
            raise none_of(DUMP, name, table)
    return tuple(tables)


_NO_FILTERS = PartFilters()
_FILTERS_OF_ROWS = {"since", "until", "drop_users", "drop_posts", "drop_fabricated"}


@dataclass(frozen=True, slots=True)
class RowOptions(PartFilters):
    """Options for reading the rows of tables.

    With any filter except dates and those that leave out users or posts, only the part of the site
    that belongs to the selected questions is read.
    """

    since: str | None = like(
        "since",
        "Keep rows from this date (UTC) or later; with other filters, rows of questions created "
        "then.",
        more="Tables without dates are kept whole without other filters. With them, the part of "
        "the site that belongs to the questions is written: the questions, their answers, the rows "
        "of these posts in other tables, and the users, badges, tags and tag wikis of these rows. "
        "Links are kept if both posts are. `Posts.xml` must be in the dump.",
    )
    until: str | None = like(
        "until",
        "Keep rows from before this date (UTC); with other filters, rows of questions created "
        "then.",
    )
    as_of: str | None = like(
        "as_of",
        "Restore the site as of a time or a day's end (UTC).",
        more="Questions and answers are restored from `PostHistory.xml` and `Votes.xml`; other "
        "types of posts are left out. Other tables have the rows that existed. Columns whose "
        "former values are unknown, such as `Reputation`, are null.",
    )
    body: BodyAs = like(
        "body",
        "Form of the bodies of posts.",
        accepts=BodyAs,
        default="html",
        more="Other texts, such as comments, stay as in the dump. The name of the dump decides "
        "whether Markdown has formulas.",
    )
    errors: TableErrors = like(
        "errors",
        "What to do with faulty rows.",
        more="`repair`: replace characters that XML forbids, count strays, and fail at a row that "
        "is not well-formed XML. `skip`: write such rows to the strays.",
        accepts=TableErrors,
        choices=get_args(TableErrors),
    )
    jobs: int | None = like("jobs")
    core: Core = like("core")
    work_dir: str | None = like(
        "work_dir", "Folder for temporary files.", usually="the folder of the tables"
    )
    progress: Shown = like("progress")

    @property
    def has_part(self) -> bool:
        """Whether filters select questions; otherwise, each row is kept by its own date."""
        names = {field.name for field in fields(PartFilters)} - _FILTERS_OF_ROWS
        return any(getattr(self, name) != getattr(_NO_FILTERS, name) for name in names)

    @property
    def has_drops(self) -> bool:
        """Whether listed users or posts, or made-up posts, are left out."""
        lists = (self.drop_users, self.drop_posts)
        return self.drop_fabricated or any(listed is not None for listed in lists)


@dataclass(frozen=True, slots=True)
class SomeTables(RowOptions):
    """Options for writing chosen tables to files."""

    only: tuple[str, ...] = option(
        "Input",
        f"Write only these tables of the dump: {', '.join(DUMP)}.",
        (),
        accepts=str | Iterable[str],
        choices=DUMP,
        decides=False,
        parse=_table_names,
        metavar="TABLES",
    )
    update: bool = like("update", "Replace files made from another input or with other options.")
    force: bool = like("force", "Overwrite existing files.")


@dataclass(frozen=True, slots=True)
class DatabaseOptions(SomeTables):
    """Options for making a database with full-text search."""

    site: str | None = like(
        "site",
        "The site for links to the original posts.",
        usually="from the name of DUMP",
        parse=lambda name, value: None if value is None else checked_host(value),
    )


@dataclass(frozen=True, slots=True)
class TableOptions(SomeTables):
    """Options for writing the tables of a dump as flat files."""

    format: TableFormat = option(
        "Output",
        "Format of the files; csv and jsonl are compressed with gzip; sqlite writes one database "
        "with all tables; arrow is only for standard output.",
        "parquet",
    )
    load: SqlSystem | None = option(
        "Output",
        "With {format=csv}, also write load.sql, which loads the tables into this system.",
        more="The script creates the tables with keys and indexes. MariaDB is loaded as `mysql`.",
    )

    def __post_init__(self) -> None:
        RowOptions.__post_init__(self)
        if self.load is not None and self.format != "csv":
            raise OptionError(f"{flag('load')} loads CSV; add {flag('format', 'csv')}")
