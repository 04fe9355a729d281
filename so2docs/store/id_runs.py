"""Pairs of ids and values in any order -> a map of sorted ones, in bounded memory.

They are sorted in runs, which are merged in the end. The ids of a dump come nearly in order, so
that most runs are copied unchanged.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from so2docs.store.disk import AppendedFile, read_at
from so2docs.store.id_map import WORD, MapFile

_RUN = 1 << 17
"""Pairs that are sorted in memory: 20 MB."""

_SAMPLE = 1 << 10
"""Of so many ids of a run, one is kept in memory."""


class IdMapWriter:
    """Makes a map; complete only after `finish`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._pending: dict[int, int] = {}
        self._repeated = array("q")
        self._runs: list[_Run] = []
        self._file = AppendedFile(f"{path}.runs", "w+b")

    def __enter__(self) -> IdMapWriter:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()
        if os.path.exists(self._file.path):
            os.unlink(self._file.path)

    def add(self, ids: Sequence[int], values: Sequence[int]) -> None:
        """Map ids to values; an id that is there already keeps its value."""
        for start in range(0, len(ids), _RUN):
            self._add(ids[start : start + _RUN], values[start : start + _RUN])
            if len(self._pending) >= _RUN:
                self._sort()

    def _add(self, ids: Sequence[int], values: Sequence[int]) -> None:
        pending, fresh = self._pending, dict(zip(ids, values, strict=True))
        if len(fresh) == len(ids) and pending.keys().isdisjoint(fresh):
            pending.update(fresh)
        else:
            _keep_first(pending, zip(ids, values, strict=True), self._repeated)

    def _sort(self) -> None:
        """Write what was gathered as a run."""
        ids = array("q", sorted(self._pending))
        values = array("q", map(self._pending.__getitem__, ids))
        self._pending = {}
        if ids:
            start = self._file.write(ids.tobytes())
            self._file.write(values.tobytes())
            self._runs.append(_Run(self._file.number, start, len(ids), ids[::_SAMPLE]))

    def finish(self) -> array[int]:
        """Merge the runs into the map.

        Returns:
            The values of those ids that were there already, in no order.
        """
        self._sort()
        with MapFile(self._path) as blocks:
            pivots = sorted(sample for run in self._runs for sample in run.samples)
            for pivot in (*pivots[_RUN // _SAMPLE :: _RUN // _SAMPLE], None):
                blocks.add(*self._merge([run.take(pivot) for run in self._runs]))
            blocks.finish()
        return self._repeated

    def _merge(self, parts: list[tuple[array[int], array[int]]]) -> tuple[array[int], array[int]]:
        """What the runs have of a range of ids, those of earlier ones first."""
        parts = [part for part in parts if part[0]]
        if len(parts) == 1:
            return parts[0]
        merged: dict[int, int] = {}
        for ids, values in parts:
            _keep_first(merged, zip(ids, values, strict=True), self._repeated)
        ids = array("q", sorted(merged))
        return ids, array("q", map(merged.__getitem__, ids))


def _keep_first(
    known: dict[int, int], pairs: Iterable[tuple[int, int]], repeated: array[int]
) -> None:
    for key, value in pairs:
        if key in known:
            repeated.append(value)
        else:
            known[key] = value


class _Run:
    """Sorted pairs in a file, from which ranges of ids are taken in ascending order."""

    def __init__(self, file: int, start: int, count: int, samples: array[int]) -> None:
        self.samples = samples
        self._file, self._start, self._count = file, start, count
        self._taken = 0

    def take(self, pivot: int | None) -> tuple[array[int], array[int]]:
        """Pairs with ids below `pivot` that were not taken yet; with None, all that are left."""
        begin, end = self._taken, self._count
        if pivot is not None:
            end = max(begin, min(end, bisect_left(self.samples, pivot) * _SAMPLE))
        ids = self._words(begin, end)
        if pivot is not None:
            del ids[bisect_left(ids, pivot) :]
        self._taken += len(ids)
        return ids, self._words(self._count + begin, self._count + self._taken)

    def _words(self, begin: int, end: int) -> array[int]:
        words = array("q")
        words.frombytes(read_at(self._file, WORD * (end - begin), self._start + WORD * begin))
        return words
