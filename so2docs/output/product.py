"""Products: files made from inputs with options, such as an output or a database.

Only this module decides whether a product is up to date and whether it may be replaced.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import orjson
from isal.isal_zlib import crc32

from so2docs.errors import OutputError, OutputExistsError, convert_error, flag
from so2docs.options.choices import FORMATS
from so2docs.output import index
from so2docs.output.new_files import NewFiles, clean_up
from so2docs.output.part_files import (
    CARD,
    RECORD,
    check_replaceable,
    crc_of,
    side_file,
)
from so2docs.output.provenance import (
    UP_TO_DATE,
    Comparison,
    File,
    Provenance,
    State,
    dump_record,
    load,
    parse_record,
)
from so2docs.progress import log
from so2docs.registry import find_hook, has_hook

Result = TypeVar("Result")

_HEAD_BYTES = 16


class ExistingOutputError(OutputExistsError):
    """A product exists and may not be replaced; the message says how it was made."""

    def __init__(self, message: str, state: State = "unknown") -> None:
        super().__init__(message)
        self.state: State = state


class Product(Generic[Result]):
    """Files made from inputs with options. Each kind of product is a subclass.

    Attributes:
        path: The main file; `-` is standard output.
        provenance: The record of the requested product.
        inputs: Files that the product must not replace; None for an input that is not a file.
    """

    noun = "output"

    def __init__(
        self, path: str, provenance: Provenance, inputs: Iterable[str | None] = ()
    ) -> None:
        self.path = path
        self.provenance = provenance
        self.inputs = tuple(inputs)

    @property
    def paths(self) -> list[str]:
        """The main files to write, in order."""
        return [self.path]

    def existing_files(self) -> list[str]:
        """Return the existing main files, in order."""
        return list(filter(os.path.exists, self.paths))

    def read_record(self) -> Provenance | None:
        """Return the record of the existing product; None if its origin is unknown."""
        return read_provenance(self.path)

    def load(self, record: Provenance) -> Result:
        """Return the result of the call that made the existing product."""
        raise NotImplementedError

    def make(self, files: NewFiles) -> Result:
        """Make the product as new files, and return the result.

        `build` has claimed `paths`, and publishes `files`.
        """
        raise NotImplementedError

    def counts(self, result: Result) -> dict[str, Any] | None:
        """Return the counts to record next to the product; None for a product without a record."""
        return None

    def compare(self) -> Comparison:
        """Compare the existing product with the requested one."""
        existing = [] if self.path == "-" else self.existing_files()
        if not existing:
            return Comparison("missing")
        record = self.read_record()
        if record is None:
            return Comparison("unknown", " and has no record of how it was made")
        comparison = record.compare(self.provenance)
        if comparison.state == UP_TO_DATE and record.files:
            folder = os.path.dirname(self.path) or "."
            recorded = {file.name: file[2:4] for file in record.files}
            files = [
                (path, *recorded.get(os.path.relpath(path, folder), (-1, None)))
                for path in existing
            ]
            if not are_unchanged(files, side_file(self.path, RECORD)):
                return CHANGED
            if len(existing) < len(recorded):  # The run was killed while renaming files.
                return Comparison("missing")
        return comparison

    def find(self, *, force: bool, update: bool = False) -> Result | None:
        """Return the result of the existing product; None if the product must be made."""
        if self.path != "-":
            check_replaceable(self.path)
        if force:
            return None
        comparison = self.compare()
        if comparison.state == UP_TO_DATE and (record := self.read_record()) is not None:
            try:
                return self.load(record)
            except (AttributeError, KeyError, TypeError, ValueError):
                comparison = Comparison("unknown", ", and the counts in its record are damaged")
        if not update:
            self.refuse(comparison)
        return None

    def refuse(self, comparison: Comparison) -> None:
        """Refuse to replace the existing product, unless its state is `missing`."""
        if comparison.state == "missing":
            return
        path = self.existing_files()[0]
        raise ExistingOutputError(
            f"{path}: exists{comparison.reason}; choose another {self.noun}, remake it with "
            f"{flag('update', True)}, or overwrite with {flag('force', True)}",
            comparison.state,
        )

    def build(self, *, force: bool, update: bool = False) -> Result:
        """Make the product, unless it is up to date; return its result in either case.

        Raises:
            ExistingOutputError: A product that is not up to date exists and may not be replaced.
        """
        result = self.find(force=force, update=update)
        if result is None:
            with NewFiles(self.path) as files:
                self._claim(files)
                # Another process may have just made the product.
                result = self.find(force=force, update=update)
                if result is None:
                    return self._make_and_record(files)
        self.clean_up()
        log.info("%s: is up to date", self.path)
        return result

    def clean_up(self) -> None:
        """Remove what a killed process left beside the product, which is up to date."""
        clean_up(self.path)

    def _claim(self, files: NewFiles) -> None:
        for number, path in enumerate(self.paths):
            read = (*self.inputs, *self.paths[:number])
            files.claim(path, read, advice=f"choose another {self.noun}")

    def _make_and_record(self, files: NewFiles) -> Result:
        result = self.make(files)
        counts = self.counts(result)
        if counts is not None and self.path != "-":
            record = replace(self.provenance, counts=counts)
            files.write(side_file(self.path, RECORD), _seal_record(self.path, record, files))
        return result


CHANGED = Comparison("unknown", ", and is not the file that was written")


def are_unchanged(files: Iterable[tuple[str, int, str | None]], side: str) -> bool:
    """Whether files have the size and the CRC-32 that were recorded when they were written.

    A file that is older than the side file was not written since, so it is not read.

    Args:
        files: Path, recorded size, and recorded CRC-32 of each file.
        side: Path of the side file with the record, which was written after the files.
    """
    recorded = os.stat(side).st_mtime_ns
    for path, size, content in files:
        state = os.stat(path)
        if state.st_size != size:
            return False
        if state.st_mtime_ns >= recorded:
            with open(path, "rb", buffering=0) as file:
                if as_text(crc_of(file, size)) != content:
                    return False
    return True


def as_text(crc: int) -> str:
    """Format a CRC-32 for a record."""
    return f"{crc:08x}"


def _seal_record(path: str, record: Provenance, files: NewFiles) -> bytes:
    """Return the bytes of the side file with the record of a product.

    Args:
        path: Main file of the product, after which the side file is named.
        record: The record, without files.
        files: The new files. The README of a data set is not recorded, since a card may replace it.
    """
    folder = os.path.dirname(path) or "."
    made = []
    for name, size, crc in files.main_files():
        if os.path.basename(name) != CARD:
            made.append(File("", os.path.relpath(name, folder), size, as_text(crc)))
    data = replace(record, files=tuple(made)).to_json()
    values = {"record": orjson.Fragment(data), "crc": crc32(data)}
    return orjson.dumps(values)


def read_provenance(path: str) -> Provenance | None:
    """Read the provenance of a product with one main file; None if unknown."""
    data = b""
    try:
        with suppress(FileNotFoundError, IsADirectoryError):
            data = _read_inner_record(path) or index.read_record(path)
        with suppress(FileNotFoundError):
            data = data or _read_sealed(Path(side_file(path, RECORD)).read_bytes())
    except OSError as error:
        problem = "the record of how it was made cannot be read"
        raise convert_error(error, path, problem) from error
    return load(data) if data else None


def _read_inner_record(path: str) -> bytes:
    """Read the record inside a file; empty for the formats with a side file."""
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    for name, traits in FORMATS.items():
        if traits.magic and head.startswith(traits.magic) and has_hook(f"record in {name}"):
            record: bytes = find_hook(f"record in {name}")(path)
            return record
    return b""


def read_recipe(path: str) -> str | None:
    """Read the name of an output's recipe from its provenance; None if unknown or not used."""
    with suppress(OutputError):
        provenance = read_provenance(path)
        return None if provenance is None else provenance.options.get("recipe")
    return None


def _read_sealed(data: bytes) -> bytes:
    """Return the record in the bytes of a side file; empty if damaged."""
    try:
        values = parse_record(data)
        record = dump_record(values["record"])
        return record if values["crc"] == crc32(record) else b""
    except (KeyError, TypeError, ValueError):
        return b""
