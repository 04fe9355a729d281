"""Read the sources of a database: outputs and dumps, distinguished by their first bytes."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from so2docs.api.documents import documents
from so2docs.api.resolve import find_input, options_for
from so2docs.dump.source import Source
from so2docs.errors import OptionError, OutputError, flag
from so2docs.escape import printable
from so2docs.extensions.sqlite.layout import PROFILE
from so2docs.options.sites import published_host, site_from_name
from so2docs.output.new_files import temporary_folder
from so2docs.output.paths import OutputPaths
from so2docs.output.product import read_provenance
from so2docs.output.provenance import File, Provenance, identify_tables
from so2docs.parse.posts import number
from so2docs.parse.rows import Malformed, TextRow
from so2docs.progress import Shown, bar
from so2docs.reader.reading import is_output, not_read_back, read_lines, read_start
from so2docs.scan.chunk import Visitor
from so2docs.scan.table import visit_tables

PathLike = str | os.PathLike[str]


@dataclass(slots=True)
class DocumentSource:
    """An output, a dump, or documents from the calling program.

    Attributes:
        name: The path; empty for documents from the calling program.
        is_output: Whether the source is an output.
        documents: Documents from the calling program; None for an output or a dump.
        provenance: Provenance of the documents; None if unknown, and for a dump before it is read.
    """

    name: str
    is_output: bool = False
    documents: Iterable[dict[str, Any]] | None = None
    provenance: Provenance | None = None

    @property
    def stem(self) -> str:
        """The name without folder and extensions; `questions` if the source has no name."""
        if self.is_output:
            return printable(os.path.basename(OutputPaths(self.name, None).stem))
        return site_from_name(self.name) if self.name not in ("", "-") else "questions"

    @property
    def host(self) -> str | None:
        """The site's host name, from the output's provenance or the file name; None if unknown."""
        recorded = self.provenance and self.provenance.site
        return recorded or published_host(self.stem)

    @property
    def label(self) -> str:
        """The name of the source in messages."""
        return self.name or "the documents"

    def identify(self, nest: Iterable[str], as_of: str | None = None) -> list[File]:
        """Identify the file of an output, or the files of a dump."""
        if self.is_output or self.documents is not None:
            return [File.of("output", self.name)]
        with Source(self.name) as source:
            kwargs = {"nest": nest, "as_of": as_of}
            tables = nest if as_of is None else options_for(source, kwargs).tables
            return find_input(source, tables)

    def read(
        self, conversion: Mapping[str, Any], *, jobs: int | None, progress: Shown
    ) -> Iterator[Any]:
        """Read the documents, as JSON from an output or a dump, or as the program passed them.

        Args:
            conversion: Options of the conversion of a dump.
            jobs: Worker processes.
            progress: Show progress bars.

        Raises:
            OptionError: The source is an output, but there are options for a dump.
        """
        if self.documents is not None:
            return iter(self.documents)
        if self.is_output:
            for name in conversion:
                raise OptionError(
                    f"{self.name}: is an output, but {flag(name)} applies only to dumps; "
                    "leave it out, or give the dump"
                )
            return self._of_output(progress=progress)
        return self._of_dump(conversion, jobs, progress=progress)

    def _of_output(self, *, progress: Shown) -> Generator[bytes, None, None]:
        with open(self.name, "rb") as file:
            total = os.fstat(file.fileno()).st_size
            with bar("rows", total, shown=progress) as progress_bar:
                position = 0
                for number, line in enumerate(read_lines(file)):
                    yield line
                    if number % _LINES == 0 and (place := file.tell()) != position:
                        progress_bar.update(place - position)
                        position = place
                progress_bar.update(file.tell() - position)

    def _of_dump(
        self, conversion: Mapping[str, Any], jobs: int | None, *, progress: Shown
    ) -> Generator[bytes, None, None]:
        with documents(self.name, **conversion, jobs=jobs, progress=progress) as nested:
            yield from nested.lines
            self.provenance = nested.provenance


def open_source(source: PathLike | Iterable[dict[str, Any]]) -> DocumentSource:
    """Open an output, a dump or an iterable as a source of documents.

    Raises:
        OutputError: The source cannot be read, or is an output in a format that cannot be read.
    """
    if not isinstance(source, str | os.PathLike):
        return DocumentSource("", documents=source)
    name = os.fspath(source)
    if name == "-" or os.path.isdir(name) or not os.path.isfile(name):
        # A folder, a pipe, a URL, or a missing file, which gives the same error as a missing dump.
        return DocumentSource(name)
    start = read_start(name)
    if reading := not_read_back(start):
        raise OutputError(
            f"{name}: is {reading[0]}; give an output of JSON lines (.jsonl, .jsonl.gz, "
            ".jsonl.zst), or the dump"
        )
    is_made = is_output(name, start)
    provenance = read_provenance(name) if is_made else None
    return DocumentSource(name, is_output=is_made, provenance=provenance)


_LINES = 64
"""Lines between updates of the progress."""
_ADVICE = "give a folder or an archive with Users.xml, or that file"


class _ProfileVisitor(Visitor):
    """Collects the profiles of users, each with the user's id.

    Rows that are not well-formed XML are skipped, as in a conversion.
    """

    def add(self, rows: list[TextRow]) -> None:
        for row in rows:
            profile = tuple(row.get(name) for name in PROFILE)
            if any(profile):
                self.records.append((*profile, number(row.get("Id", ""))))

    def reject(self, offset: int, row: Malformed) -> bool:
        return row.can_be_skipped


def read_profiles(
    dump: str, *, jobs: int | None, progress: Shown
) -> Iterator[list[tuple[Any, ...]]]:
    """Yield lists of profiles from a dump, each with the values of `PROFILE` and the user's id."""
    with temporary_folder(None) as folder:
        visitors = {"users": _ProfileVisitor}
        results = visit_tables(
            Source(dump), visitors, folder, _ADVICE, jobs=jobs, progress=progress
        )
        with closing(results):
            for _, result in results:
                yield result.value


def identify_tags(dump: str) -> File:
    """Identify the file that the tags of a dump are read from.

    Raises:
        DumpError: The dump has no tags.
    """
    [file] = identify_tables(Source(dump), ("tags",), "give a folder or an archive with Tags.xml")
    return file


def identify_profiles(dump: str) -> File:
    """Identify the file that the profiles of users are read from.

    Raises:
        DumpError: The dump has no users.
    """
    [file] = identify_tables(Source(dump), ("users",), _ADVICE)
    return file._replace(role="profiles")
