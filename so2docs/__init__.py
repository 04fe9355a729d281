"""so2docs: questions with their answers inside, from the Posts.xml of a Stack Exchange dump.

Examples:
    >>> report = so2docs.convert("Posts.xml", "questions.jsonl.gz")
    >>> for question in so2docs.read("questions.jsonl.gz"): ...
    >>> so2docs.open("questions.jsonl.gz")[1]
    >>> so2docs.inspect_output("questions.jsonl.gz")
    >>> so2docs.to_sqlite("questions.jsonl.gz")
    >>> so2docs.tables("sample.stackexchange.com.7z", "sample")
"""

from __future__ import annotations

from so2docs._version import __version__

TYPE_CHECKING = False  # Replaces the constant of `typing`, which is slow to import.
if TYPE_CHECKING:
    from typing import Any

    from so2docs.api.convert import convert
    from so2docs.api.documents import Documents, documents
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
    from so2docs.extensions.changes.compare import Summary
    from so2docs.extensions.changes.diff import Changes, diff
    from so2docs.extensions.inspection.inspect import Inspection, inspect
    from so2docs.extensions.inspection.output import InspectedOutput, inspect_output
    from so2docs.extensions.recipes.recipe import Recipe, Setting
    from so2docs.extensions.sites.batch import convert_all
    from so2docs.extensions.sites.each_site import for_each_site
    from so2docs.extensions.sites.tasks import SiteResult
    from so2docs.extensions.sqlite.build import to_sqlite
    from so2docs.extensions.tables.report import FlatTable, TablesReport
    from so2docs.extensions.tables.stream import Rows, rows
    from so2docs.extensions.tables.tables import tables
    from so2docs.reader.collection import Collection
    from so2docs.reader.collection import open as open  # noqa: A004
    from so2docs.reader.reading import read
    from so2docs.report import Report

# `open` is left out of `__all__`, so that `from so2docs import *` does not hide the builtin.
# [[[cog
# import cog
# from reference.public_names import text
# cog.outl(text(cog.inFile))
# ]]]
__all__ = [
    "ArchiveError", "ChangedDumpError", "Changes", "ClusterError", "Collection", "DiskFullError",
    "DocumentNotFoundError", "Documents", "DumpError", "DumpNotFoundError", "FlatTable",
    "InspectedOutput", "Inspection", "InternalError", "Location", "MalformedDumpError",
    "OptionError", "OutputError", "OutputExistsError", "OutputNotFoundError", "Recipe",
    "RecipeError", "Report", "RowCounts", "Rows", "Setting", "SiteResult", "So2docsError",
    "SpillError", "SpillTakenError", "StrictError", "Summary", "TableCounts", "TablesReport",
    "TruncatedDumpError", "WorkerDiedError", "__version__", "convert", "convert_all", "diff",
    "documents", "for_each_site", "inspect", "inspect_output", "read", "rows", "tables",
    "to_sqlite",
]  # fmt: skip
_NAMES = {
    "api.convert": ["convert"], "api.documents": ["Documents", "documents"],
    "counts": ["RowCounts", "TableCounts"], "errors": ["ArchiveError", "ChangedDumpError",
    "ClusterError", "DiskFullError", "DocumentNotFoundError", "DumpError", "DumpNotFoundError",
    "InternalError", "Location", "MalformedDumpError", "OptionError", "OutputError",
    "OutputExistsError", "OutputNotFoundError", "RecipeError", "So2docsError", "SpillError",
    "SpillTakenError", "StrictError", "TruncatedDumpError", "WorkerDiedError"],
    "extensions.changes.compare": ["Summary"], "extensions.changes.diff": ["Changes", "diff"],
    "extensions.inspection.inspect": ["Inspection", "inspect"],
    "extensions.inspection.output": ["InspectedOutput", "inspect_output"],
    "extensions.recipes.recipe": ["Recipe", "Setting"], "extensions.sites.batch": ["convert_all"],
    "extensions.sites.each_site": ["for_each_site"], "extensions.sites.tasks": ["SiteResult"],
    "extensions.sqlite.build": ["to_sqlite"], "extensions.tables.report": ["FlatTable",
    "TablesReport"], "extensions.tables.stream": ["Rows", "rows"],
    "extensions.tables.tables": ["tables"], "reader.collection": ["Collection", "open"],
    "reader.reading": ["read"], "report": ["Report"],
}  # fmt: skip
# [[[end]]]


def __getattr__(name: str) -> Any:
    """Import a name on first use, so that the command line can set up its signal handlers first."""
    from importlib import import_module

    if name == "spark":
        return import_module("so2docs.extensions.spark")
    module = next((module for module, names in _NAMES.items() if name in names), None)
    if module is None:
        raise AttributeError(f"module 'so2docs' has no attribute {name!r}")
    value = getattr(import_module(f"so2docs.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "open"])
