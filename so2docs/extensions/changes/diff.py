"""Compare two outputs: `diff` returns the changes as an iterator, or writes them to a file.

Outputs are in ascending order of question id, so one pass over both finds all changes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

import orjson

from so2docs.extensions.changes.compare import Summary, find_difference
from so2docs.extensions.changes.options import ComparisonOptions, ReplaceOptions
from so2docs.options.choices import split_compression
from so2docs.plugin import (
    File,
    NewFiles,
    OptionError,
    Output,
    OutputError,
    Product,
    Provenance,
    describe_foreign,
    flag,
    log,
    make_record,
    options_of,
    parse_document,
    read_lines,
    read_options,
    read_provenance,
    spell_out,
    unreadable_output,
)
from so2docs.progress import bar

if TYPE_CHECKING:
    from so2docs.extensions.keywords import ComparisonKeywords, ReplaceKeywords

VERSION = 1
"""Version of the changes file. Increase it when the same outputs would give another file."""

_ID = re.compile(rb'\{"Id":(-?\d{1,18})[,}]')
_LINES = 256
"""Number of lines between two updates of the progress bar."""

Line = tuple[int, str, bytes]
"""Question id, path of the output, and the document as a line of JSON."""


class Changes(AbstractContextManager["Changes"]):
    """The result of `so2docs.diff`: changes between two outputs, in ascending order of question id.

    The changes can be read only once: iterate over them (each is a dictionary), or call `write` or
    `count`.

    Attributes:
        summary: Counts of the changes, complete after the last one.
        lines: The changes as lines of JSON, with their line feeds.
    """

    def __init__(self, old: str | None, new: str, options: ComparisonOptions) -> None:
        """Take the paths of the outputs, and the options; without `old`, all questions are new."""
        self.old, self.new, self.options = old, new, options
        self.summary = Summary(old or "", new)
        self.lines = self._compare()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        change: dict[str, Any] = orjson.loads(next(self.lines))
        return change

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop early, and close the outputs."""
        self.lines.close()

    def count(self) -> Summary:
        """Read all changes, and return only the counts."""
        for _ in self.lines:
            pass
        return self.summary

    @spell_out(options_of(ReplaceOptions))
    def write(self, path: str | os.PathLike[str], **keywords: Unpack[ReplaceKeywords]) -> Summary:
        """Write the changes to a file, unless the file is up to date.

        Args:
            path: Name of the file; its extension determines the compression (`.gz`, `.zst`,
                otherwise none). `-` is standard output.
            keywords: Options: `so2docs.extensions.keywords.ReplaceKeywords`.

        Returns:
            The counts of the changes.

        Raises:
            OptionError: An option has a value that is not allowed, or the outputs cannot be
                compared.
            OutputError: A file exists already, or cannot be read or written.
        """
        options = read_options(ReplaceOptions, keywords)
        product = ChangesFile(self, os.fspath(path))
        return product.build(force=options.force, update=options.update)

    def _compare(self) -> Generator[bytes, None, None]:
        """Read both outputs side by side, and yield the changes."""
        paths = [path for path in (self.old, self.new) if path is not None]
        with ExitStack() as stack:
            files = [stack.enter_context(_open(path)) for path in paths]
            if self.old is not None:
                _check_comparable(self.old, self.new)
            total = sum(os.fstat(file.fileno()).st_size for file in files)
            progress_bar = stack.enter_context(bar("comparing", total, shown=self.options.progress))
            lines = merge(*(_read_lines(file, progress_bar.update) for file in files))
            for question_id, group in groupby(lines, itemgetter(0)):
                states: dict[str | None, bytes] = {path: line for _, path, line in group}
                change = self._describe(question_id, states.get(self.old), states.get(self.new))
                if change is None:
                    self.summary.unchanged += 1
                else:
                    yield orjson.dumps(change, option=orjson.OPT_APPEND_NEWLINE)

    def _describe(
        self, question_id: int, old: bytes | None, new: bytes | None
    ) -> dict[str, Any] | None:
        """Return a change, given both states of a document; None if only ignored fields differ."""
        if old == new:
            return None
        try:
            difference = find_difference(*(orjson.loads(line or b"{}") for line in (old, new)))
        except (AttributeError, KeyError, TypeError, orjson.JSONDecodeError) as error:
            names = " or ".join(filter(None, (self.old, self.new)))
            raise OutputError(
                f"{names}: question {question_id} is not a document ({error}); "
                "convert the dump again"
            ) from None
        change: dict[str, Any] = {"op": "changed", "Id": question_id}
        if old is None or new is None:
            change["op"] = "added" if old is None else "deleted"
        elif self.options.ignore and difference.is_only_in(self.options.ignore):
            return None
        else:
            change |= {"fields": difference.fields, "answers": difference.answers}
        self.summary.count(change["op"], difference)
        return change if new is None else {**change, "document": orjson.Fragment(new)}


