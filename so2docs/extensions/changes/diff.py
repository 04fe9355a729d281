"""Compare two outputs: `diff` returns the changes as an iterator, or writes them to a file.

Dumps are converted to temporary outputs first.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any, Unpack

import orjson

from so2docs.api.convert import convert_validated
from so2docs.api.resolve import find_input, options_for
from so2docs.dump.source import Source
from so2docs.errors import DumpError, OptionError, OutputError, flag, resumable
from so2docs.extensions.changes.compare import Change, Summary, compare
from so2docs.extensions.changes.differences import iterate_differences
from so2docs.extensions.changes.formats import make_format
from so2docs.extensions.options import ChangesOptions, ComparisonOptions
from so2docs.options.request import (
    build_options,
    build_run_options,
    read_options,
    recorded,
    recorded_options,
    validate_keywords,
)
from so2docs.options.signatures import spell_out
from so2docs.options.table import OF_ITERATOR, options_of, taken_by
from so2docs.output.file import Target
from so2docs.output.formats.base import ID_LINE
from so2docs.output.new_files import NewFiles, temporary_folder
from so2docs.output.product import Product
from so2docs.output.provenance import File, Provenance, make_record, within_64_bits
from so2docs.progress import bar, log
from so2docs.reader.collection import Collection
from so2docs.reader.collection import open as open_output
from so2docs.reader.reading import is_output, read_start

if TYPE_CHECKING:
    from so2docs.options.keywords import ChangesKeywords, ComparisonKeywords

VERSION = 1
"""Version of the changes file. Increase it when the same outputs would give another file."""


@contextmanager
def open_input(path: str, conversion: dict[str, Any]) -> Iterator[Collection]:
    """Open an output, or convert a dump to a temporary output and open it."""
    run = build_run_options(conversion)
    if _is_output(path):
        with open_output(path, progress=run.progress is True) as collection:
            yield collection
        return
    # The output is temporary, so errors must mention neither resuming nor an excerpt.
    with temporary_folder(run.work_dir) as folder:
        converted = os.path.join(folder, "questions.jsonl.gz")
        log.info("%s: is a dump; converting it first", path)
        try:
            with resumable(False):
                convert_validated(path, converted, {**conversion, "work_dir": None, "level": 1})
        except DumpError as error:
            error.excerpt_path = None
            raise
        with open_output(converted, progress=run.progress is True) as collection:
            yield collection


def _is_output(path: str) -> bool:
    return not os.path.isdir(path) and is_output(path, read_start(path))


def check_comparable(old: Collection, new: Collection, names: tuple[str, str]) -> None:
    """Refuse outputs from different sites, or made with different options.

    Outputs without a record of how they were made are not checked.
    """
    before, after = old.provenance, new.provenance
    if before is None or after is None:
        unknown = names[0] if before is None else names[1]
        log.info(
            f"{unknown}: has no record of how it was made, so the sites and options of the "
            "outputs cannot be compared"
        )
        return
    reason = None
    if before.site and after.site and before.site != after.site:
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


class Changes(AbstractContextManager["Changes"]):
    """The result of `so2docs.diff`: changes between two outputs, in ascending order of question id.

    The changes can be read only once: iterate over them (each is a dictionary), or call `write` or
    `count`.

    Attributes:
        summary: Counts of the changes, complete after the last one.
    """

    def __init__(
        self, paths: tuple[str, str], options: ComparisonOptions, conversion: dict[str, Any]
    ) -> None:
        """Take the inputs, the options of the comparison, and those for converting dumps."""
        self.paths, self.options, self.conversion = paths, options, conversion
        self.summary = Summary(*paths)
        self._dictionaries = self._read()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self._dictionaries

    def __next__(self) -> dict[str, Any]:
        return next(self._dictionaries)

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop early, and remove temporary files."""
        self._dictionaries.close()

    def count(self) -> Summary:
        """Read all changes, and return only the counts."""
        for _ in self.changes():
            pass
        return self.summary

    @spell_out(options_of(ChangesOptions))
    def write(self, path: str | os.PathLike[str], **keywords: Unpack[ChangesKeywords]) -> Summary:
        """Write the changes to a file, unless the file is up to date.

        Args:
            path: Name of the file; its extension determines the compression (`.gz`, `.zst`,
                gzip for `.ravendbdump`, otherwise none). `-` is standard output.
            keywords: Options: `so2docs.options.keywords.ChangesKeywords`.

        Returns:
            The counts of the changes.

        Raises:
            OptionError: An option has a value that is not allowed, or the outputs cannot be
                compared.
            OutputError: A file exists already, or cannot be read or written.
        """
        options = read_options(ChangesOptions, keywords)
        return ChangesFile(self, path, options).build(force=options.force, update=options.update)

    def check(self, options: ChangesOptions) -> None:
        """Refuse a format that cannot represent these changes."""
        if options.deleted is not None or "deleted" not in self.options.only:
            return
        if not make_format(options.format, "", None).deletes:
            raise OptionError(
                f"{flag('format', options.format)} cannot represent deletions: give "
                f"{flag('deleted', 'FILE')} for their ids, or {flag('only', 'added,changed')}"
            )

    def _read(self) -> Generator[dict[str, Any], None, None]:
        with closing(self.changes()) as changes:
            for change in changes:
                yield orjson.loads(change.record())

    def changes(self) -> Generator[Change, None, None]:
        """Open both outputs, check that they can be compared, and yield the changes."""
        with ExitStack() as stack:
            old, new = (
                stack.enter_context(open_input(path, self.conversion)) for path in self.paths
            )
            check_comparable(old, new, self.paths)
            yield from self._compare(old, new)

    def _compare(self, old: Collection, new: Collection) -> Iterator[Change]:
        shown = build_run_options(self.conversion).progress
        total = sum(entry.size for output in (old, new) for entry in output.index)
        changed = 0
        with bar("comparing", total, shown=shown) as progress_bar:
            for question_id, before, after in iterate_differences(old, new, progress_bar.update):
                try:
                    change = compare(question_id, before, after, self.options.ignore)
                    if change is None:
                        continue
                    self.summary.add(change)
                except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError) as error:
                    raise OutputError(
                        f"{' or '.join(self.paths)}: question {question_id} is not a document "
                        f"({error}); convert the dump again"
                    ) from None
                changed += before is not None
                if change.operation in self.options.only:
                    yield change
        self.summary.unchanged = len(old) - changed


