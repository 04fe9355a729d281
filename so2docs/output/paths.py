"""The paths of a conversion, and whether it may write there: provenance of existing outputs."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from so2docs.errors import DumpError, OutputError, OutputExistsError, So2docsError, flag
from so2docs.options.choices import COMPRESSIONS, FORMATS, Compression
from so2docs.options.table import OutputForm
from so2docs.output import index
from so2docs.output.formats import footer
from so2docs.output.new_files import write_file
from so2docs.output.part_files import (
    MANIFEST,
    STRAYS,
    check_folder,
    check_replaceable,
    explain_errors,
    is_same,
    refuse_existing,
    remove,
    side_file,
)
from so2docs.output.provenance import KEY, Provenance, load

State = Literal["up to date", "another dump", "other options", "unknown"]
UP_TO_DATE: State = "up to date"


class ExistingOutputError(OutputExistsError):
    """The output exists; the text says how it was made.

    Attributes:
        state: Its difference from a new output; `unknown` without a provenance.
    """

    def __init__(self, message: str, state: State, advice: str) -> None:
        super().__init__(f"{message}; {advice}")
        self.state: State = state
        self._message, self._advice = message, advice

    def __reduce__(self) -> tuple[object, ...]:
        return ExistingOutputError, (self._message, self.state, self._advice)

    def with_advice(self, advice: str) -> ExistingOutputError:
        """Copy the error with other advice."""
        return ExistingOutputError(self._message, self.state, advice)


def read_provenance(path: str) -> Provenance | None:
    """The provenance of an output; None if it is not known.

    Args:
        path: A file of the output.

    Raises:
        OutputError: The output, or its index, cannot be read.
    """
    try:
        data = footer.read_value(path, KEY) or index.read_record(path)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except (OSError, index.UnreadableIndexError) as error:
        raise unreadable_record(path, error) from error
    return load(data) if data else None


def unreadable_record(path: str, error: OSError | index.UnreadableIndexError) -> OutputError:
    """The error for an unreadable provenance."""
    reason = error.strerror if isinstance(error, OSError) else error
    return OutputError(
        f"{path}: how it was made cannot be read: {reason}; fix this, then run the same command "
        "again"
    )


def _compare(files: list[str], provenance: Provenance) -> tuple[State, str]:
    """The state of an output, and a description."""
    differences = []
    for path in files:
        recorded = read_provenance(path)
        if recorded is None:
            return "unknown", " and does not say how it was made"
        differences.append(recorded.difference(provenance))
    worst = next((difference for difference in differences if difference is not None), None)
    if worst is None:
        return UP_TO_DATE, " and is up to date: made from this dump with these options"
    return "another dump" if worst.is_dump else "other options", f", made {worst.reason}"


_EXTENSIONS = (
    *COMPRESSIONS,
    *dict.fromkeys(end for traits in FORMATS.own.values() for end in traits.extensions),
)
_TEMPORARY_ENDS = (".part", ".part.journal", ".part.rest")


@dataclass(frozen=True, slots=True)
class OutputPaths:
    """The paths of the files of a conversion.

    Attributes:
        output: The user's name of the output; `-` is standard output.
        work_dir: Folder for the spill, if the user gave one.
        form: Form of the output.
        made_of_it: Names, in the folder of the output, of the files that a recipe makes from it at
            the end; the output itself is temporary then.
        is_by_site: Whether the output is in a folder with the name of the site.
    """

    output: str
    work_dir: str | None
    form: OutputForm = field(default_factory=OutputForm)
    made_of_it: tuple[str, ...] = ()
    is_by_site: bool = False

    @property
    def stem(self) -> str:
        """The output's path without its extensions."""
        stem = "questions" if self.output == "-" else self.output
        for extension in _EXTENSIONS:
            stem = stem.removesuffix(extension)
        return stem

    @property
    def extensions(self) -> str:
        """The extensions after the stem."""
        return self.output.removeprefix(self.stem) if self.output != "-" else ".jsonl.gz"

    def file(self, label: str) -> str:
        """The output file of this number, date or name: the output itself, unless it is split."""
        if label in self.made_of_it:
            return os.path.join(os.path.dirname(self.output), label)
        return f"{self.stem}-{label}{self.extensions}" if self.form.is_split else self.output

    def earlier_files(self) -> list[str]:
        """Output files that exist, in order."""
        if self.form.is_split:
            return self._split_files()
        return list(filter(os.path.exists, map(self.file, self.made_of_it or ("",))))

    def _split_files(self, end: str = "") -> list[str]:
        """Existing files of a split output, or those with an extension after these names."""
        if not self.form.is_split:
            return []
        folder, stem = os.path.split(self.stem)
        end_of_name = re.escape(self.extensions + end)
        pattern = re.compile(f"{re.escape(stem)}-(?:{self.form.labels}){end_of_name}")
        names = filter(pattern.fullmatch, os.listdir(folder or "."))
        paths = (os.path.join(folder, name.removesuffix(end)) for name in names)
        return sorted(paths, key=lambda path: (len(path), path))

    @property
    def strays(self) -> str:
        """The side file for strays, which holds JSON lines whatever the output is."""
        return side_file("stdout" if self.output == "-" else self.output, STRAYS)

    @property
    def strays_compression(self) -> Compression:
        """The compression of the side file: that of the output, if it is compressed as a whole."""
        is_whole = self.output != "-" and self.form.format != "parquet"
        return self.form.compression if is_whole else "gzip"

    @property
    def index(self) -> str:
        """The index next to the output."""
        return index.index_path(self.output)

    @property
    def side_files(self) -> list[str]:
        """Hidden files next to the output, which are made and replaced together with it."""
        return [self.index, self.strays, side_file(self.output, MANIFEST)]

    def _indexes(self) -> list[str]:
        """The indexes next to the files of this output."""
        if not self.form.has_side_record or self.output == "-":
            return []
        files = [*self.earlier_files(), self.output, *map(self.file, self.made_of_it)]
        return [index.index_path(path) for path in dict.fromkeys(files)]

    @property
    def work_folder(self) -> str | None:
        """The folder for the spill; None for the system's temporary folder."""
        if self.output == "-":
            return self.work_dir
        return self.work_dir or os.path.dirname(self.output) or "."

    def make_folders(self) -> None:
        """Make the folders of the files that a recipe makes."""
        if self.is_by_site and self.output != "-":
            with suppress(OSError):  # `check` says what is wrong.
                os.makedirs(os.path.dirname(self.output) or ".", exist_ok=True)
        for name in self.made_of_it:
            os.makedirs(os.path.dirname(self.file(name)), exist_ok=True)

    def check(self, file: str | None) -> None:
        """Refuse to write to an impossible path, or over a file of the dump."""
        if self.output == "-":
            return
        check_folder(self.output)
        for path in (*self._finals(), *self._temporaries(), self.excerpt):
            # A small dump that an earlier conversion left is converted as any other is.
            if (
                path != self.excerpt
                or file is None
                or os.path.abspath(file) != os.path.abspath(path)
            ):
                check_replaceable(path, [file])

    def _finals(self) -> list[str]:
        whole = [] if self.form.is_split else [self.output, *map(self.file, self.made_of_it)]
        return [*self.earlier_files(), *whole, self.strays, *self._indexes()]

    def _temporaries(self) -> list[str]:
        return [
            path + end
            for end in _TEMPORARY_ENDS
            for path in (*self._finals(), *self._split_files(end))
        ]

    def remove_temporaries(self) -> None:
        """Remove the unfinished files of a conversion that is not resumed."""
        if self.output != "-":
            for path in self._temporaries():
                with explain_errors(path):
                    remove(path)

    def refuse_existing(self, provenance: Provenance, *, force: bool) -> None:
        """Refuse to overwrite an output, unless forced; side files without one are replaced.

        Args:
            provenance: The provenance of the new output.
            force: Overwrite what exists.

        Raises:
            ExistingOutputError: The output exists; the text says whether it is up to date.
            OutputExistsError: Another file is there.
        """
        if force or self.output == "-":
            return
        if existing := self.earlier_files():
            state, reason = _compare(existing, provenance)
            advice = f"choose another output, or overwrite with {flag('force', True)}"
            raise ExistingOutputError(f"{existing[0]}: exists{reason}", state, advice)
        for path in self._indexes():
            if os.path.exists(path) and not index.is_index(path):
                refuse_existing(path, force=False)

    @property
    def excerpt(self) -> str:
        """Path of the excerpt of a broken dump."""
        return f"{self.stem}.error.xml"

    def save_excerpt(self, error: DumpError) -> None:
        """Save the excerpt of a broken dump."""
        path = self.excerpt
        if error.excerpt is None or is_same(path, error.path):
            return
        with suppress(So2docsError):
            write_file(path, error.excerpt)
            error.excerpt_path = path
