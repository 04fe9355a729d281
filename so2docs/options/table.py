"""The table of options: each option is declared once, as a field of a class in this module.

The flags of the command line, keyword arguments (`make docs` generates their types in
`keywords.py`), checks, names in messages and documentation are derived from this table, as are the
options in manifests and the fingerprint, which decides whether a conversion can be resumed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import partial
from typing import Any

from so2docs.errors import OptionError, flag
from so2docs.limits import count_processors
from so2docs.options.choices import FORMATS, AnswersBy, BodyAs, Compression, Core, Errors
from so2docs.options.field_paths import Fields, parse_field_names
from so2docs.options.option import (
    IdList,
    Option,
    Where,
    assignments,
    at_least,
    contradiction,
    end_of_period,
    entries,
    id_list,
    lacks_field,
    names,
    none_of,
    option,
    path,
    point_in_time,
    share,
    size,
    tags,
)
from so2docs.options.split import Split, parse_split
from so2docs.options.transform import METADATA, Transform, TransformOptions
from so2docs.progress import Shown
from so2docs.registry import find_hook, has_hook
from so2docs.schema import ANSWER_ATTRIBUTES, ANSWERS, AS_OF, QUESTION_ATTRIBUTES, RESERVED, TABLES

ALL_TABLES = "all"
KNOWN_NAMES = {*QUESTION_ATTRIBUTES, *ANSWER_ATTRIBUTES, ANSWERS}
"""Names of the attributes of questions and answers, and `Answers`."""

Tables = Mapping[str, str | None]
"""The file of each table by name; None if no file is given."""

_filter = partial(option, "Filters")
_document = partial(option, "Documents")
_output = partial(option, "Output")
_run = partial(option, "Run")
_date = partial(_filter, accepts=str | date | None, parse=point_in_time, metavar="DATE")
_size = partial(_run, is_rare=True, accepts=str | int | None, metavar="SIZE")
_path = partial(_run, accepts=str | os.PathLike[str] | None, where="local", parse=path)
"""Functions that declare an option under a heading of the help."""


def _progress(name: str, value: Shown) -> Shown:
    if not (callable(value) or isinstance(value, bool)):
        raise OptionError(f"{flag(name)} is {value!r}; it must be true, false or a function")
    return value


_ids = partial(
    _filter,
    accepts=str | os.PathLike[str] | Iterable[int] | None,
    parse=id_list,
    metavar="FILE|IDS",
    remember=lambda value: value and str(value),
)

_GZIP_LEVELS, _ZSTD_LEVELS = 9, 19

_OF_STATE = (
    *("tags", "all_tags", "min_score", "min_answer_score", "min_answers", "max_answers"),
    *("max_body", "answered", "accepted", "fields", "drop_fields"),
)
"""Options about attributes that change after a post is created."""


@dataclass(frozen=True, slots=True)
class PartFilters:
    """The filters that select a part of a site, of its documents or of its tables.

    `parse.filters` defines what they test.
    """

    tags: tuple[str, ...] = _filter(
        "Keep questions with any of these tags.",
        (),
        accepts=str | Iterable[str],
        parse=tags,
        flags=("--tag",),
        metavar="TAGS",
    )
    all_tags: bool = _filter("Keep questions with all of the tags, not just one.", False)
    min_score: int | None = _filter("Keep questions with this score or more.")
    min_answers: int | None = _filter(
        "Keep questions with this many answers or more.", more="The filter tests `AnswerCount`."
    )
    max_answers: int | None = _filter(
        "Keep questions with this many answers or fewer.",
        more="The filter tests `AnswerCount`; questions without it do not pass.",
    )
    answered: bool = _filter("Keep questions that have an answer.", False)
    accepted: bool = _filter("Keep questions that have an accepted answer.", False)
    since: str | None = _date(
        "Keep questions created on DATE (UTC) or later.",
        more="The value is a year, a day, a time such as `2020-01-31T12:00:00`, a `date` or a "
        "`datetime`.",
    )
    until: str | None = _date("Keep questions created before DATE (UTC).")
    sample: int | None = _filter(
        "Keep a share of the questions, such as 1%.",
        accepts=str | float | None,
        parse=share,
        metavar="SHARE",
        more="A hash of the id selects the questions: every run keeps the same ones, and every "
        "sample is part of all larger samples.",
    )

    min_answer_score: int | None = _filter("Keep answers with this score or more.")
    max_body: int | None = _filter(
        "Keep questions and answers with a body of at most SIZE, such as 20kB.",
        is_rare=True,
        accepts=str | int | None,
        parse=size(1, "20000 or 20kB"),
        metavar="SIZE",
        more="This is the size of the HTML in UTF-8, as in the dump.",
    )
    sample_size: int | None = _filter(
        "Keep N of the questions, the same ones in every run.",
        parse=at_least(1),
        more="They pass the other filters, and have the smallest hashes of their ids. Every sample "
        "is part of all larger samples.",
    )
    keep_users: IdList | None = _ids(
        "Keep questions asked or answered by these users.",
        more="The ids are separated by commas, or in a FILE, one per line. A file name that "
        "consists of digits counts as an id; write `./123` for the file.",
    )
    keep_posts: IdList | None = _ids(
        "Keep the questions of these posts.", more="The ids are given as in `keep_users`."
    )
    drop_users: IdList | None = _ids(
        "Leave out all that these users wrote.",
        more="The ids are given as in `keep_users`. Posts and comments are left out, with the "
        "answers to the questions, and other posts do not name these users as editors.",
    )
    drop_posts: IdList | None = _ids(
        "Leave out these posts.",
        more="The ids are given as in `keep_users`. The answers to the questions are also left "
        "out.",
    )
    drop_fabricated: bool = _filter(
        "Leave out the made-up question and answer (ids above 1,000,000,000) in two releases.",
        False,
        is_rare=True,
    )

    def __post_init__(self) -> None:
        if self.all_tags and not self.tags:
            raise OptionError(f"{flag('all_tags', True)} needs {flag('tags')}")
        since, until = self.since, self.until
        if since is not None and until is not None and since >= until:
            raise OptionError(f"{flag('since', since)} must be before {flag('until', until)}")
        if self.sample is not None and self.sample_size is not None:
            raise contradiction("sample", "sample_size")


@dataclass(frozen=True, slots=True)
class Filters(PartFilters):
    """The filters of a conversion; a row must pass all of them.

    Rows are tested early in the first pass, so that rejected rows cost little more than parsing.
    The key of a rejected post is kept: the second pass must know whether the question of an answer
    was in the dump, and which of two posts with the same id came first.
    """

    as_of: str | None = _date(
        "Restore the site as of a time or a day's end (UTC).",
        parse=end_of_period,
        more="Rows created later are left out. The value is a year, a month, a day, a time such as "
        "`2016-12-10T12:00:00`, a `date` or a `datetime`; a time means that moment, which is "
        "included. Texts come from the history and "
        "scores from the votes, so the dump must contain `PostHistory.xml` and `Votes.xml`. Other "
        "filters apply to the state of the date.",
    )
    limit: int | None = _filter("Keep the N questions with the lowest ids.", parse=at_least(1))
    fields: tuple[str, ...] | None = _filter(
        "Keep these fields, such as Id,Title,Answers.Body.",
        accepts=str | Iterable[str] | None,
        parse=lambda name, value: None if value is None else parse_field_names(name, value),
        metavar="NAMES",
        more="`Answers` alone means all attributes of answers; if no name begins with `Answers`, "
        "documents have no `Answers`.",
        remember=lambda value: None if value is None else sorted(value),
    )
    drop_fields: tuple[str, ...] = _filter(
        "Leave these fields out, such as Comments.UserId.",
        (),
        accepts=str | Iterable[str] | None,
        parse=lambda name, value: parse_field_names(name, value or (), also=(METADATA,)),
        more="With a recipe, `metadata` leaves this column out of the records.",
        metavar="NAMES",
        default_keyword=None,
        remember=sorted,
    )

    def __post_init__(self) -> None:
        PartFilters.__post_init__(self)
        exclusive = ("sample_size", "limit", "as_of")
        present = [name for name in exclusive if getattr(self, name) is not None]
        if len(present) > 1:
            raise contradiction(*present[:2])
        if self.fields is not None and set(self.drop_fields) - {METADATA}:
            raise contradiction("fields", "drop_fields")
        if self.fields == ():
            raise OptionError(
                f"{flag('fields')} is empty; name at least one, such as Id,Title,Answers.Body"
            )
        if self.min_answer_score is not None and not self.selected.has_answers:
            raise lacks_field(flag("min_answer_score"), "the answers")

    @property
    def of_rows(self) -> Filters:
        """The filters to apply to rows as they are read; the others need the state of a date."""
        if self.as_of is None:
            return self
        neutral = Filters()
        return replace(self, **{name: getattr(neutral, name) for name in _OF_STATE})

    @property
    def of_state(self) -> Filters:
        """The filters to apply to the state of a date: those on attributes that may change."""
        return Filters(**{name: getattr(self, name) for name in _OF_STATE})

    @property
    def selected(self) -> Fields:
        """The selected attributes of posts."""
        return Fields(self.fields, tuple(name for name in self.drop_fields if name != METADATA))


@dataclass(frozen=True, slots=True)
class OutputForm:
    """Format, compression and splitting of the output.

    Attributes:
        is_looked_up: Whether an index supports lookup of single documents.
        has_total: Whether the names of numbered files end in the number of files.
    """

    format: str = _output(
        "Format of the output: "
        f"{', '.join(f'{name} ({traits.help})' for name, traits in FORMATS.items())}.",
        "jsonl",
        accepts=str | None,
        default_keyword=None,
        where="files",
        choices=FORMATS,
        flags=("-f",),
        usually="by the name of OUTPUT",
        metavar="FORMAT",
    )
    compression: Compression = _output(
        "Compression of the output.",
        "gzip",
        accepts=Compression | None,
        default_keyword=None,
        where="files",
        usually="by the name of OUTPUT",
    )
    split: Split = _output(
        "Write several files: 1GB, 8files, year, month, or train=0.9,test=0.1.",
        Split(),
        accepts=str | None,
        default_keyword=None,
        parse=parse_split,
        metavar="HOW",
        where="convert",
        more="The files have at most this size, are this many, contain the questions of a year or "
        "month, or have these shares of the questions. Each file is complete. By size and by "
        "number, the files are in the order of the ids: `questions-00000.jsonl.gz` and so on. A "
        "file is larger than the size only if a single document is. The date of a question "
        "selects `questions-2019-03.jsonl.gz`; questions without a date go into "
        "`questions-undated.jsonl.gz`. A hash of the question's id selects "
        "`questions-train.jsonl.gz`, so a question with its answers is in the same share in every "
        "dump.",
        remember=lambda value: str(value) or None,
    )
    is_looked_up: bool = True
    has_total: bool = False

    @property
    def labels(self) -> str:
        """Regular expression for the labels in the file names of a split output."""
        return self.split.labels(with_total=self.has_total)

    @property
    def is_indexed(self) -> bool:
        """Whether each file has an index for lookup of documents."""
        return self.format == "jsonl" and self.is_looked_up


TRANSFORM_OPTIONS: type[TransformOptions] = (
    find_hook("transform") if has_hook("transform") else TransformOptions
)
"""The class with the options of transforms in this installation."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options that determine the output.

    All workers get these options. `core` is never `auto`, which could select a different core in a
    worker than in this process.

    Attributes:
        step_tables: Tables that are read only for a step, such as to restore a date, not nested.
        absent: Tables to nest that are missing from the dump.
    """

    site_field: tuple[str, str] | None = _document(
        "Add the site to each document, as field NAME.",
        accepts=str | None,
        metavar="NAME",
        more="Ids are only unique per site. The site is the value of `site`, or the name of the "
        "archive or folder.",
        remember=lambda value: value and list(value),
    )
    site: str | None = option(
        "Input",
        "The site, for URLs and {site_field}.",
        metavar="HOST",
        usually="the name of the archive or folder",
        more="A host such as beer.stackexchange.com. It also decides whether Markdown has "
        "formulas.",
    )
    body: BodyAs = _document(
        "Form of the bodies.",
        "html",
        accepts=BodyAs | None,
        default_keyword=None,
        usually="html, or that of the recipe",
    )
    answers_by: AnswersBy = _document(
        "Order of the answers.",
        "id",
        more="By votes, the accepted answer is first, and the others follow by descending score.",
    )
    nest: tuple[str, ...] = _document(
        "Nest these tables: comments, links, votes, users (these four: all), badges, closings, "
        "history, history-text.",
        (),
        accepts=str | Iterable[str],
        choices=(*TABLES, ALL_TABLES),
        parse=names,
        metavar="TABLES",
    )
    if_present: bool | tuple[str, ...] = _document(
        "Skip tables that are missing, with a warning.",
        False,
        more="The record in the output names the missing tables.",
        accepts=bool,
    )
    errors: Errors = _document(
        "What to do with faulty rows.",
        "repair",
        more="`repair`: replace characters that XML forbids, count strays, and fail at a row that "
        "is not well-formed XML. `skip`: write such rows to the strays. `strict`: fail instead of "
        "repairing a character or leaving a row out.",
        remember=lambda value: "repair" if value == "strict" else value,
    )
    core: Core = _run(
        "The core that converts rows to JSON; the output does not depend on it.",
        "auto",
        is_rare=True,
        more="`auto`: the value of the environment variable `SO2DOCS_CORE`, else `compiled` if a C "
        "compiler was available at installation, else `python`.",
    )
    level: int = _output(
        "Compression level. For gzip, 0 to 3 are fast (ISA-L), and 4 to 9 are slow but compress "
        "better (zlib). For zstd, up to 19.",
        2,
        is_rare=True,
        where="files",
        parse=at_least(0, _ZSTD_LEVELS),
    )
    form: OutputForm = field(default_factory=OutputForm)
    filters: Filters = field(default_factory=Filters)
    records: TransformOptions = field(default_factory=TRANSFORM_OPTIONS)
    step_tables: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        highest = _GZIP_LEVELS if self.form.compression == "gzip" else _ZSTD_LEVELS
        if not 0 <= self.level <= highest:
            of = "gzip" if highest == _GZIP_LEVELS else "zstd"
            raise OptionError(
                f"{flag('level')} is {self.level}; it must be 0 to {highest} for {of}"
            )
        keys = {"", *KNOWN_NAMES, *(RESERVED if self.shown else ())}
        if self.site_field is not None and self.site_field[0] in keys:
            raise OptionError(
                f"{flag('site_field')} is {self.site_field[0]!r}; it must be a name "
                "that no field of the documents has"
            )
        self.records.check(self)
        self._check_fields()
        if self.filters.limit is not None and self.form.split.files is not None:
            raise OptionError(
                f"{flag('split', str(self.form.split))} contradicts {flag('limit')}; split by "
                f"size, as in {flag('split', '1GB')}"
            )

    def _check_fields(self) -> None:
        fields = self.filters.selected
        has_body = fields.has("Body") or (fields.has_answers and fields.has_answer("Body"))
        if self.body != "html" and not has_body:
            raise lacks_field(flag("body", self.body), "Body")
        if self.form.split.by is not None and not fields.has_whole("CreationDate"):
            raise lacks_field(flag("split", self.form.split.by), "CreationDate")
        fields.check_nested((*self.shown, *self.absent))

    @property
    def transform(self) -> Transform:
        """The transform of the documents."""
        return self.records.transform

    @property
    def is_attributed(self) -> bool:
        """Whether documents contain an attribution."""
        return bool(self.transform.attributed)

    @property
    def restores_markdown(self) -> bool:
        """Whether bodies restored by `as_of` stay Markdown; then all bodies are converted early."""
        is_late = self.body == "markdown" and not self.transform.needs_html
        return self.filters.as_of is not None and is_late

    @property
    def later_body(self) -> BodyAs:
        """The form to which the bodies of nested documents are converted."""
        return "html" if self.restores_markdown else self.body

    @property
    def changes_documents(self) -> bool:
        """Whether nested documents are changed before they are written."""
        return self.transform.changes_documents or self.later_body != "html"

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables to read besides the posts, in the order of nesting."""
        return tuple(name for name in TABLES if name in self.nest or name in self.step_tables)

    @property
    def shown(self) -> tuple[str, ...]:
        """The nested tables, and `AS_OF` if documents contain the state of a date."""
        return self.nest if self.filters.as_of is None else (*self.nest, AS_OF)


