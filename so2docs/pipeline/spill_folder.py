"""The spill of an output: where it is, opened for a session, and left or removed after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from so2docs.errors import SpillError, SpillTakenError, flag, resumable
from so2docs.output.lock import temporary_folder
from so2docs.output.paths import OutputPaths
from so2docs.output.targets import describe_missing_folder
from so2docs.spill import Spill, clear


def spill_path(names: OutputPaths) -> Path:
    """The folder of the spill, where the output is a file."""
    return Path(names.work_folder or ".", f"{os.path.basename(names.output)}.spill")


def has_spill(names: OutputPaths) -> bool:
    """Whether an earlier session left a spill to resume from."""
    if names.output == "-":
        return False
    folder = spill_path(names)
    with suppress(OSError):
        folder.rmdir()  # Empty, it is what a kill at the very last step left.
    return folder.exists()


def has_sealed_spill(names: OutputPaths) -> bool:
    """Whether an earlier session wrote all of the output, but did not come to its very end."""
    if not has_spill(names):
        return False
    with suppress(SpillError), closing(Spill(spill_path(names))) as spill:
        return bool(spill.get("sealed"))
    return False


@contextmanager
def opened_spill(
    names: OutputPaths, *, restart: bool = False, is_once: bool = False
) -> Iterator[Spill]:
    """The spill of this output; one of its own for each conversion to standard output.

    What ends the block says whether the same call resumes: there is nothing to resume before the
    first chunk, so that no folder stays. Whoever is done removes the spill.

    Args:
        names: Where the conversion writes.
        restart: Whether what an earlier session left is removed.
        is_once: Whether nothing can be resumed, since the dump can be read only once.

    Raises:
        SpillError: It is in use, or its folder is something else.
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
        resumes = not is_once and spill.is_begun()
        if not resumes:
            with suppress(OSError):
                spill.remove()
        with resumable(resumes):
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
            clear(folder)  # Damaged, but ours.
    return Spill(folder)
