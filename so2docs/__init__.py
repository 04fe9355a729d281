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
    from so2docs.flat.stream import TableStream, stream_table
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

# `open` is left out of `__all__`, so that `from so2docs import *` does not hide the builtin.
# [[[cog
# import cog
# from support.public_names import text
# cog.outl(text(cog.inFile))
# ]]]
__all__ = [
    "ArchiveError", "ChangedDumpError", "Changes", "ClusterError", "Collection", "Database",
    "DiskFullError", "DocumentNotFoundError", "Documents", "DumpError", "DumpNotFoundError",
    "FlatTable", "Frame", "Inspection", "InternalError", "Location", "MalformedDumpError",
    "OptionError", "OutputError", "OutputExistsError", "OutputNotFoundError", "Recipe",
    "RecipeError", "Report", "RowCounts", "Scores", "Selection", "Setting", "SiteResult",
    "So2docsError", "SpillError", "SpillTakenError", "Stats", "StrictError", "Summary",
    "TableCounts", "TableStream", "TablesReport", "Tags", "TagsReport", "TruncatedDumpError",
    "Verified", "WorkerDiedError", "__version__", "convert", "convert_all", "diff", "documents",
    "for_each_site", "inspect", "read", "stats", "stream_table", "tables", "tags", "to_sqlite",
    "verify",
]  # fmt: skip
_MODULES = {
    "ArchiveError": "errors", "ChangedDumpError": "errors", "Changes": "changes.diff",
    "ClusterError": "errors", "Collection": "reader.collection", "Database": "sqlite.build",
    "DiskFullError": "errors", "DocumentNotFoundError": "errors", "Documents": "api.convert",
    "DumpError": "errors", "DumpNotFoundError": "errors", "FlatTable": "flat.report",
    "Frame": "reader.frames", "Inspection": "inspection.inspect", "InternalError": "errors",
    "Location": "errors", "MalformedDumpError": "errors", "OptionError": "errors",
    "OutputError": "errors", "OutputExistsError": "errors", "OutputNotFoundError": "errors",
    "Recipe": "recipes.recipe", "RecipeError": "errors", "Report": "report", "RowCounts": "counts",
    "Scores": "statistics.stats", "Selection": "reader.frames", "Setting": "recipes.recipe",
    "SiteResult": "api.sites", "So2docsError": "errors", "SpillError": "errors",
    "SpillTakenError": "errors", "Stats": "statistics.stats", "StrictError": "errors",
    "Summary": "changes.compare", "TableCounts": "counts", "TableStream": "flat.stream",
    "TablesReport": "flat.report", "Tags": "api.tags", "TagsReport": "api.tags",
    "TruncatedDumpError": "errors", "Verified": "metadata.manifest", "WorkerDiedError": "errors",
    "convert": "api.convert", "convert_all": "api.batch", "diff": "changes.diff",
    "documents": "api.convert", "for_each_site": "folders", "inspect": "inspection.inspect",
    "open": "reader.collection", "read": "reader.reading", "stats": "statistics.stats",
    "stream_table": "flat.stream", "tables": "flat.tables", "tags": "api.tags",
    "to_sqlite": "sqlite.build", "verify": "metadata.manifest",
}  # fmt: skip
# [[[end]]]


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that the command line can set up its signal handlers first."""
    if name not in _MODULES:
        raise AttributeError(f"module 'so2docs' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"so2docs.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "open"])
