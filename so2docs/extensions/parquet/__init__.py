"""Parquet, Arrow and data frames."""

from contextlib import suppress

from so2docs.extensions.hidden_imports import hidden
from so2docs.processes.worker import in_worker

if in_worker.is_set():
    # Arrow imports NumPy, and pandas to convert its first list, if it can: 60 MiB and 0.6 s. Later,
    # it imports pandas only for conversions to pandas. Before version 18, it needs NumPy.
    for names in (("numpy", "pandas"), ("pandas",)):
        with suppress(AttributeError, ImportError), hidden(*names):
            import pyarrow as pa
            import pyarrow.compute
            import pyarrow.json
            import pyarrow.parquet

            pa.array([])
