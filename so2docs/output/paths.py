"""The paths of a conversion, their checks, and the existing output."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from so2docs.errors import DumpError, So2docsError
from so2docs.options.choices import COMPRESSIONS, EXTENSIONS, FORMATS, Compression
from so2docs.options.table import Options, OutputForm, RunOptions
from so2docs.output import index
from so2docs.output.new_files import NewFiles, clean_up, write_file
from so2docs.output.part_files import (
    CARD,
    MANIFEST,
    RECORD,
    STRAYS,
    check_folder,
    check_replaceable,
    is_same,
    side_file,
)
from so2docs.output.product import CHANGED, Product, are_unchanged, as_text, read_provenance
from so2docs.output.provenance import UP_TO_DATE, Comparison, Provenance
from so2docs.report import Report

_EXTENSIONS = (
    *COMPRESSIONS,
    *dict.fromkeys(end for traits in FORMATS.values() for end in traits.extensions),
)


@dataclass(frozen=True, slots=True)
class OutputPaths:
    """The paths of the files that a conversion writes.

    Attributes:
        output: Path of the output, as the user gave it; `-` is standard output.
        work_dir: Folder for the spill, if the user gave one.
        made_of_it: Names of the files that a recipe makes from the output at the end, relative to
            its folder; if there are any, the output itself is temporary.
        is_by_site: Whether the output is in a folder named after the site.
    """

    output: str
    work_dir: str | None
    form: OutputForm = field(default_factory=OutputForm)
    made_of_it: tuple[str, ...] = ()
    is_by_site: bool = False

    @classmethod
    def of(cls, output: str, options: Options, run: RunOptions) -> OutputPaths:
        """Return the paths of the output of a conversion."""
        transform = options.transform
        files = tuple(transform.files)
        return cls(output, run.work_dir, options.form, files, transform.is_by_site)

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
        """Return the path of the file with a label: a number, a date or a name.

        For an output that is not split, this is the path of the output.
        """
        if label in self.made_of_it:
            return os.path.join(os.path.dirname(self.output), label)
        return f"{self.stem}-{label}{self.extensions}" if self.form.split else self.output

    def earlier_files(self) -> list[str]:
        """Return the output files that exist, in order."""
        if not self.form.split:
            return list(filter(os.path.exists, map(self.file, self.made_of_it or ("",))))
        folder, stem = os.path.split(self.stem)
        # The pattern is the same for all sites, so that `re` compiles it once for a run.
        is_label = re.compile(self.form.labels).fullmatch
        paths = (
            os.path.join(folder, name)
            for name in os.listdir(folder or ".")
            if name.startswith(f"{stem}-")
            and name.endswith(self.extensions)
            and is_label(name, len(stem) + 1, len(name) - len(self.extensions))
        )
        return sorted(paths, key=self.place)

    def place(self, path: str) -> tuple[int, str]:
        """Return the sort key of a file of a split output; shares are in the option's order."""
        if self.form.split.shares is None:
            return len(path), path
        files = [self.file(label) for label in self.form.labels.split("|")]
        return files.index(path), path

    def data_files(self) -> list[str]:
        """Return the existing output files without the card of a retrieval set."""
        return [path for path in self.earlier_files() if os.path.basename(path) != CARD]

    @property
    def strays(self) -> str:
        """Path of the side file for strays, which are JSON lines whatever the output format."""
        output = "stdout" if self.output == "-" else self.output
        return side_file(output, STRAYS + EXTENSIONS[self.strays_compression])

    @property
    def strays_compression(self) -> Compression:
        """Compression of the strays: as in the output; gzip for Parquet and standard output."""
        is_whole = self.output != "-" and FORMATS[self.form.format].compressed
        return self.form.compression if is_whole else "gzip"

    @property
    def index(self) -> str:
        """Path of the index next to the output."""
        return index.index_path(self.output)

    @property
    def record(self) -> str:
        """Path of the record of an output of several files."""
        return side_file(self.output, RECORD)

    @property
    def has_record(self) -> bool:
        """Whether a side file records the files of the output, because there are several."""
        return self.output != "-" and (bool(self.form.split) or bool(self.made_of_it))

    @property
    def side_files(self) -> list[str]:
        """Paths of the hidden files next to the output, which are replaced together with it."""
        return [self.index, self.strays, self.record, side_file(self.output, MANIFEST)]

    @property
    def work_folder(self) -> str | None:
        """The folder for the spill; None for the system's temporary folder."""
        if self.output == "-":
            return self.work_dir
        return self.work_dir or os.path.dirname(self.output) or "."

    def make_folders(self) -> None:
        """Make the folder of the site, and the folders of the files that a recipe makes."""
        if self.is_by_site and self.output != "-":
            with suppress(OSError):  # `check` reports the error.
                os.makedirs(os.path.dirname(self.output) or ".", exist_ok=True)
        for name in self.made_of_it:
            os.makedirs(os.path.dirname(self.file(name)), exist_ok=True)

    def check(self, read: Iterable[str | None]) -> None:
        """Reject a path that cannot be written, or that names a file of the dump.

        Args:
            read: Paths of the files of the dump.
        """
        if self.output == "-":
            return
        check_folder(self.output)
        files = [file for file in read if file is not None]
        whole = [] if self.form.split else [self.output, *map(self.file, self.made_of_it)]
        names = dict.fromkeys([*self.earlier_files(), *whole])
        for path in (*names, *map(index.index_path, names), self.strays, self.record):
            check_replaceable(path, files)
        # Allow the excerpt as input, because it may have been saved by an earlier conversion.
        excerpt = os.path.abspath(self.excerpt)
        check_replaceable(self.excerpt, (f for f in files if os.path.abspath(f) != excerpt))

    @property
    def excerpt(self) -> str:
        """Path of the excerpt of a broken dump."""
        return f"{self.stem}.error.xml"

    def save_excerpt(self, error: DumpError) -> None:
        """Try to save the excerpt of a broken dump, and set `error.excerpt_path`."""
        path = self.excerpt
        if error.excerpt is None or is_same(path, error.path):
            return
        with suppress(So2docsError):
            write_file(path, error.excerpt)
            error.excerpt_path = path


