"""Error classes; their messages describe the problem, its location, and the next step.

The base class is `So2docsError`. Its message is one line, which the command line prints. Errors
that correspond to a built-in exception, such as `FileNotFoundError`, inherit from both.
"""

from __future__ import annotations

import errno
import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

# A password with an unescaped `/`, `?` or `#` makes a URL invalid, but must not be shown either.
_USER = re.compile(r"(\w://)(?:[^/?#\s]*|[^/\s@:\[]*:(?!\d*[/?#])(?:(?!://)[^\s@])*)@")
# The part before the query stops at the next `://`, so that no part of a text is read repeatedly.
_QUERY = re.compile(
    r"(?i)(https?://[^?#\s:]*+(?::(?!//)[^?#\s:]*+)*+)[?#]\S*?(?=[:;,.)'\"]{0,3}(?:\s|$))"
)

RESUMES = "run the same command again to resume"
STARTS_OVER = "the same command starts over"

_flags: Mapping[str, str] | None = None


def flag(name: str, value: object = None) -> str:
    """Spell an option in a message as the reader would write it.

    Args:
        name: The keyword.
        value: Value of the option, True for a switch, or a dictionary with one entry; a word in
            capitals, such as `FILE`, is a placeholder.

    Returns:
        `--split year` for users of the command line, `split='year'` for callers of the
        library.
    """
    if isinstance(value, Mapping):
        (key, entry), *_ = value.items()
        in_python = f"{{{key!r}: {entry if entry.isupper() else repr(entry)}}}"
        return f"{name}={in_python}" if _flags is None else flag(name, f"{key}={entry}")
    if _flags is not None:
        typed = f"--{name.replace('_', '-')}"
        typed = _flags.get(typed, typed)
        return typed if value in (None, True) else f"{typed} {value}"
    if value is None:
        return name
    is_placeholder = isinstance(value, str) and value.isupper()
    return f"{name}={value if is_placeholder else repr(value)}"


def run_again() -> str:
    """Return the advice to start over."""
    return f"run the command again with {flag('restart', True)}"


def without_secrets(text: str) -> str:
    """Remove user names, passwords, queries and fragments from the URLs in a text.

    The query of a URL may be a signature with which others could read the file.
    """
    return _QUERY.sub(r"\1", _USER.sub(r"\1", text)) if "://" in text else text


def did_you_mean(value: object, names: Iterable[str]) -> str:
    """Return a hint such as `; did you mean NAME?`; empty if no name is similar to the value."""
    import difflib

    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(value).lower(), by_lower, 1, 0.7)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""


@contextmanager
def naming_flags(flags: Mapping[str, str] | None) -> Iterator[None]:
    """Spell options in messages of this process that are made in a block.

    Args:
        flags: The form of each option on the command line, by long option; other options are
            unchanged. If None, options are spelled as keywords.
    """
    global _flags  # noqa: PLW0603 - Not a context variable: threads spell as the process does.
    before, _flags = _flags, flags
    try:
        yield
    finally:
        _flags = before


def spelling() -> Mapping[str, str] | None:
    """Return the argument of `naming_flags` with which another process spells options alike."""
    return _flags


@contextmanager
def resumable(resumes: bool | Callable[[], bool], *, is_done: bool = False) -> Iterator[None]:
    """Record in errors raised in a block whether the same call would resume the work or start over.

    If blocks are nested, the outer one decides, because it knows the final state.

    Args:
        resumes: Whether the call would resume, or a function that returns this at the end of the
            block.
        is_done: Whether all work is done, so that an interruption has no effect; the attribute
            `is_done` of an interruption such as `KeyboardInterrupt` says so.
    """
    try:
        yield
    except BaseException as end:
        goes_on = resumes() if callable(resumes) else resumes
        if isinstance(end, So2docsError):
            end.resumes = goes_on
        elif not isinstance(end, Exception):  # Ctrl-C, for example.
            end.args = (RESUMES if goes_on else STARTS_OVER,)
            end.is_done = is_done  # type: ignore[attr-defined]
        raise


class So2docsError(Exception):
    """Base class of all errors that so2docs raises. The message is one line.

    URLs in the message have no passwords and no queries.

    Attributes:
        retry: Action to take before trying again, or `""` if no action is needed; None if trying
            again does not help.
        resumes: Whether trying again would resume the work; otherwise, it would start over.
    """

    def __init__(self, *arguments: object, retry: str | None = None) -> None:
        super().__init__(
            *(without_secrets(text) if isinstance(text, str) else text for text in arguments)
        )
        self.retry = retry
        self.resumes = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __str__(self) -> str:
        text = str(self.args[0]) if self.args else ""
        if self.retry is None:
            return text
        if self.resumes:
            return f"{text}; {self.retry and f'{self.retry}, then '}{RESUMES}"
        return f"{text}; {self.retry and f'{self.retry}; '}{STARTS_OVER}"


class OptionError(So2docsError, ValueError):
    """An option has a value that is not allowed, or two options cannot be combined."""


def advise_extra(extra: str) -> str:
    """Return the command that adds an extra to an installation."""
    return f"pip install 'so2docs[{extra}]'"


def require_packages(subject: str, *packages: str, extra: str = "") -> None:
    """Raise `OptionError` if packages are not installed.

    Args:
        subject: Feature that needs the packages, for the message.
        packages: Names on PyPI; the module names have `_` in place of `-`, without `-py`.
        extra: The extra of so2docs that installs them, if any.
    """
    missing = [
        name
        for name in packages
        if importlib.util.find_spec(name.removesuffix("-py").replace("-", "_")) is None
    ]
    if missing:
        command = advise_extra(extra) if extra else f"pip install {' '.join(missing)}"
        raise OptionError(f"{subject} needs {', '.join(missing)}: {command}")


