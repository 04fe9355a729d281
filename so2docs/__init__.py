"""so2docs: questions with their answers inside, from the Posts.xml of a Stack Exchange dump.

>>> report = so2docs.convert("Posts.xml", "questions.jsonl.gz")
>>> for question in so2docs.read("questions.jsonl.gz"): ...
>>> so2docs.open("questions.jsonl.gz")[1]
>>> so2docs.stats("questions.jsonl.gz")
>>> so2docs.to_sqlite("questions.jsonl.gz")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from so2docs._version import __version__
from so2docs.convert import Documents, convert, documents
from so2docs.errors import (
    AccountingError,
    ArchiveError,
    ChangedDumpError,
    ClusterError,
    DiskFullError,
    DocumentNotFoundError,
    DumpError,
    MalformedDumpError,
    OptionError,
    OutputError,
    Place,
    RecipeError,
    So2docsError,
    SpillError,
    SpillTakenError,
    StrictError,
    TruncatedDumpError,
    WorkerDiedError,
)
from so2docs.lookup.reading import read
from so2docs.report import Report, TableCounts
from so2docs.several import Conversion, convert_all

if TYPE_CHECKING:
    from so2docs.changes.diff import Changes, diff
    from so2docs.changes.patch import Patched, patch
    from so2docs.changes.summary import Summary
    from so2docs.contract.verify import Verified, verify
    from so2docs.lookup.collection import Collection, IndexWarning
    from so2docs.lookup.collection import open as open  # noqa: A004
    from so2docs.sqlite.build import Database, to_sqlite
    from so2docs.statistics.figures import Scores
    from so2docs.statistics.stats import Stats, stats

# `open` is left out, so that `from so2docs import *` does not hide the builtin.
__all__ = [
    "AccountingError",
    "ArchiveError",
    "ChangedDumpError",
    "Changes",
    "ClusterError",
    "Collection",
    "Conversion",
    "Database",
    "DiskFullError",
    "DocumentNotFoundError",
    "Documents",
    "DumpError",
    "IndexWarning",
    "MalformedDumpError",
    "OptionError",
    "OutputError",
    "Patched",
    "Place",
    "RecipeError",
    "Report",
    "Scores",
    "So2docsError",
    "SpillError",
    "SpillTakenError",
    "Stats",
    "StrictError",
    "Summary",
    "TableCounts",
    "TruncatedDumpError",
    "Verified",
    "WorkerDiedError",
    "__version__",
    "convert",
    "convert_all",
    "diff",
    "documents",
    "patch",
    "read",
    "stats",
    "to_sqlite",
    "verify",
]

_LOADED_WHEN_USED = {
    "Changes": "so2docs.changes.diff",
    "Patched": "so2docs.changes.patch",
    "Summary": "so2docs.changes.summary",
    "Verified": "so2docs.contract.verify",
    "diff": "so2docs.changes.diff",
    "patch": "so2docs.changes.patch",
    "Collection": "so2docs.lookup.collection",
    "IndexWarning": "so2docs.lookup.collection",
    "Database": "so2docs.sqlite.build",
    "Scores": "so2docs.statistics.figures",
    "Stats": "so2docs.statistics.stats",
    "open": "so2docs.lookup.collection",
    "stats": "so2docs.statistics.stats",
    "to_sqlite": "so2docs.sqlite.build",
    "verify": "so2docs.contract.verify",
}


def __getattr__(name: str) -> Any:
    """Import what a conversion does not need when it is first used."""
    if name not in _LOADED_WHEN_USED:
        raise AttributeError(f"module 'so2docs' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_LOADED_WHEN_USED[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LOADED_WHEN_USED})