def _open(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise unreadable_output(path, error) from error


def _read_lines(file: BinaryIO, read: Callable[[int], object]) -> Iterator[Line]:
    """Yield the documents of an output; `read` is called with numbers of compressed bytes read."""
    path, last_id, position = file.name, -(1 << 64), 0
    for number, line in enumerate(read_lines(file), 1):
        question_id = _read_id(line, path, number)
        if question_id <= last_id:
            raise OutputError(
                f"{path}: question {question_id} comes after question {last_id}; documents can be "
                "compared only in ascending order of Id; convert the dump again"
            )
        last_id = question_id
        yield question_id, path, line.rstrip(b"\n")
        if number % _LINES == 0:
            read(file.tell() - position)
            position = file.tell()
    read(file.tell() - position)


def _read_id(line: bytes, path: str, number: int) -> int:
    """Read the `Id` of a document, usually without parsing the document."""
    if match := _ID.match(line):
        return int(match[1])
    document = parse_document(line, path, number)
    question_id = document.get("Id") if isinstance(document, dict) else None
    if not isinstance(question_id, int):
        reason = describe_foreign(line) if number == 1 else None
        advice = "if --fields or --drop-fields left it out, convert the dump again with it"
        reason = reason or f"line {number:,} is not a document with an Id; {advice}"
        raise OutputError(f"{path}: {reason}")
    return question_id


def _check_comparable(old: str, new: str) -> None:
    """Refuse outputs from different sites, or made with different options.

    Outputs without a record of how they were made are not checked.
    """
    before, after = read_provenance(old), read_provenance(new)
    if before is None or after is None:
        log.info(
            f"{old if before is None else new}: has no record of how it was made, so the sites and "
            "options of the outputs cannot be compared"
        )
        return
    reason = None
    if before.site and after.site and before.site != after.site:
        reason = f"the sites are not the same ({before.site}, {after.site})"
    elif other_options := before.other_options(after, of_documents=True):
        reason = (
            f"they were converted with different options ({', '.join(map(flag, other_options))})"
        )
    elif before.contract != after.contract:
        reason = "they were made by versions of so2docs that write different documents"
    if reason is not None:
        raise OptionError(
            f"{old} and {new} cannot be compared: {reason}; "
            "convert both dumps of one site with the same options"
        )


class ChangesFile(Product[Summary]):
    """A changes file as a product: a line for each change, and a last line with their number."""

    def __init__(self, changes: Changes, path: str) -> None:
        self._changes = changes
        sides = {"old": changes.old, "new": changes.new}
        inputs = {role: side for role, side in sides.items() if side is not None}
        files = [] if path == "-" else [File.of(role, side) for role, side in inputs.items()]
        record = make_record("diff", VERSION, changes.options, files)
        super().__init__(path, record, inputs.values())

    def load(self, record: Provenance) -> Summary:
        """Return the recorded counts of an earlier run."""
        names = {"old_path": self._changes.old or "", "new_path": self._changes.new}
        return Summary.from_dict(record.counts | names)

    def make(self, files: NewFiles) -> Summary:
        """Compare the outputs, write the changes, and return their counts."""
        written, compression = 0, split_compression(self.path)[1] or "none"
        output = Output(files, self.path, compression)
        with closing(self._changes.lines) as lines:
            for line in lines:
                output.write(line)
                written += 1
            output.write(b'{"op":"end","changes":%d}\n' % written)
            output.seal()
        return self._changes.summary

    def counts(self, result: Summary) -> dict[str, Any]:
        """Return the counts without the paths of the outputs."""
        values = result.as_dict()
        return {name: values[name] for name in values if not name.endswith("_path")}


@spell_out(options_of(ComparisonOptions))
def diff(
    old: str | os.PathLike[str],
    new: str | os.PathLike[str],
    **keywords: Unpack[ComparisonKeywords],
) -> Changes:
    """Compare two outputs of the same site, converted with the same options.

    Reading starts when the first change is requested. Of each output, a few megabytes and the
    largest document are kept in memory.

    Args:
        old: An output of `convert` (`jsonl`, compressed or not).
        new: A later output of the same site.
        keywords: Options: `so2docs.extensions.keywords.ComparisonKeywords`.

    Returns:
        An iterator over changes, in ascending order of question id: `{"op": "added", "Id": 4,
        "document": {...}}`, `{"op": "changed", "Id": 6, "fields": ["Score"], "answers": {"added":
        [], "edited": [9], "deleted": []}, "document": {...}}` with the new document, `{"op":
        "deleted", "Id": 8}`. `summary` always counts all changes.

    Raises:
        OptionError: A name in `ignore` is unknown, or an option has a value that is not allowed.
        TypeError: An option is unknown.
    """
    return Changes(os.fspath(old), os.fspath(new), read_options(ComparisonOptions, keywords))
