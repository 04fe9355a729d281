"""so2docs: questions with their answers inside, from the Posts.xml of a Stack Exchange dump.

Examples:
    >>> report = so2docs.convert("Posts.xml", "questions.jsonl.gz")
    >>> for question in so2docs.read("questions.jsonl.gz"): ...
    >>> so2docs.open("questions.jsonl.gz")[1]
    >>> so2docs.stats("questions.jsonl.gz")
    >>> so2docs.to_sqlite("questions.jsonl.gz")
    >>> so2docs.tables("sample.stackexchange.com.7z", "sample")
"""

from __future__ import annotations

from so2docs._version import __version__

TYPE_CHECKING = False  # Replaces the constant of `typing`, which is slow to import.
if TYPE_CHECKING:
    from typing import Any

    from so2docs.api.batch import convert_all
    from so2docs.api.convert import Documents, convert, documents
    from so2docs.api.sites import SiteResult
    from so2docs.api.tags import Tags, TagsReport, tags
    from so2docs.changes.compare import Summary
    from so2docs.changes.diff import Changes, diff
    from so2docs.counts import RowCounts, TableCounts
    from so2docs.errors import (
        ArchiveError,
        ChangedDumpError,
        ClusterError,
        DiskFullError,
        DocumentNotFoundError,
        DumpError,
        DumpNotFoundError,
        InternalError,
        Location,
        MalformedDumpError,
        OptionError,
        OutputError,
        OutputExistsError,
        OutputNotFoundError,
        RecipeError,
        So2docsError,
        SpillError,
        SpillTakenError,
        StrictError,
        TruncatedDumpError,
        WorkerDiedError,
    )
    from so2docs.flat.report import FlatTable, TablesReport
    from so2docs.flat.tables import tables
    from so2docs.folders import for_each_site
    from so2docs.inspection.inspect import Inspection, inspect
    from so2docs.metadata.manifest import Verified, verify
    from so2docs.reader.collection import Collection
    from so2docs.reader.collection import open as open  # noqa: A004
    from so2docs.reader.frames import Frame, Selection
    from so2docs.reader.reading import read
    from so2docs.recipes.recipe import Recipe, Setting
    from so2docs.report import Report
    from so2docs.sqlite.build import Database, to_sqlite
    from so2docs.statistics.stats import Scores, Stats, stats

# `open` is left out, so that `from so2docs import *` does not hide the builtin.
__all__ = [
    "ArchiveError",
    "ChangedDumpError",
    "Changes",
    "ClusterError",
    "Collection",
    "Database",
    "DiskFullError",
    "DocumentNotFoundError",
    "Documents",
    "DumpError",
    "DumpNotFoundError",
    "FlatTable",
    "Frame",
    "Inspection",
    "InternalError",
    "Location",
    "MalformedDumpError",
    "OptionError",
    "OutputError",
    "OutputExistsError",
    "OutputNotFoundError",
    "Recipe",
    "RecipeError",
    "Report",
    "RowCounts",
    "Scores",
    "Selection",
    "Setting",
    "SiteResult",
    "So2docsError",
    "SpillError",
    "SpillTakenError",
    "Stats",
    "StrictError",
    "Summary",
    "TableCounts",
    "TablesReport",
    "Tags",
    "TagsReport",
    "TruncatedDumpError",
    "Verified",
    "WorkerDiedError",
    "__version__",
    "convert",
    "convert_all",
    "diff",
    "documents",
    "for_each_site",
    "inspect",
    "read",
    "stats",
    "tables",
    "tags",
    "to_sqlite",
    "verify",
]

_MODULES = {
    "changes.diff": ("Changes", "diff"),
    "changes.compare": ("Summary",),
    "metadata.manifest": ("Verified", "verify"),
    "api.convert": ("Documents", "convert", "documents"),
    "flat.report": ("FlatTable", "TablesReport"),
    "flat.tables": ("tables",),
    "api.tags": ("Tags", "TagsReport", "tags"),
    "folders": ("for_each_site",),
    "inspection.inspect": ("Inspection", "inspect"),
    "reader.collection": ("Collection", "open"),
    "reader.frames": ("Frame", "Selection"),
    "reader.reading": ("read",),
    "recipes.recipe": ("Recipe", "Setting"),
    "counts": ("RowCounts", "TableCounts"),
    "report": ("Report",),
    "api.batch": ("convert_all",),
    "api.sites": ("SiteResult",),
    "sqlite.build": ("Database", "to_sqlite"),
    "statistics.stats": ("Scores", "Stats", "stats"),
}
"""Public names by module; those not listed here are in `so2docs.errors`."""


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that the command line can set up its signal handlers first."""
    if name not in __all__ and name != "open":
        raise AttributeError(f"module 'so2docs' has no attribute {name!r}")
    from importlib import import_module

    places = [module for module, names in _MODULES.items() if name in names]
    value = getattr(import_module(f"so2docs.{(places or ['errors'])[0]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "open"])
