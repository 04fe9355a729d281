"""Compare two outputs: `diff` returns the changes as an iterator, or writes them to a file.

Dumps are converted to temporary outputs first.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Unpack, get_args

import orjson

from so2docs.api.convert import convert_validated, find_input, options_for
from so2docs.changes.compare import ANSWERS, OPERATIONS, Change, Operation, Summary, compare
from so2docs.changes.differences import iterate_differences
from so2docs.changes.formats import make_format
from so2docs.errors import DumpError, OptionError, OutputError, flag, resumable
from so2docs.options.choices import ChangesFormat
from so2docs.options.field_paths import parse_field_names
from so2docs.options.keywords import DocumentKeywords
from so2docs.options.option import choose
from so2docs.options.request import Fingerprint, build_options, validate_keywords
from so2docs.output.file import Target
from so2docs.output.new_files import NewFiles, temporary_folder
from so2docs.output.product import Product
from so2docs.output.provenance import File, Provenance, make_record, within_64_bits
from so2docs.progress import bar, log
from so2docs.reader.collection import Collection
from so2docs.reader.collection import open as open_output
from so2docs.reader.reading import is_output, read_start

VERSION = 1
"""Version of the changes file. Increase it when the same outputs would give another file."""


@contextmanager
def open_input(
    path: str, *, work_dir: str | None, progress: bool, **options: Any
) -> Iterator[Collection]:
    """Open an output, or convert a dump to a temporary output and open it.

    Raises:
        So2docsError: The input cannot be converted or opened.
    """
    if not os.path.isdir(path) and is_output(path, read_start(path)):
        with open_output(path, progress=progress) as collection:
            yield collection
        return
    # The output is temporary, so errors must mention neither resuming nor an excerpt.
    with temporary_folder(work_dir) as folder:
        converted = os.path.join(folder, "questions.jsonl.gz")
        log.info("%s: is a dump; converting it first", path)
        try:
            with resumable(False):
                convert_validated(path, converted, {**options, "progress": progress, "level": 1})
        except DumpError as error:
            error.excerpt_path = None
            raise
        with open_output(converted, progress=progress) as collection:
            yield collection


def check_comparable(old: Collection, new: Collection, names: tuple[str, str]) -> None:
    """Check that two outputs are from the same site and were made with the same options.

    Outputs without a record of how they were made are not checked.

    Raises:
        OptionError: The sites, the options or the versions of the documents differ.
    """
    before, after = old.provenance, new.provenance
    if before is None or after is None:
        unknown = " and ".join(
            name for name, recorded in zip(names, (before, after), strict=True) if recorded is None
        )
        log.info(
            f"{unknown}: has no record of how it was made, so the sites and options of the "
            "outputs cannot be compared"
        )
        return
    reason = None
    sites = before.site, after.site
    if sites.count(None) == 1:
        log.info(
            f"{names[sites.index(None)]}: the name of its dump does not contain the site, so "
            f"it is unknown whether the output belongs to "
            f"{before.site or after.site}"
        )
    elif before.site != after.site:
        reason = f"the sites are not the same ({before.site}, {after.site})"
    elif other_options := before.other_options(after, of_documents=True):
        reason = f"they were converted with different options ({', '.join(other_options)})"
    elif before.contract != after.contract:
        reason = "they were made by versions of so2docs that write different documents"
    if reason is not None:
        raise OptionError(
            f"{names[0]} and {names[1]} cannot be compared: {reason}; "
            "convert both dumps of one site with the same options"
        )


@dataclass(frozen=True, slots=True)
class _Request:
    """The inputs to compare, and the changes to report."""

    old: str
    new: str
    only: frozenset[str]
    ignored: frozenset[str]
    work_dir: str | None
    progress: bool
    conversion: dict[str, Any]


class Changes:
    """The result of `so2docs.diff`: changes between two outputs, in ascending order of question id.

    The changes can be read only once: iterate over them (each is a dictionary), or call `write` or
    `count`.

    Attributes:
        summary: Counts of the changes, complete after the last one.
    """

    def __init__(self, request: _Request) -> None:
        self.summary = Summary(request.old, request.new)
        self.request = request
        self._dictionaries = self._read()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._dictionaries

    def __next__(self) -> dict[str, Any]:
        return next(self._dictionaries)

    def __enter__(self) -> Changes:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop early, and remove temporary files."""
        self._dictionaries.close()

    def count(self) -> Summary:
        """Read all changes, and return only the counts."""
        with self.opened() as (old, new):
            for _ in self.changes(old, new):
                pass
        return self.summary

    def write(
        self,
        path: str | os.PathLike[str],
        *,
        format: ChangesFormat = "changes",  # noqa: A002
        deleted: str | os.PathLike[str] | None = None,
        elasticsearch_index: str = "questions",
        site_field: str | None = None,
        update: bool = False,
        force: bool = False,
    ) -> Summary:
        """Write the changes to a file, unless the file is up to date.

        Args:
            path: Name of the file; its extension determines the compression (`.gz`, `.zst`,
                otherwise none). `-` is standard output.
            format: `changes`: one object per line, and a last line with their number. `jsonl`: the
                new documents.
                `elasticsearch`: `index` and `delete` actions for the bulk API. `mongodb`: lines
                for `mongoimport --mode=upsert`. `ravendb`: RavenDB's import file.
            deleted: File for the ids of deleted documents, one object per line; needed for `jsonl`
                and `mongodb`, which have no form for deletions.
            elasticsearch_index: Name of the Elasticsearch index.
            site_field: Field added by `convert --site-field`, for ids such as `SITE/1`.
            update: Replace a file made from other outputs or with other options.
            force: Overwrite existing files.

        Returns:
            The counts of the changes.

        Raises:
            OptionError: An option has a value that is not allowed, or the outputs cannot be
                compared.
            OutputError: A file exists already, or cannot be read or written.
        """
        product = ChangesFile(
            self,
            path,
            deleted,
            format=format,
            elasticsearch_index=elasticsearch_index,
            site_field=site_field,
        )
        return product.build(force=force, update=update)

    def check(self, format: ChangesFormat, deleted: object) -> None:  # noqa: A002
        """Refuse a format that cannot represent these changes.

        Args:
            format: Format of the changes, as in `write`.
            deleted: File for the ids of deleted documents, as in `write`.

        Raises:
            OptionError: The format is unknown, or has no form for deletions.
        """
        choose("format", format, get_args(ChangesFormat))
        if deleted is not None or "deleted" not in self.request.only:
            return
        if not make_format(format, "", None).deletes:
            raise OptionError(
                f"{flag('format', format)} cannot represent deletions: give "
                f"{flag('deleted', 'FILE')} for their ids, or {flag('only', 'added,changed')}"
            )

    @contextmanager
    def opened(self) -> Iterator[tuple[Collection, Collection]]:
        """Open both outputs, and check that they can be compared."""
        request = self.request
        with ExitStack() as stack:
            old, new = (
                stack.enter_context(
                    open_input(
                        path,
                        work_dir=request.work_dir,
                        progress=request.progress,
                        **request.conversion,
                    )
                )
                for path in (request.old, request.new)
            )
            check_comparable(old, new, (request.old, request.new))
            yield old, new

    def _read(self) -> Generator[dict[str, Any], None, None]:
        with self.opened() as (old, new):
            for change in self.changes(old, new):
                yield orjson.loads(change.record())

    def changes(self, old: Collection, new: Collection) -> Iterator[Change]:
        """Iterate over the changes between two open outputs."""
        request = self.request
        total = sum(entry.size for output in (old, new) for entry in output.index)
        changed = 0
        with bar("comparing", total, shown=request.progress) as progress_bar:
            for question_id, before, after in iterate_differences(old, new, progress_bar.update):
                try:
                    change = compare(question_id, before, after, request.ignored)
                    if change is not None:
                        self.summary.add(change)
                except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
                    raise OutputError(
                        f"{request.old} or {request.new}: question {question_id} is not a document "
                        f"({error}); convert the dump again"
                    ) from None
                if change is None:
                    continue
                changed += before is not None
                if change.operation in request.only:
                    yield change
        self.summary.unchanged = len(old) - changed


