"""The manifest beside an output: what it was made of and by what, for programs.

The same conversion writes the same bytes: nothing in it is of the machine or of the day.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from so2docs._version import __version__
from so2docs.contract.document_schema import schema_of
from so2docs.errors import OptionError, OutputError
from so2docs.options.conversion import Options
from so2docs.options.fingerprint import Fingerprint
from so2docs.output.paths import Names
from so2docs.output.side_files import MANIFEST, side_file
from so2docs.output.targets import write_text
from so2docs.report import Report

FORMAT = 1
"""Of manifests; a change that breaks readers makes it one more."""

_COUNTS = (
    *("rows", "questions", "answers", "strays", "other_types", "filtered"),
    *("recipe", "records", "without_record", "repaired_characters"),
)
_TABLE_COUNTS = ("rows", "nested", "filtered", "strays")
_OF_FORM = {
    *("--level", "--format", "--compression", "--index", "--split", "--split-by"),
    "--skip-malformed",
}


@dataclass(frozen=True, slots=True)
class File:
    """A file, by its name alone, with its bytes and their SHA-256 in hexadecimal."""

    name: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: str) -> File:
        """Read a file once, for its hash.

        Raises:
            OSError: It cannot be read.
        """
        with open(path, "rb") as file:
            found = hashlib.file_digest(file, "sha256")
            return cls(os.path.basename(path), file.tell(), found.hexdigest())


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a conversion read and wrote.

    Attributes:
        format: Version of the manifest's form.
        so2docs: Version of the program.
        output: Name of the output, which it stands beside.
        options: What was asked for, under the names of the command line.
        counts: Those of the report, without what depends on the machine.
        input: The dump and the tables.
        files: The files of the output, in order.
        schema: JSON Schema of each document; None for a recipe that does not say it.
    """

    format: int
    so2docs: str
    output: str
    options: dict[str, Any]
    counts: dict[str, Any]
    input: list[File]
    files: list[File]
    schema: dict[str, Any] | None

    @classmethod
    def of(cls, names: Names, options: Options, report: Report, read: Iterable[str]) -> Manifest:
        """The manifest of a conversion that is done; reads its input and its output once more.

        Raises:
            OSError: A file cannot be read.
        """
        whole = report.as_dict()
        counts = {name: whole[name] for name in _COUNTS}
        counts["tables"] = {
            name: {key: table[key] for key in _TABLE_COUNTS}
            for name, table in whole["tables"].items()
        }
        try:
            schema = schema_of(options)
        except OptionError:  # A function of one's own, which has none.
            schema = None
        return cls(
            FORMAT,
            __version__,
            os.path.basename(names.output),
            Fingerprint.of(options).by_option(),
            counts,
            [File.of(path) for path in dict.fromkeys(read)],
            [File.of(path) for path in names.earlier_files()],
            schema,
        )

    def save(self, output: str) -> None:
        """Write it beside its output."""
        write_text(path_of(output), json.dumps(asdict(self), indent=2) + "\n")

    def is_in_place(self, folder: str) -> bool:
        """Whether its files stand in a folder, with the sizes that it says."""
        paths = [(os.path.join(folder, file.name), file.bytes) for file in self.files]
        return all(os.path.isfile(path) and os.path.getsize(path) == size for path, size in paths)


def path_of(output: str) -> str:
    """Where the manifest of an output stands."""
    return side_file(output, MANIFEST)


def load(path: str) -> Manifest:
    """Read a manifest.

    Raises:
        OutputError: There is none, it cannot be read, or it is damaged.
    """
    advice = "convert the dump again with --card"
    try:
        with open(path, "rb") as file:
            values = orjson.loads(file.read())
    except OSError as error:
        raise OutputError(
            f"{path}: the manifest cannot be read ({error.strerror}); {advice}"
        ) from error
    except orjson.JSONDecodeError as error:
        raise OutputError(f"{path}: the manifest is damaged ({error}); {advice}") from None
    try:
        if values["format"] != FORMAT:
            raise OutputError(f"{path}: is of another version of so2docs; {advice}")
        values |= {key: [File(**file) for file in values[key]] for key in ("input", "files")}
        found = Manifest(**values)
        counts = [found.counts[name] for name in ("rows", "questions", "answers")]
        is_whole = found.files and all(isinstance(count, int) for count in counts)
        is_whole = is_whole and {"recipe", "records"} <= found.counts.keys()
        of_files = [*found.input, *found.files]
        is_whole = is_whole and all(
            isinstance(file.bytes, int) and file.name == os.path.basename(file.name)
            for file in of_files
        )
        is_whole = is_whole and isinstance(found.options, dict)
    except (KeyError, TypeError, AttributeError):
        is_whole = False
    if not is_whole:
        raise OutputError(f"{path}: is damaged, or no manifest; {advice}")
    return found


def other_options(one: str, other: str) -> list[str]:
    """Options, but for those of form, in which the manifests of two outputs differ.

    No options where one has no manifest, or has been replaced since.
    """
    found = []
    for output in (one, other):
        path = path_of(output)
        if not os.path.exists(path):
            return []
        found.append(load(path))
        if not found[-1].is_in_place(os.path.dirname(output)):
            return []
    first, second = (manifest.options for manifest in found)
    names = [name for name in first.keys() | second.keys() if name.startswith("--")]
    return sorted(n for n in names if n not in _OF_FORM and first.get(n) != second.get(n))