class ChangesFile(Product[Summary]):
    """A changes file as a product, optionally with a file for the ids of deleted documents."""

    def __init__(
        self, changes: Changes, path: str | os.PathLike[str], options: ChangesOptions
    ) -> None:
        changes.check(options)
        self._lines = make_format(options.format, options.elasticsearch_index, options.site_field)
        self._deleted, self._changes, files = options.deleted, changes, []
        path, how = os.fspath(path), recorded(options) | recorded(changes.options)
        if path != "-":
            sides = [_identify(changes, role) for role in ("old", "new")]
            files = [file for side in sides for file in side]
            if any(file.role not in ("old", "new") for file in files):
                made = build_options(changes.conversion, core="python")
                how = within_64_bits(recorded_options(made)) | how
        super().__init__(path, make_record("diff", VERSION, how, files), changes.paths)

    @property
    def paths(self) -> list[str]:
        """The changes file, and the file of deleted ids, if any."""
        return [self.path] if self._deleted is None else [self.path, self._deleted]

    def load(self, records: list[Provenance]) -> Summary:
        """Return the recorded counts of an earlier run."""
        names = dict(zip(("old_path", "new_path"), self._changes.paths, strict=True))
        return Summary.from_dict(records[0].counts | names)

    def make(self, files: NewFiles) -> Summary:
        """Compare the outputs, write the changes, and return their counts."""
        lines = self._lines
        with closing(self._changes.changes()) as changes, ExitStack() as stack:
            target, *ids = (stack.enter_context(Target(files, path)) for path in self.paths)
            target.write(lines.header)
            for change in changes:
                is_deletion = change.operation == "deleted"
                if ids and is_deletion:
                    line = ID_LINE % change.question_id if lines.deletes else lines.frame(change)
                    ids[0].write(line)
                if lines.deletes or not is_deletion:
                    target.write(lines.frame(change))
            target.write(lines.footer())
        return self._changes.summary

    def counts(self, result: Summary) -> dict[str, Any]:
        """Return the counts without the paths of the outputs."""
        values = result.as_dict()
        return {name: values[name] for name in values if not name.endswith("_path")}


def _identify(changes: Changes, role: str) -> list[File]:
    """Identify the files of an input: an output, or the tables of a dump."""
    path = changes.paths[role == "new"]
    if _is_output(path):
        return [File.of(role, path)]
    with Source(path) as source:
        files = find_input(source, options_for(source, changes.conversion).tables)
    return [file._replace(role=f"{role} {file.role}") for file in files]


@spell_out(options_of(ComparisonOptions) | taken_by(*OF_ITERATOR))
def diff(
    old: str | os.PathLike[str],
    new: str | os.PathLike[str],
    **keywords: Unpack[ComparisonKeywords],
) -> Changes:
    """Compare two outputs of the same site, converted with the same options.

    Reading starts when the first change is requested. Of each output, one or two
    megabytes and the largest document are kept in memory.

    Args:
        old: An output of `convert` (`jsonl`, compressed or not), or a dump in any form, which is
            converted to a temporary output first.
        new: A later output or dump of the same site.
        keywords: Options: `so2docs.options.keywords.ComparisonKeywords`. All except `only`,
            `ignore` and `progress` apply to dumps.

    Returns:
        An iterator over changes, in ascending order of question id: `{"op": "added", "Id": 4,
        "document": {...}}`, `{"op": "changed", "Id": 6, "fields": ["Score"], "answers": {"added":
        [], "edited": [9], "deleted": []}, "document": {...}}` with the new document, `{"op":
        "deleted", "Id": 8}`. `summary` always counts all changes.

    Raises:
        OptionError: A name in `only` or `ignore` is unknown, or an option has a value that is not
            allowed.
        TypeError: An option is unknown.
    """
    kwargs: dict[str, Any] = {**keywords}
    own = {name: kwargs.pop(name) for name in options_of(ComparisonOptions) if name in kwargs}
    options = read_options(ComparisonOptions, own)
    kwargs = validate_keywords(kwargs, *OF_ITERATOR)
    build_options(kwargs, core="python")
    build_run_options(kwargs)
    return Changes((os.fspath(old), os.fspath(new)), options, kwargs)