class ChangesFile(Product[Summary]):
    """A changes file as a product, optionally with a file for the ids of deleted documents."""

    def __init__(
        self,
        changes: Changes,
        path: str | os.PathLike[str],
        deleted: str | os.PathLike[str] | None,
        **options: Any,
    ) -> None:
        changes.check(options["format"], deleted)
        names = ("format", "elasticsearch_index", "site_field")
        self._lines = make_format(*map(options.__getitem__, names))
        options["deleted"] = deleted is not None
        self._deleted = None if deleted is None else os.fspath(deleted)
        path, request, files = os.fspath(path), changes.request, []
        if path != "-":
            sides = [_identify(request, role) for role in ("old", "new")]
            files = [file for side in sides for file in side]
            if any(file.role not in ("old", "new") for file in files):
                made = build_options(request.conversion, core="python")
                options |= within_64_bits(Fingerprint.of(made).by_option())
        options |= {"only": sorted(request.only), "ignore": sorted(request.ignored)}
        record = make_record("diff", VERSION, options, files)
        super().__init__(path, record, (request.old, request.new))
        self._changes, self._request = changes, request

    @property
    def paths(self) -> list[str]:
        """The changes file, and the file of deleted ids, if any."""
        return [self.path] if self._deleted is None else [self.path, self._deleted]

    def load(self, records: list[Provenance]) -> Summary:
        """Return the recorded counts of an earlier run."""
        names = {"old_path": self._request.old, "new_path": self._request.new}
        return Summary.from_dict(records[0].counts | names)

    def make(self, files: NewFiles) -> Summary:
        """Compare the outputs, write the changes, and return their counts."""
        lines = self._lines
        with self._changes.opened() as (old, new), ExitStack() as stack:
            target, *ids = (stack.enter_context(Target(files, path)) for path in self.paths)
            target.write(lines.header)
            for change in self._changes.changes(old, new):
                if ids and change.operation == "deleted":
                    ids[0].write(lines.id_line(change))
                if lines.deletes or change.operation != "deleted":
                    target.write(lines.frame(change))
            target.write(lines.footer())
        return self._changes.summary

    def counts(self, result: Summary) -> dict[str, Any]:
        """Return the counts without the paths of the outputs."""
        values = result.as_dict()
        return {name: values[name] for name in values if not name.endswith("_path")}


