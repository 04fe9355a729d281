"""so2docs: questions with their answers inside, from the Posts.xml of a Stack Exchange dump.

>>> report = so2docs.convert("Posts.xml", "questions.jsonl.gz")
>>> for question in so2docs.read("questions.jsonl.gz"): ...
"""

from so2docs._version import __version__
from so2docs.convert import Documents, convert, documents
from so2docs.errors import (
    AccountingError,
    ChangedDumpError,
    ClusterError,
    DiskFullError,
    DumpError,
    MalformedDumpError,
    OptionError,
    OutputError,
    Place,
    So2docsError,
    SpillError,
    StrictError,
    TruncatedDumpError,
    WorkerDiedError,
)
from so2docs.reading import read
from so2docs.report import Report

__all__ = [
    "AccountingError",
    "ChangedDumpError",
    "ClusterError",
    "DiskFullError",
    "Documents",
    "DumpError",
    "MalformedDumpError",
    "OptionError",
    "OutputError",
    "Place",
    "Report",
    "So2docsError",
    "SpillError",
    "StrictError",
    "TruncatedDumpError",
    "WorkerDiedError",
    "__version__",
    "convert",
    "documents",
    "read",
]
