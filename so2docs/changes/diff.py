"""Two outputs in, their changes out, as an iterator or a file; dumps are converted on the way."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Unpack

import orjson

from so2docs.api.convert import convert_validated
from so2docs.changes.changes_file import Header, Target, iterate_differences
from so2docs.changes.compare import ANSWERS, OPERATIONS, Change, Operation, Summary, compare
from so2docs.changes.framing import FRAMINGS
from so2docs.errors import DumpError, OptionError, OutputError, flag, resumable
from so2docs.options.choices import ChangesFormat
from so2docs.options.field_paths import parse_field_names
from so2docs.options.keywords import DocumentKeywords
from so2docs.options.request import build_options, validate_keywords
from so2docs.output.new_files import NewFiles, temporary_folder
from so2docs.progress import bar, log
from so2docs.reader.collection import Collection
from so2docs.reader.collection import open as open_output
from so2docs.reader.reading import is_output, read_start


@contextmanager
def open_input(
    path: str, *, work_dir: str | None, progress: bool, **options: Any
) -> Iterator[Collection]:
    """Open an output, or convert a dump into a temporary one and open that.

    Args:
        path: An output or a dump.
        work_dir: Folder for a dump's output, which is removed at the end; the system's temporary
            folder if None.
        progress: Show progress bars.
        options: Options of the conversion.

    Raises:
        So2docsError: As `convert` and `open` do.
    """
    if not os.path.isdir(path) and is_output(path, read_start(path)):
        with open_output(path, progress=progress) as collection:
            yield collection
        return
    # The converted output is temporary: no state to resume from, no excerpt to look at.
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
    """Check that two outputs are of one site and were made with the same options.

    Args:
        old: The old output.
        new: The new one.
        names: Their names in messages.

    Raises:
        OptionError: The outputs cannot be compared; the message says why.
    """
    before, after = old.provenance, new.provenance
    if before is None or after is None:
        unknown = " and ".join(
            name for name, recorded in zip(names, (before, after), strict=True) if recorded is None
        )
        log.info(
            f"{unknown}: no record of how it was made; whether both outputs come from one site and "
            "the same options cannot be checked"
        )
        return
    reason = None
    if None not in (before.site, after.site) and before.site != after.site:
        reason = f"the sites are not the same ({before.site}, {after.site})"
    elif others := before.other_options(after, of_documents=True):
        reason = f"they were converted with other options ({', '.join(others)})"
    elif before.contract != after.contract:
        reason = "they were made by versions of so2docs that write other documents"
    if reason is not None:
        raise OptionError(
            f"{names[0]} and {names[1]} cannot be compared: {reason}; "
            "convert both dumps of one site with the same options"
        )


@dataclass(frozen=True, slots=True)
class _Request:
    """What to compare, and which changes to report."""

    old: str
    new: str
    only: frozenset[str]
    ignored: frozenset[str]
    work_dir: str | None
    progress: bool
    conversion: dict[str, Any]

    @property
    def is_everything(self) -> bool:
        """Whether the changes are all that is needed to make the new output from the old one."""
        return not self.ignored and self.only == set(OPERATIONS)


class Changes:
    """The changes between two outputs, in ascending question id; `so2docs.diff` makes one.

    Iterate over it for dictionaries, or `write` it, or `count` it, once.

    Attributes:
        summary: Numbers; complete when all changes were read.
    """

    def __init__(self, request: _Request) -> None:
        self.summary = Summary(request.old, request.new)
        self._request = request
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
        """Stop early, and remove what was temporary."""
        self._dictionaries.close()

    def count(self) -> Summary:
        """Read all changes and keep none: the numbers alone."""
        with self._opened() as (old, new):
            for _ in self._changes(old, new):
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
        force: bool = False,
    ) -> Summary:
        """Write all changes.

        Args:
            path: File for them; its name says the compression (.gz, .zst, else none). `-` is
                standard output.
            format: `changes`: one object a line, as `patch` takes them, between a line that says
                which outputs were compared and one with their checksum. `jsonl`: the new documents.
                `elasticsearch`: `index` and `delete` actions for the bulk API. `mongodb`: for
                `mongoimport --mode=upsert`. `ravendb`: RavenDB's import file.
            deleted: File for the ids of deleted documents, one object a line; needed for `jsonl`
                and `mongodb`, which cannot say it themselves.
            elasticsearch_index: Name of the Elasticsearch index.
            site_field: The field that `convert --site-field` added, for ids such as `SITE/1`.
            force: Overwrite existing files.

        Returns:
            The numbers.

        Raises:
            OptionError: An option has a value that is not allowed, or the outputs cannot be
                compared.
            OutputError: A file exists, cannot be read, or cannot be written.
        """
        self.check(format, deleted)
        framing = FRAMINGS[format](elasticsearch_index, site_field)
        request, name = self._request, os.fspath(path)
        with self._opened() as (old, new), NewFiles() as files, ExitStack() as targets:
            read = request.old, request.new
            target = targets.enter_context(Target(files, name, read, force=force))
            ids = None
            if deleted is not None:
                path = os.fspath(deleted)
                ids = targets.enter_context(Target(files, path, (*read, name), force=force))
            made_from = Header.between(old, new, is_everything=request.is_everything)
            target.write(framing.header(made_from))
            for change in self._changes(old, new):
                if ids is not None and change.operation == "deleted":
                    ids.write(framing.deletion(change))
                if framing.tells_deletions or change.operation != "deleted":
                    target.write(framing.frame(change))
            target.write(framing.footer())
        return self.summary

    def check(self, format: ChangesFormat, deleted: object) -> None:  # noqa: A002
        """Refuse a format that cannot hold these changes.

        Args:
            format: As of `write`.
            deleted: As of `write`.

        Raises:
            OptionError: It is unknown, or cannot say what was deleted.
        """
        if format not in FRAMINGS:
            raise OptionError(
                f"{flag('format')} is {format!r}; it must be one of: {', '.join(FRAMINGS)}"
            )
        if deleted is not None or "deleted" not in self._request.only:
            return
        if not FRAMINGS[format].tells_deletions:
            raise OptionError(
                f"{flag('format', format)} cannot say what was deleted: give "
                f"{flag('deleted', 'FILE')} for those ids, or {flag('only', 'added,changed')}"
            )

    @contextmanager
    def _opened(self) -> Iterator[tuple[Collection, Collection]]:
        request = self._request
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
        with self._opened() as (old, new):
            for change in self._changes(old, new):
                yield orjson.loads(change.record())

    def _changes(self, old: Collection, new: Collection) -> Iterator[Change]:
        request = self._request
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
    """Compare two outputs of one site, converted with the same options.

    Nothing is read before the first change is asked for. Memory: a megabyte or two of each output,
    and its largest document.

    Args:
        old: An output of `convert` (`jsonl`, compressed or not), or a dump in any form, which is
            converted into a temporary output first.
        new: The same of a later date.
        only: Of `added`, `changed` and `deleted`, those to tell of, also as `added,changed`; all if
            None. `summary` counts all of them.
        ignore: Fields whose change alone does not count, such as
            `ViewCount,LastActivityDate,Answers.CommentCount`.
        work_dir: Folder for what dumps become; the system's temporary folder if None.
        progress: Show progress bars.
        jobs: Worker processes for converting dumps; all cores if None.
        conversion: What dumps become, such as `nest=["comments"]`: as of `convert`.

    Returns:
        An iterator over changes, in ascending question id: `{"op": "added", "Id": 4, "document":
        {...}}`, `{"op": "changed", "Id": 6, "fields": ["Score"], "answers": {"added": [], "edited":
        [9], "deleted": []}, "document": {...}}` with the new document, `{"op": "deleted", "Id":
        8}`.

    Raises:
        OptionError: A name in `only` or `ignore` is unknown, or an option has a value that is not
            allowed.
        TypeError: There is no such option.
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
