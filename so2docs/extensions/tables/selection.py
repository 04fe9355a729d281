"""Filters of the rows of a table: by date, by ids in files, and by existence on a date."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from so2docs.domain import last_moment
from so2docs.extensions.tables.columns import Batch, date_text
from so2docs.extensions.tables.options import RowOptions
from so2docs.parse.filters import limit_milliseconds
from so2docs.parse.id_set import IdSet
from so2docs.schema import OTHER


@dataclass(frozen=True, slots=True)
class RowSelection:
    """A filter of the rows of a table.

    Attributes:
        since: Earliest date to keep, as text with milliseconds; None for no limit.
        until: First date to exclude, as text with milliseconds; None for no limit.
        kept: Pairs of a column name and the path of the set of ids to keep.
        left_out: Pairs of a column name and the path of the set of ids to leave out.
        cleared: Pairs of a column name and the path of the set of ids to replace by null.
        as_of: Last moment of the date of `as_of`; None to keep later rows.
    """

    since: str | None = None
    until: str | None = None
    kept: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    cleared: tuple[tuple[str, str], ...] = ()
    as_of: str | None = None

    @classmethod
    def of_dates(cls, options: RowOptions) -> RowSelection:
        """Make the filter that tests only dates."""
        since, until = (
            None if limit is None else date_text(limit)
            for limit in map(limit_milliseconds, (options.since, options.until))
        )
        as_of = None if options.as_of is None else last_moment(options.as_of)
        return cls(since, until, as_of=as_of)

    def apply(self, batch: Batch) -> None:
        """Keep the rows of a batch that pass the filter.

        With a date limit, rows without a date are dropped.
        """
        date = batch.columns.table.dated_by
        if date in batch.columns.names:
            if self.as_of is not None:
                _keep_existing(batch, date, self.as_of)
            if (since := self.since) is not None:
                batch.keep([value is not None and value >= since for value in batch.column(date)])
            if (until := self.until) is not None:
                batch.keep([value is not None and value < until for value in batch.column(date)])
        for column, path in self.kept:
            batch.keep(IdSet(path).find(batch.column(column)))
        for column, path in self.left_out:
            batch.keep([not listed for listed in IdSet(path).find(batch.column(column))])
        for column, path in self.cleared:
            values = batch.column(column)
            pairs = zip(values, IdSet(path).find(values), strict=True)
            batch.replace(column, [None if listed else value for value, listed in pairs])


def _keep_existing(batch: Batch, date: str, as_of: str) -> None:
    """Keep the rows that existed; dates that do not exist are texts in `Other`."""
    from so2docs.extensions.as_of.existence import existed

    dates = batch.column(date)
    if None in dates:
        others = map(orjson.loads, (other or "{}" for other in batch.column(OTHER)))
        pairs = zip(dates, others, strict=True)
        dates = [other.get(date) if value is None else value for value, other in pairs]
    batch.keep([existed(value, as_of) for value in dates])
