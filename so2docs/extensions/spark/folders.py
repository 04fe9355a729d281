"""Output folders of sites: each attempt writes its files to a draft folder, then publishes them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Container
from contextlib import suppress
from typing import Any

import orjson

from so2docs.dump import storage
from so2docs.errors import explain
from so2docs.extensions.spark import stores
from so2docs.output.provenance import Comparison, load
from so2docs.plugin import (
    UP_TO_DATE,
    OutputError,
    Product,
    Provenance,
    Report,
    read_provenance,
)

SUCCESS = "_SUCCESS"
PART = "part-"
STRAYS = ".strays-00000"
_RUN = "_run"
_TEMPORARY = "_temporary"
_DRAFTS = (_TEMPORARY, f"_{PART}", f"_{STRAYS}")
_OURS = (PART, ".strays", *_DRAFTS, _RUN, SUCCESS)


def begin(folder: str, run: str) -> None:
    """Assign a site's folder to a run.

    The files of an earlier conversion stay valid until `finish` replaces them. An earlier run that
    is still writing to the folder will fail.
    """
    with explain():
        stores.make_folder(folder)
        stores.write(stores.join(folder, _RUN), run.encode())


def make_draft(folder: str, work_dir: str) -> tempfile.TemporaryDirectory[str]:
    """Make a folder for the files of one attempt, in the site's folder if that is on a disk."""
    parent = work_dir if storage.is_url(folder) else folder
    return tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=parent, ignore_cleanup_errors=True)


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Make a temporary folder in the first Spark local directory, if there are any."""
    places = filter(os.path.isdir, os.environ.get("SPARK_LOCAL_DIRS", "").split(","))
    return tempfile.TemporaryDirectory(prefix="so2docs-", dir=next(places, None))


def finish(folder: str, run: str, draft: str, report: Report) -> None:
    """Move the files of a draft to the site's folder, and list them in `_SUCCESS`.

    The `_SUCCESS` of an earlier conversion is removed first, so that no reader takes a mixture of
    files for finished. Other attempts of the same run may publish the same files, with the same
    bytes. Drafts and part files of earlier attempts and conversions are removed. The report gets
    the published names.

    Raises:
        OutputError: Another run has taken the folder.
    """
    record = read_provenance(report.first_file or report.output)
    names = [name for name in os.listdir(draft) if name.startswith(PART)]
    if not report.questions:
        names, report.files, report.output_bytes = [], 0, 0
    files = {name: os.path.join(draft, name) for name in names}
    report.output, report.first_file, report.last_file = folder, None, None
    report.index_path = None  # Parts have no index.
    if report.strays_path is not None:
        name = STRAYS + report.strays_path.rpartition(".strays")[2]
        files[name] = report.strays_path
        report.strays_path = stores.join(folder, name)
    sizes = {name: os.path.getsize(path) for name, path in sorted(files.items())}
    check_run(folder, run)
    if _read_success(folder).get("run") != run:
        stores.remove(stores.join(folder, SUCCESS))
    for name in sizes:
        check_run(folder, run)
        stores.publish(files[name], stores.join(folder, name))
    check_run(folder, run)
    remove_leftovers(folder, (PART, ".strays"), kept=sizes)
    values = None if record is None else record.as_dict()
    content = {"run": run, "files": sizes, "report": report.as_dict(), "provenance": values}
    stores.write(stores.join(folder, SUCCESS), orjson.dumps(content))
    # From here on, another attempt of this run that loses its draft returns this report.
    remove_leftovers(folder, (*_DRAFTS, _RUN))


def remove_leftovers(
    folder: str, starts: tuple[str, ...] = _DRAFTS, kept: Container[str] = ()
) -> None:
    """Remove files by the start of their names: in a finished folder, drafts of killed attempts."""
    for name in storage.list_folder(folder):
        if name.startswith(starts) and name not in kept:
            stores.remove(stores.join(folder, name))


def read_report(folder: str, run: str) -> Report | None:
    """Read the report from `_SUCCESS`; None if this run has not finished the folder."""
    success = _read_success(folder)
    return Report.from_dict(success["report"]) if success.get("run") == run else None


class SiteFolder(Product[bool]):
    """The folder of a site; it exists as a product if it is finished."""

    def existing_files(self) -> list[str]:
        """Return a list of the folder, if it is finished; otherwise an empty list.

        Raises:
            OutputError: The folder is a file, or holds a file that so2docs did not write.
        """
        try:
            names = storage.list_folder(self.path)
        except NotADirectoryError:
            raise OutputError(f"{self.path}: is a file; choose another output") from None
        if foreign := [name for name in names if not name.startswith(_OURS)]:
            raise OutputError(
                f"{self.path}: holds {foreign[0]}, which so2docs did not write; "
                "choose another output, or move it away"
            )
        return [self.path] if SUCCESS in names else []

    def read_record(self) -> Provenance | None:
        """Return the provenance in `_SUCCESS`."""
        return load(orjson.dumps(_read_success(self.path).get("provenance")))

    def compare(self) -> Comparison:
        """Compare the folder; `missing` if it is up to date, but a file lacks its size.

        So is a folder that a run has begun to replace: the run may have been killed, and its
        drafts are still there.
        """
        comparison = super().compare()
        if comparison.state != UP_TO_DATE:
            return comparison
        if _RUN in storage.list_folder(self.path):
            return Comparison("missing")
        sizes = _read_success(self.path)["files"]
        with suppress(OSError):
            paths = {name: stores.join(self.path, name) for name in sizes}
            if sizes == {name: storage.identify(path).size for name, path in paths.items()}:
                return comparison
        return Comparison("missing")


def check_run(folder: str, run: str) -> None:
    """Raise `OutputError` if another run is writing to a folder or has finished it.

    If both files are missing, an attempt of this run has just removed the `_SUCCESS` of another
    attempt, believing it to be that of an earlier run. It will write the file again.
    """
    current = _read(folder, _RUN).decode(errors="replace")
    if (current or _read_success(folder).get("run", run)) != run:
        raise OutputError(
            f"{folder}: another run is writing to this folder; wait for it, or choose another "
            "output"
        )


def _read_success(folder: str) -> dict[str, Any]:
    """Parse `_SUCCESS`; an empty dictionary if the file is missing or damaged."""
    try:
        content = orjson.loads(_read(folder, SUCCESS))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _read(folder: str, name: str) -> bytes:
    try:
        with storage.open_file(stores.join(folder, name)) as file:
            return file.read()
    except OSError:
        return b""
