"""Parts of a giant site, in executors: the blocks of a part -> a part file, or documents.

The blocks of a part come one after the other, in the order of the dump. They become a small spill
on the disk of the executor, and the second pass of the plain command does the rest.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any

from so2docs.errors import So2docsError
from so2docs.options.conversion import Options
from so2docs.options.output_form import ending
from so2docs.output.paths import Names
from so2docs.passes.checkpoint import Checkpoint
from so2docs.passes.maps import map_users
from so2docs.passes.second_pass import SecondPass
from so2docs.passes.worker import peak_memory
from so2docs.passes.workers import Workers
from so2docs.posts.core import resolve
from so2docs.posts.posts import Posts
from so2docs.report import Report, TableCounts
from so2docs.schema import TABLES
from so2docs.spark import folders
from so2docs.spark.frames import OF_USERS, rows_of
from so2docs.spark.jobs import outcome
from so2docs.spark.plan import PlannedSite
from so2docs.spill import Spill
from so2docs.store.blocks import Block, BlockWriter
from so2docs.store.tally import ChunkTally
from so2docs.store.users import UserRecords

_KEYLESS = "keyless"
"""Stands for strays that the first pass has counted by their reasons."""


@dataclass(frozen=True, slots=True)
class Giant:
    """What a task has to know of a site.

    Attributes:
        site: The site.
        options: How to convert it.
        first_question_of: For post ids under several questions, the first in the dump.
        numbers: The number of each part's file.
    """

    site: PlannedSite
    options: Options
    first_question_of: dict[int, int]
    numbers: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the posts of a part.

    Attributes:
        site: Number of the site.
        report: What became of them; nothing if there was an error.
        files: The files that were written, with their bytes, by name.
        error: Why nothing was.
    """

    site: int
    report: Report | None = None
    files: dict[str, int] = field(default_factory=dict)
    error: So2docsError | None = None


def write(batches: Iterable[Any], giants: Mapping[int, Giant]) -> Iterator[Written]:
    """Write the part file, and the side file, of each part of a partition."""
    for number, part, spill in _spills(batches, giants):
        giant = giants[number]
        # Rows that belong to no question come before all parts.
        order = -1 if part is None else giant.numbers[part]
        result = outcome(lambda found: _write(found, giant, order), spill)  # noqa: B023
        if isinstance(result, So2docsError):
            yield Written(number, error=result)
        else:
            yield Written(number, *result)


def documents(
    batches: Iterable[Any], giants: Mapping[int, Giant]
) -> Iterator[tuple[Giant, Iterator[tuple[int, bytes]]]]:
    """The documents of each range of question ids of a partition, with their site."""
    for number, _, spill in _spills(batches, giants):
        second, report = second_pass(spill, giants[number], Names("-", None))
        for nested in second.documents(report):
            yield giants[number], nested


def _spills(
    batches: Iterable[Any], giants: Mapping[int, Giant]
) -> Iterator[tuple[int, int | None, Spill]]:
    """The spill of each part, with the numbers of site and part, until the next is asked for."""
    for (site, part), of_part in groupby(rows_of(batches), itemgetter("site", "part")):
        with folders.temporary_folder() as folder, _closed(Spill(folder)) as spill:
            for chunk, rows in groupby(of_part, itemgetter("chunk")):
                add = _add_users if chunk == OF_USERS and part is not None else _add
                add(spill, chunk, rows)
            spill.merge_only(TABLES[name].sequence for name in giants[site].options.nest)
            spill.index()
            yield site, part, spill


@contextmanager
def _closed(spill: Spill) -> Iterator[Spill]:
    try:
        yield spill
    finally:
        spill.close()


def _add(spill: Spill, chunk: int, rows: Iterable[dict[str, Any]]) -> None:
    path, blocks, at = spill.new_file(chunk), list[Block](), 0
    with open(path, "wb") as file:
        for row in rows:
            blocks.append(Block(**{name: row[name] for name in Block._fields})._replace(offset=at))
            at += file.write(row["data"])
    spill.commit(chunk, path, blocks, ChunkTally())


def _add_users(spill: Spill, chunk: int, rows: Iterable[dict[str, Any]]) -> None:
    path = spill.new_file(chunk)
    with BlockWriter(path) as writer:
        users = UserRecords(Posts(), writer)
        for row in rows:
            data = bytes(row["data"])
            users.add_compiled(data[: row["keys_size"]], data[row["keys_size"] :])
        users.finish()
    spill.commit(chunk, path, writer.blocks, ChunkTally())


class _PartPass(SecondPass):
    """The second pass over a part: that every row went somewhere is checked of the whole site."""

    def complete(self, state: Checkpoint, report: Report) -> None:
        """Complete the report."""
        report.fabricated = self.fabricated()
        state.add_to(report)


def second_pass(spill: Spill, giant: Giant, names: Names) -> tuple[SecondPass, Report]:
    """The second pass over a part, by the core that this executor has, and its report."""
    options = replace(giant.options, core=resolve(giant.options.core))
    nest = options.nest
    report = Report(giant.site.path, names.output, tables={name: TableCounts() for name in nest})
    users = map_users(spill, chunks=1) if "users" in nest else None
    return _PartPass(spill, options, names, giant.first_question_of, users=users), report


def _write(spill: Spill, giant: Giant, order: int) -> tuple[Report, dict[str, int]]:
    form = giant.options.form
    name = f"{folders.PART}{max(order, 0):05}{ending(form.format, form.compression)}"
    with folders.draft(giant.site.folder) as draft:
        names = Names(os.path.join(draft, name), None, form)
        second, report = second_pass(spill, giant, names)
        if spill.blocks(None):
            report.strays = {_KEYLESS: 1}
        with Workers(1) as workers:
            second.run(workers, report).publish(names)
        made = {name: names.output} if report.questions else {}
        if report.strays_path is not None:
            made[f"{folders.STRAYS}-{order + 1:05}"] = names.strays
        report.strays.pop(_KEYLESS, None)
        report.peak_memory_bytes = peak_memory()
        sizes = {name: os.path.getsize(path) for name, path in made.items()}
        folders.publish(giant.site.folder, made)
    return report, sizes
