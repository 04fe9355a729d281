"""Everything that can go wrong, said so that the reader knows what, where and what to do next.

One base class, `So2docsError`, whose text is the one line that the command line prints. Where
Python has an exception for the same thing, such as `FileNotFoundError`, an error is one, too.
"""

from __future__ import annotations

import difflib
import errno
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

RESUMES = "run the same command again to resume"
STARTS_OVER = "the same command starts over"
ALL_IS_DONE = "all is done"

_BEGIN, _BETWEEN, _END = "\ue000", "\ue001", "\ue002"
_NAMED = re.compile(f"{_BEGIN}([^{_BETWEEN}]*){_BETWEEN}([^{_END}]*){_END}")
_names_flags = ContextVar("_names_flags", default=False)


def flag(name: str, value: object = None) -> str:
    """An option in the text of an error, which shows it as its reader gives it.

    Args:
        name: The keyword.
        value: Its value, True for a switch; a word in capitals, such as `FILE`, is a placeholder.

    Returns:
        `--split-by year` for users of the command, `split_by='year'` for callers of the library.
    """
    typed, keyword = f"--{name.replace('_', '-')}", name
    if value is not None:
        is_placeholder = isinstance(value, str) and value.isupper()
        keyword = f"{name}={value if is_placeholder else repr(value)}"
    if value not in (None, True):
        typed = f"{typed} {value}"
    return f"{_BEGIN}{typed}{_BETWEEN}{keyword}{_END}"


def did_you_mean(value: object, names: Iterable[str]) -> str:
    """A hint at the name that is most like what was given; empty if none is."""
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(str(value).lower(), by_lower, 1, 0.7)
    return f"; did you mean {by_lower[near[0]]}?" if near else ""


@contextmanager
def naming_flags() -> Iterator[None]:
    """Let errors name options as users of the command give them."""
    token = _names_flags.set(True)
    try:
        yield
    finally:
        _names_flags.reset(token)


def spell_options(text: str) -> str:
    """A text with options named by `flag`, as its reader gives them."""
    return _NAMED.sub(r"\1" if _names_flags.get() else r"\2", text)


@contextmanager
def resumable(resumes: bool, *, is_done: bool = False) -> Iterator[None]:
    """Let what ends this block say whether the same call resumes what was begun, or starts over.

    Of blocks in each other the outer one decides: it knows what is left at the end.

    Args:
        resumes: Whether it resumes.
        is_done: Whether nothing is left to do, so that an interruption comes too late.
    """
    try:
        yield
    except So2docsError as error:
        error.resumes = resumes
        raise
    except BaseException as end:
        if not isinstance(end, Exception):  # Such as Ctrl-C.
            end.args = (ALL_IS_DONE if is_done else RESUMES if resumes else STARTS_OVER,)
        raise


class So2docsError(Exception):
    """Base of every error that this package raises on purpose; its text is one line.

    Attributes:
        retry: What to do before the same is tried again, `""` for nothing; None where trying again
            is no help.
        resumes: Whether trying again then resumes what was begun, or starts over.
    """

    def __init__(self, *arguments: object, retry: str | None = None) -> None:
        super().__init__(*arguments)
        self.retry = retry
        self.resumes = False

    def __str__(self) -> str:
        return spell_options(self._text())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def _text(self) -> str:
        text = str(self.args[0]) if self.args else ""
        if self.retry is None:
            return text
        if self.resumes:
            return f"{text}; {self.retry and f'{self.retry}, then '}{RESUMES}"
        return f"{text}; {self.retry and f'{self.retry}; '}{STARTS_OVER}"


class OptionError(So2docsError, ValueError):
    """An option has a value that is not allowed, or two options contradict each other."""


@dataclass(slots=True)
class Location:
    """A position in a dump.

    Attributes:
        offset: Bytes from the start of the (decompressed) dump.
        line: Line of that byte, counted from 1 by line feeds; None where it is not known.
        last_id: `Id` of the last good row before it; None if there was none.
        row: What a row is called there.
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
        path: The dump's name.
        problem: What was found, without the location.
        location: Where it was found, or None where it concerns the whole file.
        advice: What to do next.
        excerpt: The raw bytes of a small dump that fails in the same way, or None.
        excerpt_path: Where `convert` saved the excerpt, or None.
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
        self.path = path
        self.problem = problem
        self.location = location
        self.advice = advice
        self.excerpt = excerpt
        self.excerpt_path: str | None = None

    def _text(self) -> str:
        where = "" if self.location is None else f" {self.location}"
        saved = (
            ""
            if self.excerpt_path is None
            else f"; a small dump that reproduces it: {self.excerpt_path}"
        )
        advice = "" if not self.advice else f"; {self.advice}"
        return f"{self.path}: {self.problem}{where}{advice}{saved}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling between processes.
        fields = {name: getattr(self, name) for name in _FIELDS}
        return _from_fields, (type(self), fields), dict(vars(self))


_FIELDS = ("path", "problem", "location", "advice", "excerpt")


def _from_fields(kind: type[DumpError], fields: dict[str, Any]) -> DumpError:
    return kind(**fields)


class DumpNotFoundError(DumpError, FileNotFoundError):
    """There is no such dump."""

    errno = errno.ENOENT


class TruncatedDumpError(DumpError):
    """The dump ends before its closing tag."""


class MalformedDumpError(DumpError):
    """The dump has bytes that are not rows of well-formed XML."""


class ArchiveError(DumpError):
    """An archive or a compressed file is damaged, encrypted, or holds no posts."""


class StrictError(DumpError):
    """`strict` was asked for, and something had to be repaired or left out."""


class ChangedDumpError(DumpError):
    """The dump was changed, shortened or replaced while it was being read."""


class OutputError(So2docsError):
    """The output cannot be written, or an output cannot be read back."""


class OutputNotFoundError(OutputError, FileNotFoundError):
    """There is no such output."""

    errno = errno.ENOENT


class OutputExistsError(OutputError, FileExistsError):
    """There is a file of that name already."""

    errno = errno.EEXIST


class DocumentNotFoundError(So2docsError, KeyError):
    """An output has no question with this id."""


class SpillError(So2docsError):
    """The spill cannot be used: in use by another process, made from something else, damaged."""


class SpillTakenError(SpillError):
    """The folder of the spill is in use, or holds something else: nothing there may be removed."""


class DiskFullError(So2docsError, OSError):
    """There is not enough room on a disk."""

    errno = errno.ENOSPC


class WorkerDiedError(So2docsError):
    """A worker process ended without an answer, such as when the system ran out of memory."""


class ClusterError(So2docsError):
    """Spark is not there, does not start, or gave a job up."""


class RecipeError(So2docsError):
    """A recipe failed at a document, or returned what is no record."""


class InternalError(So2docsError):
    """The counts of a conversion do not add up: a defect of this program."""
