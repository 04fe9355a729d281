"""Write the tables of one of several dumps; the result is None if up to date."""

from __future__ import annotations

from typing import Any

from so2docs.extensions.tables.report import TablesReport
from so2docs.extensions.tables.tables import tables
from so2docs.registry import EachDump


def _write_tables(source: str, output: str, **kwargs: Any) -> TablesReport | None:
    report = tables(source, output, **kwargs)
    return report if report.is_new else None


TABLES = EachDump(_write_tables, "")