@dataclass(slots=True)
class Location:
    """A position in a dump.

    Attributes:
        offset: Bytes from the start of the (decompressed) dump.
        line: Line number of this byte, from 1; only line feeds count. None if unknown.
        last_id: `Id` of the last good row before this position; None if no row precedes it.
        row: Word for a row of the table, such as `post`.
    """

    offset: int
    line: int | None = None
    last_id: int | None = None
    row: str = "post"

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line:,}"
        first, last = f"before the first {self.row}", f"after {self.row} {self.last_id}"
        after = first if self.last_id is None else last
        return f"at byte {self.offset:,}{line}, {after}"


class DumpError(So2docsError):
    """The dump cannot be converted.

    Attributes:
        path: Name of the dump.
        problem: Description of the problem, without the location.
        location: Position in the dump; None if the problem concerns the whole file.
        advice: Next step for the user.
        excerpt: Raw bytes of a small dump that fails in the same way; None if there is no excerpt.
        excerpt_path: File in which `convert` saved the excerpt; None if it was not saved.
    """

    def __init__(
        self,
        path: str,
        problem: str,
        location: Location | None = None,
        *,
        advice: str = "",
        excerpt: bytes | None = None,
    ) -> None:
        super().__init__(path, problem)
        self.path, self.problem = self.args
        self.location = location
        self.advice = advice
        self.excerpt = excerpt
        self.excerpt_path: str | None = None

    def __str__(self) -> str:
        where = "" if self.location is None else f" {self.location}"
        saved = (
            ""
            if self.excerpt_path is None
            else f"; a small dump that reproduces it: {self.excerpt_path}"
        )
        advice = "" if not self.advice else f"; {self.advice}"
        return f"{self.path}: {self.problem}{where}{advice}{saved}"


class DumpNotFoundError(DumpError, FileNotFoundError):
    """The dump does not exist."""

    errno = errno.ENOENT


class TruncatedDumpError(DumpError):
    """The dump ends before its closing tag."""


class MalformedDumpError(DumpError):
    """The dump is not well-formed: it contains bytes that are not rows."""


class ArchiveError(DumpError):
    """An archive or a compressed file is damaged or encrypted, or contains no posts."""


class StrictError(DumpError):
    """With `strict`, a row would have to be repaired or left out."""


class ChangedDumpError(DumpError):
    """The dump was changed, shortened or replaced while it was read."""


class OutputError(So2docsError):
    """An output cannot be written or read."""


class OutputNotFoundError(OutputError, FileNotFoundError):
    """The output does not exist."""

    errno = errno.ENOENT


class OutputExistsError(OutputError, FileExistsError):
    """The output cannot be written, because a file of this name already exists."""

    errno = errno.EEXIST


class DocumentNotFoundError(So2docsError, KeyError):
    """The output has no question with the requested id."""


class SpillError(So2docsError):
    """The spill is in use by another process, was made from another input, or is damaged."""


class SpillTakenError(SpillError):
    """The spill folder is in use, or holds files that so2docs did not write; it is left alone."""


class DiskFullError(So2docsError, OSError):
    """There is not enough disk space."""

    errno = errno.ENOSPC


_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def is_full(error: Exception) -> bool:
    """Whether an error of the system or of SQLite means a full disk or an exceeded quota."""
    is_of_sqlite = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"
    return is_of_sqlite or getattr(error, "errno", None) in _FULL


def convert_error(
    error: Exception,
    path: object = None,
    problem: str = "cannot be written",
    kind: type[So2docsError] = OutputError,
    retry: str = "fix this",
) -> So2docsError:
    """Convert an error of the system or of SQLite to a `DiskFullError` or an error of `kind`.

    Args:
        error: The error.
        path: The file or folder for the message; None for that of the error, without `problem`.
        problem: What failed.
        kind: Class of the result.
        retry: Advice that precedes running the command again.
    """
    where = getattr(error, "filename", None) if path is None else path
    if is_full(error):
        place = f"{where}: " if where else ""
        return DiskFullError(f"{place}the disk is full", retry="free some space")
    parts = (where, problem if path is not None else "", getattr(error, "strerror", None) or error)
    return kind(": ".join(str(part) for part in parts if part), retry=retry)


@contextmanager
def explain(
    path: object = None,
    problem: str = "cannot be written",
    kind: type[So2docsError] = OutputError,
    retry: str = "fix this",
) -> Iterator[None]:
    """Convert errors in a block as `convert_error` does, except a closed pipe."""
    try:
        yield
    except (BrokenPipeError, So2docsError):
        raise
    except Exception as error:
        if not isinstance(error, OSError) and not hasattr(error, "sqlite_errorname"):
            raise
        raise convert_error(error, path, problem, kind, retry) from error


def damaged_spill_error(place: object, problem: object, part: str = "the spill") -> SpillError:
    """Make the error for damage in a file or folder of the spill."""
    return SpillError(f"{place}: {part} is damaged ({problem}); {run_again()}")


class WorkerDiedError(So2docsError):
    """A worker process exited without a result, perhaps because the system ran out of memory."""


class ClusterError(So2docsError):
    """Spark is not installed or does not start, or a Spark job failed."""


class RecipeError(So2docsError):
    """A recipe raised an error for a document, or returned an invalid record."""


class InternalError(So2docsError):
    """The counts of a conversion do not add up, because of a bug in this program."""
