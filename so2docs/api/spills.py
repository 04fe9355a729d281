"""Open the spill of an output, and remove it if nothing can be resumed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from so2docs.errors import SpillError, SpillTakenError, flag, resumable
from so2docs.output.new_files import temporary_folder
from so2docs.output.part_files import describe_missing_folder
from so2docs.output.paths import OutputPaths
from so2docs.spill import INDEX, Spill, clear


def spill_path(names: OutputPaths) -> Path:
    """Return the path of the spill folder for an output."""
    return Path(names.work_folder or ".", f"{os.path.basename(names.output)}.spill")


def has_spill(names: OutputPaths) -> bool:
    """Whether an earlier session left a spill to resume from."""
    if names.output == "-":
        return False
    folder = spill_path(names)
    if folder.exists() and not (folder / INDEX).exists():
        with suppress(OSError):
            clear(folder)  # The rest of a spill whose removal was interrupted.
    return folder.exists()


@contextmanager
def opened_spill(
    names: OutputPaths, *, restart: bool = False, is_once: bool = False
) -> Iterator[Spill]:
    """Open the spill of an output; for standard output, make a temporary spill.

    Errors raised in the block say whether the same call would resume. Before the first chunk is
    committed, there is nothing to resume, so the folder is removed. After success, the caller
    removes the spill.
    """
    parent = names.work_folder
    if parent is not None and not os.path.isdir(parent):
        problem = describe_missing_folder(parent, f"choose another {flag('work_dir')}")
        raise SpillError(f"{parent}: the folder for the spill {problem}")
    if names.output == "-":
        with (
            resumable(False),
            temporary_folder(parent) as folder,
            closing(Spill(folder)) as spill,
        ):
            yield spill
        return
    spill = _open(spill_path(names), restart=restart)
    try:
        yield spill
    except BaseException:
        is_done = spill.is_done()
        resumes = not is_once and not is_done and spill.is_begun()
        if not resumes:
            with suppress(OSError):
                spill.remove()
        with resumable(resumes, is_done=is_done):
            raise
    finally:
        spill.close()


def _open(folder: Path, *, restart: bool) -> Spill:
    if restart and folder.exists():
        try:
            Spill(folder).remove()
        except SpillTakenError:
            raise
        except SpillError:
            clear(folder)  # The folder holds a damaged spill, so empty it.
    return Spill(folder)
