"""Files that options add to the output of a conversion, such as a card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from so2docs.options.table import Options
from so2docs.output.paths import OutputPaths
from so2docs.registry import find_hook


class Check(Protocol):
    """Refuses an addition that cannot be written."""

    def __call__(
        self, names: OutputPaths, options: Options, read: Sequence[str | None], *, force: bool
    ) -> None:
        """Check the output and the paths of the inputs; None is an input that is not a file."""


class CheckFolder(Protocol):
    """Refuses a folder that cannot be described."""

    def __call__(
        self, folder: str, outputs: Iterable[str], read: Iterable[str | None], *, force: bool
    ) -> None:
        """Check the folder before `outputs` in it are made from the inputs `read`."""


class Describe(Protocol):
    """Writes the files that describe all outputs of a folder."""

    def __call__(self, folder: str, *, force: bool) -> None:
        """Describe the folder after one or several conversions."""


@dataclass(frozen=True, slots=True)
class Addition:
    """Files that an option of the run adds to an output.

    Files of one output are written after its conversion. Files that describe a folder are written
    once, after all conversions of a call, because their size grows with the number of outputs.

    Attributes:
        check_sources: Called first, with the paths or URLs of the inputs, before any is opened.
        check: Called before the conversion.
        write: Called after it, with the paths of the output and of the inputs.
        complete: Called instead if the output is up to date, with its name.
        folder: Returns the folder that is described, from the paths of an output in it.
        check_folder: Called before the first conversion.
        describe: Called after the last conversion.
    """

    check_sources: Callable[[Iterable[str | None]], None]
    check: Check
    write: Callable[[OutputPaths, Sequence[str | None]], None]
    complete: Callable[[str], object]
    folder: Callable[[OutputPaths], str]
    check_folder: CheckFolder
    describe: Describe


def find_addition(name: str) -> Addition:
    """Return the addition that an option of this name requests; see `RunOptions.additions`."""
    addition: Addition = find_hook(name)
    return addition
