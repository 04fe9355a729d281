"""What to compare: outputs, or dumps converted on the way; whether they belong together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from so2docs.api.convert import convert_validated
from so2docs.errors import DumpError, OptionError, resumable
from so2docs.output.lock import temporary_folder
from so2docs.progress import log
from so2docs.reader.collection import Collection
from so2docs.reader.collection import open as open_output
from so2docs.reader.file_kinds import is_output, read_start


@contextmanager
def open_input(
    path: str, *, work_dir: str | None, progress: bool, **options: Any
) -> Iterator[Collection]:
    """Open an output, or convert a dump into a temporary one and open that.

    Args:
        path: An output or a dump.
        work_dir: Folder for a dump's output, which is removed at the end; the system's temporary
            folder if None.
        progress: Show progress bars.
        options: Options of the conversion.

    Raises:
        So2docsError: As `convert` and `open` do.
    """
    if not os.path.isdir(path) and is_output(path, read_start(path)):
        with open_output(path, progress=progress) as collection:
            yield collection
        return
    # The converted output is temporary: no state to resume from, no excerpt to look at.
    with resumable(False), temporary_folder(work_dir) as folder:
        converted = os.path.join(folder, "questions.jsonl.gz")
        log.info("%s: is a dump; converting it first", path)
        try:
            convert_validated(path, converted, {**options, "progress": progress, "level": 1})
        except DumpError as error:
            error.excerpt_path = None
            raise
        with open_output(converted, progress=progress) as collection:
            yield collection


def check_comparable(old: Collection, new: Collection, names: tuple[str, str]) -> None:
    """Check that two outputs are of one site and were made with the same options.

    Args:
        old: The old output.
        new: The new one.
        names: Their names in messages.

    Raises:
        OptionError: The outputs cannot be compared; the message says why.
    """
    before, after = old.made, new.made
    if before is None or after is None:
        unknown = " and ".join(
            name for name, recorded in zip(names, (before, after), strict=True) if recorded is None
        )
        log.info(
            f"{unknown}: no record of how it was made; whether both outputs come from one site and "
            "the same options cannot be checked"
        )
        return
    reason = None
    if None not in (before.site, after.site) and before.site != after.site:
        reason = f"the sites are not the same ({before.site}, {after.site})"
    elif others := before.other_options(after, of_documents=True):
        reason = f"they were converted with other options ({', '.join(others)})"
    elif before.contract != after.contract:
        reason = "they were made by versions of so2docs that write other documents"
    if reason is not None:
        raise OptionError(
            f"{names[0]} and {names[1]} cannot be compared: {reason}; "
            "convert both dumps of one site with the same options"
        )
