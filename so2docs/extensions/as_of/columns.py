"""The rule for rows that existed at a moment, applied to Arrow tables."""

from __future__ import annotations

from typing import Any

import orjson

from so2docs.extensions.as_of.existence import Existence
from so2docs.schema import OTHER


def select_existing(rows: Any, date: str, existence: Existence) -> Any:
    """Return the rows of an Arrow table that existed, whose dates are in the column `date`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # Commands that read no tables import this module, also where PyArrow is not installed.
    from so2docs.extensions.parquet.arrow import make_scalar

    dates = rows.column(date)
    last = make_scalar(existence.milliseconds, dates.type)
    existed = pc.less_equal(dates, last)
    if dates.null_count:  # Dates that do not exist are texts in `Other`.
        others = rows.column(OTHER).to_pylist()
        existed = pa.array(
            existence.includes(orjson.loads(other or "{}").get(date)) if value is None else value
            for value, other in zip(existed.to_pylist(), others, strict=True)
        )
    return rows.filter(existed)
