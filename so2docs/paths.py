"""Where a conversion writes, and whether it may."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from so2docs import index
from so2docs.errors import DumpError, OutputError, SpillError
from so2docs.output import Compression, compression_of
from so2docs.spill import Spill
from so2docs.stream import AnyDump


@dataclass(frozen=True, slots=True)
class Names:
    """Where a conversion writes."""

    output: str
    work_dir: str | None

    @property
    def stem(self) -> str:
        """The output's path without its extensions."""
        stem = "questions" if self.output == "-" else self.output
        for extension in (".gz", ".jsonl", ".ndjson", ".json"):
            stem = stem.removesuffix(extension)
        return stem

    @property
    def strays(self) -> str:
        """The side file for strays."""
        extensions = self.output.removeprefix(self.stem) if self.output != "-" else ".jsonl.gz"
        return f"{self.stem}.strays{extensions}"

    @property
    def strays_compression(self) -> Compression:
        """How the side file is compressed."""
        return compression_of(self.strays)

    @property
    def index(self) -> str:
        """The index beside the output."""
        return index.path_of(self.output)

    @property
    def compression(self) -> Compression:
        """How the output is compressed."""
        return compression_of(self.output)

    @property
    def work_folder(self) -> str | None:
        """The folder for the spill; None for the system's temporary folder."""
        if self.output == "-":
            return self.work_dir
        return self.work_dir or os.path.dirname(self.output) or "."

    def check(self, dump: AnyDump, *, force: bool) -> None:
        """Refuse to overwrite anything, unless forced, or to write where that cannot be."""
        if self.output == "-":
            return
        folder = os.path.dirname(self.output) or "."
        if not os.path.isdir(folder):
            raise OutputError(f"{self.output}: the folder {folder} does not exist; make it first")
        if not os.access(folder, os.W_OK):
            raise OutputError(f"{self.output}: the folder {folder} is not writable")
        for path in (self.output, self.strays, self.index):
            if os.path.isdir(path):
                raise OutputError(f"{path}: is a folder; give the name of a file")
            if dump.file and os.path.exists(path) and os.path.samefile(path, dump.file):
                raise OutputError(f"{path}: is the dump itself; choose another output")
            if path == self.index and os.path.exists(path) and index.is_index(path):
                continue  # Left by an output that is gone; it can always be made again.
            if os.path.exists(path) and not force:
                raise OutputError(
                    f"{path}: exists; choose another output, or overwrite with --force"
                )

    def open_spill(self, *, restart: bool) -> Spill:
        """The spill of this output; one of its own for each conversion to standard output."""
        if self.output == "-":
            return Spill(tempfile.mkdtemp(prefix="so2docs-", dir=self.work_dir))
        folder = Path(self.work_folder or ".")
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
