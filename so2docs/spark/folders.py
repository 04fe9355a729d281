"""Output folders of sites: each attempt writes its files to a draft folder, then publishes them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import orjson

from so2docs.dump import storage
from so2docs.errors import DiskFullError, DumpError, OutputError, So2docsError
from so2docs.output import provenance
from so2docs.output.product import Product
from so2docs.output.provenance import UP_TO_DATE, Comparison, Provenance
from so2docs.report import Report

SUCCESS = "_SUCCESS"
ERROR = "_error.xml"
PART = "part-"
STRAYS = ".strays-00000"
_RUN = "_run"
_TEMPORARY = "_temporary"
_OURS = (PART, ".strays", _TEMPORARY, _RUN, SUCCESS, ERROR)


def list_names(folder: str) -> list[str]:
    """List the names of the files in a site's folder.

    Raises:
        OutputError: The folder is a file, or holds a file that so2docs did not write.
    """
    try:
        names = storage.list_folder(folder)
    except NotADirectoryError:
        raise OutputError(f"{folder}: is a file; choose another output") from None
    if foreign := [name for name in names if not name.startswith(_OURS)]:
        raise OutputError(
            f"{folder}: holds {foreign[0]}, which so2docs did not write; "
            "choose another output, or move it away"
        )
    return names


def begin(task: tuple[str, str]) -> None:
    """Assign a site's folder to a run, and mark it as unfinished.

    Existing part files stay until they are replaced. An earlier run that is still writing to the
    folder will fail; its draft is left alone.

    Args:
        task: The folder, and the id of the run.

    Raises:
        OutputError: The folder cannot be written.
    """
    folder, run = task
    try:
        storage.make_folder(folder)
        storage.write(storage.join(folder, _RUN), run.encode())
        for name in (SUCCESS, ERROR):
            storage.remove(storage.join(folder, name))
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written: {error.strerror or error}") from error


@contextmanager
def draft(folder: str, run: str) -> Iterator[str]:
    """Make a temporary folder for the files of one attempt, on the disk of the output if possible.

    It is inside a folder named after the run, so that no other run removes it.
    """
    if storage.is_url(folder):
        with temporary_folder() as path:
            yield path
        return
    common = os.path.join(folder, _TEMPORARY, run)
    os.makedirs(common, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=common, ignore_cleanup_errors=True) as path:
            yield path
    finally:
        # The folders are not empty if another attempt or run is still using them.
        with suppress(OSError):
            os.rmdir(common)
            os.rmdir(os.path.dirname(common))


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Make a temporary folder in the Spark local directory with the most free space.

    Without local directories, the folder is in the system's temporary folder.

    Raises:
        DiskFullError: A disk is full. If it is the disk of this folder, the message advises a
            larger disk in `spark.local.dir`.
    """
    places = [
        (shutil.disk_usage(local).free, local)
        for local in os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
        if os.path.isdir(local)
    ]
    with tempfile.TemporaryDirectory(
        prefix="so2docs-", dir=max(places)[1] if places else None
    ) as path:
        try:
            yield path
        except DiskFullError as error:
            problem = str(error.args[0]).partition("; ")[0]
            if not problem.startswith(path):
                raise
            # On a cluster, Spark chooses the disk, so replace the usual advice.
            advice = "give Spark a larger disk in spark.local.dir"
            raise DiskFullError(f"{problem}; {advice}", retry="") from error


def publish(folder: str, run: str, draft: str, report: Report) -> dict[str, int]:
    """Move the files of a draft to the site's folder, and adapt the report.

    Another attempt of the same run may publish the same files, with the same bytes.

    Returns:
        The size in bytes of each file, by name.

    Raises:
        OutputError: Another run has taken the folder.
    """
    files = {}
    if report.questions:
        files = {
            name: os.path.join(draft, name) for name in os.listdir(draft) if name.startswith(PART)
        }
    else:
        report.files = report.output_bytes = 0
    if report.strays_path is not None:
        compression = report.strays_path.rpartition(".strays")[2]
        files[STRAYS + compression] = report.strays_path
        report.strays_path = STRAYS + compression
    sizes = {name: os.path.getsize(path) for name, path in sorted(files.items())}
    for name in sizes:
        _check_run(folder, run)
        storage.publish(files[name], storage.join(folder, name))
    return sizes


