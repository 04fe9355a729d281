"""Where a conversion writes, and whether it may."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from so2docs.dump import Dump
from so2docs.errors import DumpError, OutputError, SpillError
from so2docs.form import OutputForm
from so2docs.output import Compression, compression_of
from so2docs.spill import Spill

_EXTENSIONS = (".gz", ".zst", ".zstd", ".jsonl", ".ndjson", ".json", ".parquet", ".ravendbdump")


@dataclass(frozen=True, slots=True)
class Names:
    """Where a conversion writes."""

    output: str
    work_dir: str | None
    form: OutputForm = field(default_factory=OutputForm)

    @property
    def stem(self) -> str:
        """The output's path without its extensions."""
        stem = "questions" if self.output == "-" else self.output
        for extension in _EXTENSIONS:
            stem = stem.removesuffix(extension)
        return stem

    @property
    def extensions(self) -> str:
        """What follows the stem."""
        return self.output.removeprefix(self.stem) if self.output != "-" else ".jsonl.gz"

    def file(self, number: int) -> str:
        """The output file of this number: the output itself, unless it is split."""
        return f"{self.stem}-{number:05}{self.extensions}" if self.form.is_split else self.output

    def earlier_files(self) -> list[str]:
        """Output files that exist."""
        if not self.form.is_split:
            return [self.output] if os.path.exists(self.output) else []
        folder = Path(os.path.dirname(self.output) or ".")
        name = re.compile(
            re.escape(os.path.basename(self.stem)) + r"-\d{5}" + re.escape(self.extensions)
        )
        found = [path.name for path in folder.iterdir() if name.fullmatch(path.name)]
        return sorted(os.path.join(os.path.dirname(self.output), name) for name in found)

    @property
    def strays(self) -> str:
        """The side file for strays, which is of JSON lines whatever the output is."""
        if self.form.format == "jsonl":
            return f"{self.stem}.strays{self.extensions}"
        end = {"none": "", "gzip": ".gz", "zstd": ".zst"}[self.form.compression]
        return f"{self.stem}.strays.jsonl{'.gz' if self.form.format == 'parquet' else end}"

    @property
    def strays_compression(self) -> Compression:
        """How the side file is compressed."""
        return compression_of(self.strays)

    @property
    def compression(self) -> Compression:
        """How the output is compressed."""
        return self.form.compression

    def check(self, dump: Dump, *, force: bool) -> None:
        """Refuse to overwrite anything, unless forced, or to write where that cannot be."""
        if self.output == "-":
            return
        folder = os.path.dirname(self.output) or "."
        if not os.path.isdir(folder):
            raise OutputError(f"{self.output}: the folder {folder} does not exist; make it first")
        if not os.access(folder, os.W_OK):
            raise OutputError(f"{self.output}: the folder {folder} is not writable")
        for path in (*(self.earlier_files() or [self.output]), self.strays):
            if os.path.isdir(path):
                raise OutputError(f"{path}: is a folder; give the name of a file")
            if os.path.exists(path) and os.path.samefile(path, dump.path):
                raise OutputError(f"{path}: is the dump itself; choose another output")
            if os.path.exists(path) and not force:
                raise OutputError(
                    f"{path}: exists; choose another output, or overwrite with --force"
                )

    def open_spill(self, *, restart: bool) -> Spill:
        """The spill of this output; one of its own for each conversion to standard output."""
        if self.output == "-":
            return Spill(tempfile.mkdtemp(prefix="so2docs-", dir=self.work_dir))
        folder = Path(self.work_dir or os.path.dirname(self.output) or ".")
        if not folder.is_dir():
            raise SpillError(f"{folder}: the folder for the spill does not exist; make it first")
        path = folder / f"{os.path.basename(self.output)}.spill"
        if restart and path.exists():
            try:
                Spill(path).remove()
            except SpillError as error:
                if "another so2docs" in str(error) or "no spill" in str(error):
                    raise
                shutil.rmtree(path)
        return Spill(path)

    def save_excerpt(self, error: DumpError) -> None:
        """Save the bytes that show what is wrong with a dump."""
        if error.excerpt is None:
            return
        path = f"{self.stem}.error.xml"
        try:
            Path(path).write_bytes(error.excerpt)
        except OSError:
            return
        error.excerpt_path = path
