"""The form of the output: format, compression and division into files, checked once."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from importlib.util import find_spec
from typing import get_args

from so2docs.errors import OptionError, flag
from so2docs.options.choices import (
    COMPRESSIONS,
    FORMATS,
    UNCOMPRESSED,
    Compression,
    SplitBy,
    compression_of,
)
from so2docs.options.sizes import number_and_unit

SMALLEST_SPLIT = 100_000
MOST_FILES = 10_000
UNDATED = "undated"
"""In the name of the file of questions without a date, where files go by date."""

_INDEX = re.compile(r"[^A-Z\\/*?\"<>| ,#:_+.-][^A-Z\\/*?\"<>| ,#:]{0,199}")


@dataclass(frozen=True, slots=True)
class OutputForm:
    """How documents are written; `convert` says what each option means.

    Attributes:
        format: One of `FORMATS`.
        compression: Of the files.
        index: Name of the Elasticsearch index.
        split_bytes: Most bytes of a file; None unless files are cut by size.
        split_files: Number of files; None unless there is one.
        split_by: What of the question's date names its file; None unless files go by date.
        is_looked_up: Whether single documents are to be found in it by an index.
    """

    format: str = "jsonl"
    compression: Compression = "gzip"
    index: str = "questions"
    split_bytes: int | None = None
    split_files: int | None = None
    split_by: SplitBy | None = None
    is_looked_up: bool = True

    @property
    def is_split(self) -> bool:
        """Whether there are several files, or one that is named like them."""
        return (self.split_bytes, self.split_files, self.split_by) != (None, None, None)

    @property
    def labels(self) -> str:
        """What tells the files of a split output apart, as a regular expression."""
        if self.split_by is None:
            return r"\d{5,}"
        return (r"\d{4}" if self.split_by == "year" else r"\d{4}-\d\d") + f"|{UNDATED}"

    @property
    def is_indexed(self) -> bool:
        """Whether an index goes beside the output, to look documents up with."""
        return self.format == "jsonl" and not self.is_split and self.is_looked_up

    @property
    def packing(self) -> Compression:
        """How the bytes on the disk are compressed, by us or by the format."""
        return self.compression if FORMATS[self.format].compressed else "zstd"

    @property
    def has_dates(self) -> bool:
        """Whether the spill must have dates in the form of this format."""
        return FORMATS[self.format].dates


def form_of(
    output: str,
    *,
    format: str | None = None,  # noqa: A002
    compression: str | None = None,
    index: str | None = None,
    split: str | int | None = None,
    split_by: SplitBy | None = None,
) -> OutputForm:
    """The form that an output's name and the options ask for.

    Raises:
        OptionError: A value is not allowed, or two contradict each other.
    """
    if not output:
        raise OptionError(
            "OUTPUT is empty, as an unset variable is; give the name of a file, or - for standard "
            "output"
        )
    name = _format(output, format)
    if (package := FORMATS[name].needs) is not None and find_spec(package) is None:
        raise OptionError(f"{flag('format', name)} needs {package}: pip install {package}")
    if index is not None and name != "elasticsearch":
        raise OptionError(
            f"{flag('index')} is for {flag('format', 'elasticsearch')}; the format is {name}"
        )
    if index is not None and not _INDEX.fullmatch(index):
        raise OptionError(
            f"{flag('index')} is {index!r}; Elasticsearch allows lower-case letters, digits and "
            "-_+. (these four not at the start)"
        )
    split_bytes, split_files = _split(split)
    if split_by is not None and split_by not in get_args(SplitBy):
        raise OptionError(f"{flag('split_by')} is {split_by!r}; it must be 'year' or 'month'")
    if split is not None and split_by is not None:
        raise OptionError(f"{flag('split')} and {flag('split_by')} contradict each other; give one")
    what = flag("split") if split is not None else flag("split_by", split_by) if split_by else ""
    what = what or (flag("format", name) if name == "parquet" else "")
    if output == "-" and what:
        raise OptionError(f"{what} cannot go to standard output; give the name of a file")
    return OutputForm(
        name,
        _compression(output, name, compression),
        index or "questions",
        split_bytes,
        split_files,
        split_by,
    )


def default_output(format: str | None, compression: str | None = None) -> str:  # noqa: A002
    """The name of the output where none is given."""
    return "questions" + ending(format, compression)


def ending(format: str | None, compression: str | None) -> str:  # noqa: A002
    """What follows the stem in the name of an output of this form."""
    name = format if format in FORMATS else "jsonl"
    end = FORMATS[name].extensions[0]
    # RavenDB's own exports are compressed by gzip without a name that says so.
    if not FORMATS[name].compressed or name == "ravendb":
        return end
    return end + {"none": "", "zstd": ".zst"}.get(compression or "", ".gz")


def _plain_name(output: str) -> str:
    """A name without the extension of a compression."""
    for extension in COMPRESSIONS:
        output = output.removesuffix(extension)
    return output


def _by_name(output: str) -> list[str]:
    """The formats that a name stands for; none if it has no extension.

    Raises:
        OptionError: It says something else.
    """
    plain = _plain_name(output)
    found = [name for name, kind in FORMATS.items() if plain.endswith(kind.extensions)]
    unknown = os.path.splitext(os.path.basename(plain))[1]
    if unknown and not found:
        known = dict.fromkeys(end for kind in FORMATS.values() for end in kind.extensions)
        raise OptionError(
            f"{output}: so2docs writes nothing that ends in {unknown}; choose a name that ends in "
            f"one of {' '.join(known)}, and .gz or .zst after these (not after .parquet)"
        )
    return found


def _format(output: str, wanted: str | None) -> str:
    if wanted is not None and wanted not in FORMATS:
        raise OptionError(
            f"{flag('format')} is {wanted!r}; it must be one of: {', '.join(FORMATS)}"
        )
    by_name = _by_name(output)
    if wanted is None:
        return by_name[0] if by_name else "jsonl"
    if by_name and wanted not in by_name:
        ends = " or ".join(FORMATS[wanted].extensions)
        raise OptionError(
            f"{flag('format', wanted)} contradicts the name {output}, which says {by_name[0]}; "
            f"choose a name that ends in {ends}"
        )
    return wanted


def _compression(output: str, name: str, wanted: str | None) -> Compression:
    by_name = next((how for end, how in COMPRESSIONS.items() if output.endswith(end)), None)
    if wanted is not None and wanted not in get_args(Compression):
        raise OptionError(
            f"{flag('compression')} is {wanted!r}; it must be one of: "
            f"{', '.join(get_args(Compression))}"
        )
    if not FORMATS[name].compressed:
        given = flag("compression", wanted) if wanted not in (None, "none") else ""
        given = given or (f"the name {output}" if by_name else "")
        if given:
            raise OptionError(
                f"{flag('format', name)} compresses inside the file; {given} contradicts it"
            )
        return "none"
    said = by_name or ("none" if output.endswith(UNCOMPRESSED) else None)
    if wanted is not None and said not in (None, wanted):
        raise OptionError(
            f"{flag('compression', wanted)} contradicts the name {output}, which says {said}"
        )
    for how in get_args(Compression):
        if how == wanted:
            return how  # type: ignore[no-any-return]
    return compression_of(output)


def _split(split: str | int | None) -> tuple[int | None, int | None]:
    """The most bytes of a file, or the number of files."""
    if split is None:
        return None, None
    found = number_and_unit(str(split))
    if not found:
        raise OptionError(
            f"{flag('split')} is {split!r}; it must be a size such as 500MB or 1GB, or a "
            "number of files"
        )
    number, unit = found
    if not unit:
        if "." in str(split) or not 1 <= number <= MOST_FILES:
            raise OptionError(
                f"{flag('split')} is {split!r}; the files must be 1 to {MOST_FILES:,}"
            )
        return None, int(number)
    size = int(number)
    if size < SMALLEST_SPLIT:
        raise OptionError(
            f"{flag('split')} is {split!r}; a file must be allowed {SMALLEST_SPLIT:,} bytes"
        )
    return size, None