def _identify(request: _Request, role: str) -> list[File]:
    """Identify the files of an input: an output, or the tables of a dump."""
    path = request.old if role == "old" else request.new
    if not os.path.isdir(path) and is_output(path, read_start(path)):
        return [File.of(role, path)]
    tables = options_for(path, request.conversion).tables
    return [file._replace(role=f"{role} {file.role}") for file in find_input(path, tables)]


def diff(
    old: str | os.PathLike[str],
    new: str | os.PathLike[str],
    *,
    only: Iterable[Operation] | str | None = None,
    ignore: Sequence[str] | str | None = None,
    work_dir: str | os.PathLike[str] | None = None,
    progress: bool = False,
    jobs: int | None = None,
    **conversion: Unpack[DocumentKeywords],
) -> Changes:
    """Compare two outputs of the same site, converted with the same options.

    Reading starts when the first change is requested. Of each output, one or two
    megabytes and the largest document are kept in memory.

    Args:
        old: An output of `convert` (`jsonl`, compressed or not), or a dump in any form, which is
            converted to a temporary output first.
        new: A later output or dump of the same site.
        only: Kinds of changes to report: any of `added`, `changed` and `deleted`, in a list or in
            text such as `added,changed`. All if None. `summary` always counts all changes.
        ignore: Fields such as `ViewCount,LastActivityDate,Answers.CommentCount`. Documents that
            differ only in these fields count as unchanged.
        work_dir: Folder for converted dumps; the system's temporary folder if None.
        progress: Show progress bars.
        jobs: Worker processes for converting dumps; all cores if None.
        conversion: Options of `convert` for dumps, such as `nest=["comments"]`.

    Returns:
        An iterator over changes, in ascending order of question id: `{"op": "added", "Id": 4,
        "document": {...}}`, `{"op": "changed", "Id": 6, "fields": ["Score"], "answers": {"added":
        [], "edited": [9], "deleted": []}, "document": {...}}` with the new document, `{"op":
        "deleted", "Id": 8}`.

    Raises:
        OptionError: A name in `only` or `ignore` is unknown, or an option has a value that is not
            allowed.
        TypeError: An option is unknown.
    """
    kwargs = validate_keywords({**conversion, "jobs": jobs}, "documents", "local")
    build_options(kwargs, core="python")
    choice = only.split(",") if isinstance(only, str) else OPERATIONS if only is None else only
    operations = frozenset(name.strip() for name in choice)
    if not operations or not operations <= set(OPERATIONS):
        names = ",".join(sorted(operations))
        raise OptionError(
            f"{flag('only')} is {names!r}; it must be one or more of: {', '.join(OPERATIONS)}"
        )
    ignored = parse_field_names("ignore", ignore or ())
    for name in ignored:
        if "." in name.removeprefix(f"{ANSWERS}."):
            whole = name.split(".")[0]
            raise OptionError(f"{flag('ignore', name)}: name a whole field, such as {whole}")
    return Changes(
        _Request(
            os.fspath(old),
            os.fspath(new),
            operations,
            frozenset(ignored),
            None if work_dir is None else os.fspath(work_dir),
            progress,
            kwargs,
        )
    )