class OutputOfConversion(Product[Report]):
    """The output of a conversion as a product.

    Attributes:
        write: Writes the output under temporary names; set before the product is built.
    """

    write: Callable[[NewFiles], Report]

    def __init__(self, names: OutputPaths, provenance: Provenance) -> None:
        super().__init__(names.output, provenance)
        self._names = names

    def make(self, files: NewFiles) -> Report:
        """Write the output, and mark the files of an earlier one for removal."""
        report = self.write(files)
        if self.path != "-":
            earlier = self._names.earlier_files()
            indexes = map(index.index_path, earlier)
            files.outdate(*self._names.side_files, *indexes, *earlier)
        self.provenance = self.provenance.having_read(report.dump_bytes)
        return report

    def clean_up(self) -> None:
        """Remove also the unfinished files in other folders."""
        clean_up(self.path, map(self._names.file, self._names.made_of_it))

    def counts(self, result: Report) -> dict[str, Any] | None:
        """Return the counts of several files; the index of a single file holds its record."""
        return self.provenance.with_counts(result).counts if self._names.has_record else None

    def existing_files(self) -> list[str]:
        """Return the files of the output that exist, in order."""
        return self._names.data_files()

    def read_record(self) -> Provenance | None:
        """Return the provenance of the whole output; None if unknown."""
        return read_provenance(self.path if self._names.has_record else self.existing_files()[0])

    def compare(self) -> Comparison:
        """Compare the existing output with the requested one, and its file with the index."""
        comparison = super().compare()
        if comparison.state != UP_TO_DATE or self._names.has_record:
            return comparison
        with suppress(OSError, So2docsError), open(self.path, "rb") as output:
            written = index.load(self.path, output)
            file = self.path, written.size, as_text(written.crc)
            if are_unchanged([file], self._names.index):
                return comparison
        return CHANGED

    def load(self, record: Provenance) -> Report:
        """Make a report from the recorded counts."""
        files = self.existing_files()
        output = os.path.dirname(self.path) if self._names.made_of_it else self.path
        values = {"dump": record.input[0].name, "output": output, **record.counts}
        report = Report.from_dict(values)
        report.is_new = False
        report.files = len(files)
        report.output_bytes = sum(map(os.path.getsize, files))
        if self._names.form.split:
            report.first_file, report.last_file = files[0], files[-1]
        if os.path.exists(self._names.strays):
            report.strays_path = self._names.strays
        if self._names.form.is_indexed and os.path.exists(self._names.index):
            report.index_path = self._names.index
        return report