def finish(
    folder: str,
    run: str,
    files: Mapping[str, int],
    report: Mapping[str, Any],
    record: Provenance | None,
) -> None:
    """Mark a folder as finished: check its files, and list them in `_SUCCESS`.

    Part files of an earlier conversion are removed.

    Args:
        folder: The folder of the site.
        run: Id of the run.
        files: Size in bytes of each file, by name.
        report: The report of the conversion, which a later attempt reads back.
        record: Provenance of the files; None if unknown.

    Raises:
        OutputError: A file is missing or does not have the expected size, or another run has taken
            the folder.
    """
    _check_run(folder, run)
    for name in storage.list_folder(folder):
        if name.startswith((PART, ".strays")) and name not in files:
            storage.remove(storage.join(folder, name))
    for name, size in files.items():
        if (actual := _find_size(folder, name)) != size:
            state = "is missing" if actual is None else f"has {actual:,} bytes, not {size:,}"
            raise OutputError(
                f"{storage.join(folder, name)}: {state}; find out what else writes to this folder",
                retry="",
            )
    values = None if record is None else record.as_dict()
    content = {"run": run, "files": files, "report": report, "provenance": values}
    storage.write(storage.join(folder, SUCCESS), orjson.dumps(content))
    storage.remove(storage.join(folder, _TEMPORARY))  # Remove the drafts of killed attempts.
    storage.remove(storage.join(folder, _RUN))


def _find_size(folder: str, name: str) -> int | None:
    """Return the size of a file in bytes; None if it is missing."""
    try:
        return storage.identify(storage.join(folder, name)).size
    except OSError:
        return None


def read_report(folder: str, run: str) -> dict[str, Any] | None:
    """Read the report from `_SUCCESS`; None if this run has not finished the folder."""
    success = _read_success(folder)
    return success.get("report") if success.get("run") == run else None


class SiteFolder(Product[None]):
    """The finished folder of a site."""

    def existing_files(self) -> list[str]:
        """Return a list of the folder, if it is finished; otherwise an empty list."""
        return [self.path] if SUCCESS in storage.list_folder(self.path) else []

    def read_records(self) -> list[Provenance | None]:
        """Return the provenance in `_SUCCESS`, as a list of one."""
        return [provenance.load(orjson.dumps(_read_success(self.path).get("provenance")))]

    def compare(self) -> Comparison:
        """Compare the folder; if it is up to date but a file lacks its size, it is `missing`."""
        comparison = super().compare()
        files = _read_success(self.path).get("files", {})
        is_whole = all(_find_size(self.path, name) == size for name, size in files.items())
        is_lost = comparison.state == UP_TO_DATE and not is_whole
        return Comparison("missing") if is_lost else comparison


def _check_run(folder: str, run: str) -> None:
    # Accept a folder that another attempt of this run has finished.
    if _find_owner(folder) != run:
        raise _taken(folder)


def _find_owner(folder: str) -> str:
    """Return the id of the run that is writing to a folder or finished it; empty if none."""
    current = _read(folder, _RUN).decode(errors="replace")
    return current or str(_read_success(folder).get("run", ""))


def _taken(folder: str) -> OutputError:
    return OutputError(
        f"{folder}: another run is writing to this folder; wait for it, or choose another output"
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
        with storage.open_file(storage.join(folder, name)) as file:
            return file.read()
    except OSError:
        return b""


def clear(folder: str, run: str, error: So2docsError) -> None:
    """Remove the drafts of a failed attempt, and save the excerpt of a broken dump.

    The folder stays assigned to the run, which may try again.

    Raises:
        OutputError: Another run has taken the folder, which is left unchanged.
    """
    if _find_owner(folder) not in ("", run):
        raise _taken(folder) from error
    with suppress(OSError):
        storage.remove(storage.join(folder, _TEMPORARY, run))
    if isinstance(error, DumpError):
        save_excerpt(folder, error)


def save_excerpt(folder: str, error: DumpError) -> None:
    """Write the excerpt of a broken dump to `_error.xml`; if that fails, set it to None."""
    if not folder or error.excerpt is None:
        return
    try:
        storage.make_folder(folder)
        storage.write(storage.join(folder, ERROR), error.excerpt)
    except OSError:
        error.excerpt = None
