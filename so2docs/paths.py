"""Where a conversion writes, and whether it may."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from so2docs.dump import Dump
from so2docs.errors import DumpError, OutputError, SpillError
from so2docs.output import Compression, compression_of
from so2docs.spill import Spill, clear


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
    def compression(self) -> Compression:
        """How the output is compressed."""
        return compression_of(self.output)

    def check(self, dump: Dump) -> None:
        """Refuse to write where that cannot be, or over the dump."""
        if self.output == "-":
            return
        folder = os.path.dirname(self.output) or "."
        if not os.path.isdir(folder):
            raise OutputError(f"{self.output}: the folder {folder} does not exist; make it first")
        if not os.access(folder, os.W_OK):
            raise OutputError(
                f"{self.output}: the folder {folder} is not writable; choose another output"
            )
        for path in (self.output, self.strays, f"{self.output}.part", f"{self.strays}.part"):
            if os.path.isdir(path):
                raise OutputError(f"{path}: is a folder; give the name of a file")
            if _is_same(path, dump.path):
                raise OutputError(f"{path}: is the dump itself; choose another output")

    def refuse_existing(self, *, force: bool) -> None:
        """Refuse to overwrite anything, unless forced."""
        for path in () if force or self.output == "-" else (self.output, self.strays):
            if os.path.exists(path):
                raise OutputError(
                    f"{path}: exists; choose another output, or overwrite with --force"
                )

    @property
    def spill(self) -> Path:
        """The folder of the spill, where the output is a file."""
        folder = self.work_dir or os.path.dirname(self.output) or "."
        return Path(folder, f"{os.path.basename(self.output)}.spill")

    def has_spill(self) -> bool:
        """Whether there is a spill to go on with."""
        if self.output == "-":
            return False
        with suppress(OSError):
            self.spill.rmdir()  # Empty, it is what a kill at the very last step left.
        return self.spill.exists()

    def open_spill(self, *, restart: bool) -> Spill:
        """The spill of this output; one of its own for each conversion to standard output."""
        folder = self.work_dir or (None if self.output == "-" else str(self.spill.parent))
        if folder is not None and not os.path.isdir(folder):
            raise SpillError(f"{folder}: the folder for the spill does not exist; make it first")
        if self.output == "-":
            return Spill(tempfile.mkdtemp(prefix="so2docs-", dir=folder))
        if restart and self.spill.exists():
            try:
                Spill(self.spill).remove()
            except SpillError as error:
                if "another so2docs" in str(error) or "no spill" in str(error):
                    raise
                clear(self.spill)
        return Spill(self.spill)

    def leave_spill(self, spill: Spill) -> None:
        """Close a spill for another session to go on with; if none ever can, remove it."""
        if self.output == "-":
            spill.remove()
        else:
            spill.close()

    def save_excerpt(self, error: DumpError) -> None:
        """Save the bytes that show what is wrong with a dump."""
        path = f"{self.stem}.error.xml"
        if error.excerpt is None or _is_same(path, error.path):
            return
        try:
            Path(path).write_bytes(error.excerpt)
        except OSError:
            with suppress(OSError):
                os.unlink(path)
            return
        error.excerpt_path = path


def _is_same(path: str, dump: str) -> bool:
    """Whether two names are of one file, which hard and symbolic links can bring about."""
    return os.path.exists(path) and os.path.exists(dump) and os.path.samefile(path, dump)
