"""Everything that can go wrong, said so that the reader knows what, where and what to do next.

One base class, `So2docsError`, whose text is the one line that the command line prints. Messages
name options as flags, as `--min-score`; whoever calls the library reads `min_score=` instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

RESUMES = "run the same command again to resume"
STARTS_OVER = "the same command starts over"

_SWITCHES = {
    *("accepted", "all-tags", "answered", "attribution", "best", "card", "drop-fabricated"),
    *("force", "keep-spill", "restart", "skip-malformed", "strict"),
}
_VALUED = {
    *(
        "answers-by",
        "body",
        "compression",
        "core",
        "deleted",
        "fields",
        "format",
        "ignore",
        "index",
    ),
    *("jobs", "level", "limit", "max-body", "min-answer-score", "min-answers", "min-score", "only"),
    *("output-dir", "recipe", "sample", "since", "site", "site-field", "spill-budget", "split"),
    *("split-by", "tag", "until", "with", "without", "work-dir"),
}
_KEYWORDS = {"tag": "tags", "with": "nest"}  # Where they have other names.
_OTHERS = {"no-site": "site=False", "report": "manifest=True"}
_FLAG = re.compile(
    r"`[^`]*`|(?<![\w/.=-])--(?P<name>[a-z]+(?:-[a-z]+)*)(?![\w-]|\.\w)"
    # What follows is its value, and no word of the sentence.
    r"(?: (?P<value>[A-Z]\w*(?:[.,]\w+)*|\d[\w:.+-]*\w|\d|[\w.]+:\w+|[a-z]+(?:\.[a-z]+){2,}"
    r"|(?:jsonl?|elasticsearch|mongodb|ravendb|parquet|gzip|zstd|none|html|text|markdown|changes"
    r"|comments|links|votes|users|all|preferences|pairs|qa|thread|beir|python|compiled|id|year|month"
    r"|added,changed)(?![\w-])))?"
)
_names_flags = ContextVar("_names_flags", default=False)


@contextmanager
def naming_flags() -> Iterator[None]:
    """Let errors name options as users of the command give them."""
    token = _names_flags.set(True)
    try:
        yield
    finally:
        _names_flags.reset(token)


def named(text: str) -> str:
    """A text that names flags, with keywords in their place unless it is for the command."""
    return text if _names_flags.get() else _FLAG.sub(_keyword, text)


def _keyword(found: re.Match[str]) -> str:
    name, value = found["name"], found["value"]
    rest = "" if value is None else f" {value}"
    if name in _VALUED:
        is_plain = value is None or value.isdigit() or value in ("FILE", "NAME")
        shown = (value or "") if is_plain else repr(value)
        return f"{_KEYWORDS.get(name, name.replace('-', '_'))}={shown}"
    if name in _SWITCHES:
        return f"{name.replace('-', '_')}=True{rest}"
    if name in ("comments", "links", "votes", "users"):
        return f"tables={{{name!r}: {value}}}"
    return _OTHERS[name] + rest if name in _OTHERS else found[0]


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
        self.resumes = True

    def __str__(self) -> str:
        return named(self._text())

    def _text(self) -> str:
        text = super().__str__()
        if self.retry is None:
            return text
        if self.resumes:
            return f"{text}; {self.retry and f'{self.retry} and '}{RESUMES}"
        return f"{text}; {self.retry and f'{self.retry}; '}{STARTS_OVER}"


def starts_over(end: BaseException) -> None:
    """Let what ended a conversion say that the same command starts over: nothing is left of it."""
    if isinstance(end, So2docsError):
        end.resumes = False
    elif not isinstance(end, Exception):  # Such as Ctrl-C.
        end.args = (STARTS_OVER,)


class OptionError(So2docsError):
    """An option has a value that is not allowed, or two options contradict each other."""


@dataclass(slots=True)
class Place:
    """Where in a dump something was found.

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
    """The dump cannot be converted as it is.

    Attributes:
        path: The dump's name.
        problem: What was found, without the place.
        place: Where it was found, or None where it concerns the whole file.
        advice: What to do next.
        excerpt: The raw bytes of a small dump that fails in the same way; None if there is none.
        excerpt_path: Where `convert` saved the excerpt, or None.
    """

    def __init__(
        self,
        path: str,
        problem: str,
        place: Place | None = None,
        *,
        advice: str = "",
        excerpt: bytes | None = None,
    ) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem
        self.place = place
        self.advice = advice
        self.excerpt = excerpt
        self.excerpt_path: str | None = None

    def _text(self) -> str:
        where = "" if self.place is None else f" {self.place}"
        saved = (
            ""
            if self.excerpt_path is None
            else f"; a small dump that shows it: {self.excerpt_path}"
        )
        advice = "" if not self.advice else f"; {self.advice}"
        return f"{self.path}: {self.problem}{where}{advice}{saved}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling between processes.
        return _from_fields, (type(self), {name: getattr(self, name) for name in _FIELDS})


_FIELDS = ("path", "problem", "place", "advice", "excerpt")


def _from_fields(kind: type[DumpError], fields: dict[str, Any]) -> DumpError:
    return kind(**fields)


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


class DocumentNotFoundError(So2docsError, KeyError):
    """An output has no question with this id."""

    def _text(self) -> str:
        # A KeyError would show its text in quotes.
        return str(self.args[0])


class SpillError(So2docsError):
    """The spill cannot be used: in use by another process, made from something else, damaged."""


class SpillTakenError(SpillError):
    """The folder of the spill is in use, or holds something else: nothing there may be removed."""


class DiskFullError(So2docsError):
    """There is not enough room on a disk."""


class WorkerDiedError(So2docsError):
    """A worker process ended without an answer, such as when the system ran out of memory."""


class ClusterError(So2docsError):
    """Spark is not there, does not start, or gave a job up."""


class RecipeError(So2docsError):
    """A recipe failed at a document, or returned what is no record."""


class AccountingError(So2docsError):
    """The counts of a conversion do not add up: a defect of this program."""