def _table_files(name: str, value: Mapping[str, Any] | Iterable[str] | None) -> Tables:
    """Parse the files of tables, by name."""
    known = dict.fromkeys(table.file_option for table in TABLES.values())
    files = {}
    for table, file in assignments(name, value).items():
        if table not in known:
            raise none_of(known, name, table)
        # Shells do not expand ~ behind an equals sign.
        files[table] = path(name, os.path.expanduser(file))
    return files


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of the run, which do not change any byte of the documents."""

    jobs: int | None = _run(
        "Number of worker processes.",
        where="local",
        parse=at_least(1),
        flags=("-j",),
        usually="all cores",
        more="A small dump is converted by one process. Limits on the cores of the process apply, "
        "such as those of containers, `taskset` and Slurm. Where memory is short, fewer start.",
    )
    chunk_bytes: int | None = _size(
        "Number of bytes of the dump for each task of the first pass.",
        parse=size(1, "16MB"),
        usually="a few megabytes",
    )
    spill_budget: int | None = _size(
        "Keep this much of the spill uncompressed, which is faster.",
        where="local",
        parse=size(0, "2GB, or 0"),
        usually="an eighth of the free memory, but at most half of the spare disk space",
    )
    progress: Shown = _run(
        "Show progress bars, on stderr or in the notebook.",
        False,
        where="local",
        parse=_progress,
        more="A function is called with the progress instead, several times a second: the units "
        "done, their total (None if unknown) and the unit. The unit is `work`, an estimate for the "
        "whole job, or `B` for bytes of a stream. An exception that the function raises cancels "
        "the job; the same call resumes a conversion.",
    )
    work_dir: str | None = _path(
        "Folder for temporary files.",
        metavar="DIR",
        usually="that of OUTPUT",
        more="These files, the spill, are about as large as the posts and tables, or a third of "
        "this size with {spill_budget=0}. Without an output file, the default is the system's "
        "temporary folder.",
    )
    update: bool = _run(
        "Replace outputs of another input or other options.", False, where="convert"
    )
    force: bool = _run("Overwrite an existing output.", False, where="convert")
    restart: bool = _run("Start over instead of resuming.", False, where="convert")
    report: str | None = _path(
        "Write the report as JSON to FILE; - is standard output.", where="convert", metavar="FILE"
    )
    card: bool = _run(
        "Write a card for Hugging Face, and a manifest.",
        False,
        where="convert",
        more="README.md, the manifest, and SHA256SUMS, which `sha256sum -c` checks, are next to "
        "the output. DUMP is reread to compute its SHA-256. With {force=True}, any other "
        "`README.md` and `SHA256SUMS` there are replaced.",
    )
    tables: Tables = option(
        "Input",
        "Nest this table from FILE: comments=FILE. Repeatable.",
        None,
        accepts=Mapping[str, str | os.PathLike[str]] | Iterable[str] | None,
        where="local",
        parse=_table_files,
        flags=("--table",),
        metavar="NAME=FILE",
        more="The names are those of `nest`; each level of the history has the name `history`. The "
        "keys of the dictionary are the names, and its values are files, archives or folders.",
    )

    @property
    def threads(self) -> int:
        """Number of threads for decompression."""
        return self.jobs or count_processors()


_CLASSES: tuple[type, ...] = (Filters, TRANSFORM_OPTIONS, Options, OutputForm, RunOptions)

GROUPS = ("Input", "Filters", "Documents", "Output", "Run")
"""Groups of options, in the order of the help."""


def options_of(*kinds: type) -> dict[str, Option]:
    """Return the options of classes, ordered by group."""
    options = [entry for kind in kinds for entry in entries(kind)]
    return {entry.name: entry for group in GROUPS for entry in options if entry.group == group}


OPTIONS = options_of(*_CLASSES)
"""All options of a conversion, by name."""


def like(name: str, help: str | None = None, /, **changes: Any) -> Any:  # noqa: A002
    """Declare a field of a product as an option of this name of a conversion.

    Args:
        name: Name of the option.
        help: Description for the product, in place of all descriptions of the option.
        changes: Other attributes of `Option` that differ.
    """
    entry = {field.name: getattr(OPTIONS[name], field.name) for field in fields(Option)}
    texts = {} if help is None else {"help": help, "more": "", "usually": ""}
    entry |= texts | changes
    return field(default=entry.pop("default"), metadata={"option": entry})


def taken_by(*where: Where) -> dict[str, Option]:
    """Return the options of a conversion with these values of `where`."""
    return {name: entry for name, entry in OPTIONS.items() if entry.where in where}


OF_ITERATOR = taken_by("documents", "local")
OF_CONVERT = taken_by("documents", "local", "files", "convert")
"""The options that `documents` and `convert` take."""
