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

from so2docs.errors import OutputError, OutputExistsError, flag
from so2docs.output import index
from so2docs.output.formats import footer
from so2docs.output.new_files import NewFiles
from so2docs.output.part_files import (
    RECORD,
    FileState,
    check_replaceable,
    part_path,
    side_file,
    write_part,
)
from so2docs.output.provenance import (
    KEY,
    UP_TO_DATE,
    Comparison,
    File,
    Provenance,
    State,
    load,
)
from so2docs.progress import log

Result = TypeVar("Result")


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
        replaces: Whether an existing file will be replaced; known after `find`.
    """

    noun = "output"
    is_updated = True

    def __init__(self, path: str, provenance: Provenance) -> None:
        self.path = path
        self.provenance = provenance
        self.replaces = False

    def existing_files(self) -> list[str]:
        """Return the existing main files, in order."""
        return [self.path] if os.path.exists(self.path) else []

    def read_records(self) -> list[Provenance | None]:
        """Return the records of the existing files; None for a file of unknown origin."""
        return [read_provenance(self.path)]

    def load(self, records: list[Provenance]) -> Result:
        """Return the result of the call that made the existing product."""
        raise NotImplementedError

    def make(self) -> Result:
        """Make the product, rename the files to their final names, and return the result."""
        raise NotImplementedError

    def compare(self) -> Comparison:
        """Compare the existing product with the requested one."""
        existing = [] if self.path == "-" else self.existing_files()
        if not existing:
            return Comparison("missing")
        for record in self.read_records():
            if record is None:
                return Comparison("unknown", " and has no record of how it was made")
            comparison = record.compare(self.provenance)
            if comparison.state != UP_TO_DATE:
                return comparison
            if record.files:
                folder = os.path.dirname(self.path)
                recorded = {file.name: file for file in record.files}
                for path in existing:
                    name = os.path.relpath(path, folder or ".")
                    if name not in recorded or not recorded[name].is_same(File.of("", path, name)):
                        return Comparison("unknown", ", and is not the file that was written")
                if len(existing) < len(recorded):  # The run was killed while renaming files.
                    return Comparison("missing")
        return comparison

    def find(self, *, force: bool, update: bool = False) -> Result | None:
        """Return the result of the existing product; None if the product must be made.

        Raises:
            ExistingOutputError: A product that is not up to date exists and may not be replaced.
        """
        if self.path != "-":
            check_replaceable(self.path)
        self.replaces = force
        if force:
            return None
        comparison = self.compare()
        if comparison.state == UP_TO_DATE:
            return self.load([record for record in self.read_records() if record is not None])
        # After a run was killed while renaming files, replace the files already renamed.
        self.replaces = update or (comparison.state == "missing" and bool(self.existing_files()))
        if not update:
            self.refuse(comparison)
        return None

    def refuse(self, comparison: Comparison) -> None:
        """Refuse to replace the existing product, unless its state is `missing`.

        Raises:
            ExistingOutputError: The product exists.
        """
        if comparison.state == "missing":
            return
        path = self.existing_files()[0]
        update = f", remake it with {flag('update', True)}" if self.is_updated else ""
        raise ExistingOutputError(
            f"{path}: exists{comparison.reason}; choose another {self.noun}{update}, "
            f"or overwrite with {flag('force', True)}",
            comparison.state,
        )

    def build(self, *, force: bool, update: bool = False) -> Result:
        """Make the product, unless it is up to date; return its result in either case.

        Raises:
            ExistingOutputError: A product that is not up to date exists and may not be replaced.
        """
        result = self.find(force=force, update=update)
        if result is None:
            return self.make()
        log.info("%s: is up to date", self.path)
        return result

    def write_record(self, files: NewFiles, paths: Iterable[str], counts: dict[str, Any]) -> None:
        """Write the record, with a checksum, to a file next to the main file.

        Standard output gets no record.

        Args:
            files: The new files of the command, to which the record is added.
            paths: Files of the product, to be described in the record.
            counts: Counts of the product.
        """
        if self.path != "-":
            record = replace(self.provenance, counts=counts)
            files.add(side_file(self.path, RECORD), write_record(self.path, record, paths))


def write_record(path: str, record: Provenance, paths: Iterable[str]) -> FileState:
    """Write the record of a product under the temporary name of its side file.

    Args:
        path: Main file of the product, after which the side file is named.
        record: The record, without files.
        paths: Final names of the files of the product, which still have their temporary names.

    Returns:
        The state of the side file.
    """
    folder = os.path.dirname(path) or "."
    made = (
        File.of("", part_path(name), os.path.relpath(name, folder)) for name in paths if name != "-"
    )
    data = replace(record, files=tuple(made)).to_json()
    values = {"record": orjson.Fragment(data), "crc": crc32(data)}
    return write_part(side_file(path, RECORD), orjson.dumps(values))


def read_provenance(path: str) -> Provenance | None:
    """Read the provenance of a product with one main file; None if unknown.

    Raises:
        OutputError: The file with the provenance cannot be read.
    """
    data = b""
    try:
        with suppress(FileNotFoundError, IsADirectoryError):
            data = footer.read_value(path, KEY) or index.read_record(path)
        with suppress(FileNotFoundError):
            data = data or _read_sealed(Path(side_file(path, RECORD)).read_bytes())
    except (OSError, index.UnreadableIndexError) as error:
        raise unreadable_record(path, error) from error
    return load(data) if data else None


def read_recipe(path: str) -> str | None:
    """Read the name of an output's recipe from its provenance; None if unknown or not used."""
    with suppress(OutputError):
        provenance = read_provenance(path)
        return None if provenance is None else provenance.options.get("recipe")
    return None


def _read_sealed(data: bytes) -> bytes:
    """Return the record in the bytes of a file from `Product.write_record`; empty if damaged."""
    try:
        values = orjson.loads(data)
        record = orjson.dumps(values["record"], option=orjson.OPT_SORT_KEYS)
        return record if values["crc"] == crc32(record) else b""
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return b""


def unreadable_record(path: str, error: OSError | index.UnreadableIndexError) -> OutputError:
    """Make the error for a provenance that cannot be read because of `error`."""
    reason = error.strerror if isinstance(error, OSError) else error
    return OutputError(
        f"{path}: the record of how it was made cannot be read: {reason}; fix this, then run "
        "the same command again"
    )
