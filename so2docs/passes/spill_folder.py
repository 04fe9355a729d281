"""The spill of an output: where it is, opened for a session, and left or removed after it."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing, suppress
from pathlib import Path

from so2docs.errors import SpillError, SpillTakenError
from so2docs.output.paths import Names
from so2docs.spill import Spill
from so2docs.store.spill_files import clear


def folder_of(names: Names) -> Path:
    """The folder of the spill, where the output is a file."""
    return Path(names.work_folder or ".", f"{os.path.basename(names.output)}.spill")


def has_spill(names: Names) -> bool:
    """Whether an earlier session left a spill to resume from."""
    if names.output == "-":
        return False
    folder = folder_of(names)
    with suppress(OSError):
        folder.rmdir()  # Empty, it is what a kill at the very last step left.
    return folder.exists()


def has_sealed_spill(names: Names) -> bool:
    """Whether an earlier session wrote all of the output, but did not come to its very end."""
    if not has_spill(names):
        return False
    with suppress(SpillError), closing(Spill(folder_of(names))) as spill:
        return bool(spill.get("sealed"))
    return False


def open_spill(names: Names, *, restart: bool) -> Spill:
    """The spill of this output; one of its own for each conversion to standard output.

    Raises:
        SpillError: It is in use, or its folder is something else.
    """
    parent = names.work_folder
    if parent is not None and not os.path.isdir(parent):
        raise SpillError(f"{parent}: the folder for the spill does not exist; make it first")
    if names.output == "-":
        return Spill(tempfile.mkdtemp(prefix="so2docs-", dir=parent))
    folder = folder_of(names)
    if restart and folder.exists():
        try:
            Spill(folder).remove()
        except SpillTakenError:
            raise
        except SpillError:
            clear(folder)  # Damaged, but ours.
    return Spill(folder)


def leave_spill(names: Names, spill: Spill, *, for_good: bool) -> None:
    """Close a spill for another session to resume from; if none ever can, remove it."""
    if names.output == "-" or for_good:
        spill.remove()
    else:
        spill.close()
