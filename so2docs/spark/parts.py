"""What is shuffled of giant sites, in executors: joins by ranges of ids, then parts.

Rows of tables come with the questions of their posts, and leave for the part of the question. Users
come with the parts that name them. The blocks of a part come in the order of the dump; they become
a small spill on the disk of the executor, and the second pass of the plain command does the rest.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import attrgetter

from so2docs.options.conversion import Options
from so2docs.options.output_form import ending
from so2docs.output.paths import Names
from so2docs.passes.checkpoint import Checkpoint
from so2docs.passes.filing import Filing
from so2docs.passes.maps import map_users
from so2docs.passes.second_pass import SecondPass
from so2docs.passes.worker import peak_memory
from so2docs.passes.workers import Workers
from so2docs.posts.core import resolve
from so2docs.posts.keys import BUCKET_BITS, KEY
from so2docs.posts.posts import Posts, new_bucket
from so2docs.report import Report, TableCounts
from so2docs.schema import POSTS, TABLES
from so2docs.spark import folders, frames
from so2docs.spark.frames import Groups, Row, outcome
from so2docs.spark.ranges import block_rows, wanted_rows
from so2docs.spark.sites import Site
from so2docs.spill import SEQUENCE_BITS, Spill
from so2docs.store.blocks import Block, BlockReader, BlockWriter
from so2docs.store.tally import ChunkTally
from so2docs.store.users import UserRecords

_OF_USERS = TABLES["users"].sequence << SEQUENCE_BITS
_KEYLESS = "keyless"
"""Stands for strays that the first pass has counted by their reasons."""


def find_questions(found: Groups, *, users: bool) -> Iterator[Row]:
    """Rows of tables in blocks of their parts, and what comments want if users are nested, too."""
    for (site, _), of_range in found:
        questions: dict[int, int] = {}
        # What has one post keeps its order, which is all that the merge needs of it.
        for table, rows in groupby(of_range, lambda row: row.chunk >> SEQUENCE_BITS):
            if table == POSTS.sequence:
                for row in rows:
                    questions.update(zip(row.data[::2], row.data[1::2], strict=True))
                continue
            with folders.temporary_folder() as folder:
                path = os.path.join(folder, "blocks")
                blocks = _file(path, rows, questions)
                yield from block_rows(frames.BLOCK, site, table << SEQUENCE_BITS, path, blocks)
                if users and table == TABLES["comments"].sequence:
                    yield from wanted_rows(site, path, blocks)


def _file(path: str, rows: Iterable[Row], questions: Mapping[int, int]) -> list[Block]:
    """File rows of a table under the questions of their posts."""
    with BlockReader() as reader, BlockWriter(path) as writer:
        posts = Posts(buckets=defaultdict(new_bucket))
        filing = Filing(Options(), posts, writer)
        given = f"{path}.given"
        for block in stored(given, rows):
            keys, json = reader.read(given, block)
            at = 0
            for _, post_id, rank, size_and_kind in KEY.iter_unpack(keys):
                question_id = questions.get(post_id, post_id)
                bucket = posts.buckets[question_id >> BUCKET_BITS]
                bucket.keys.extend(KEY.pack(question_id, post_id, rank, size_and_kind))
                bucket.json.extend(json[at : (at := at + (size_and_kind >> 4))])
            filing.flush()
        filing.finish()
    return writer.blocks


def stored(path: str, rows: Iterable[Row]) -> list[Block]:
    """Put the blocks of some rows into a file."""
    blocks, at = list[Block](), 0
    with open(path, "wb") as file:
        for row in rows:
            block, data = row.data
            blocks.append(block._replace(offset=at))
            at += file.write(data)
    return blocks


def find_users(found: Groups) -> Iterator[Row]:
    """The users of a range that each part names."""
    for (site, _), of_range in found:
        users: dict[int, bytes] = {}
        for (kind, part), rows in groupby(of_range, attrgetter("kind", "chunk")):
            if kind == frames.USERS:
                for row in rows:
                    users.update(row.data)
                continue
            ids = sorted(set[int]().union(*(row.data for row in rows)) & users.keys())
            for place, some in groupby(ids, lambda user_id: user_id >> BUCKET_BITS):
                yield Row(frames.USERS, site, part, 0, place, {one: users[one] for one in some})


@dataclass(frozen=True, slots=True)
class Giant:
    """What a task has to know of a site.

    Attributes:
        site: The site.
        options: How to convert it.
        first_question_of: For post ids under several questions, the first in the dump.
        parts: Its parts, in ascending order.
    """

    site: Site
    options: Options
    first_question_of: dict[int, int] = field(default_factory=dict)
    parts: list[int] = field(default_factory=list)


def write(found: Groups, giants: Mapping[int, Giant]) -> Iterator[Row]:
    """Write the part file, and the side file, of each part.

    Yields:
        Number of the site, and a report with the names of these files, or an error.
    """
    for number, part, spill in _spills(found, giants):
        # Rows that belong to no question come before all parts.
        order = -1 if part is None else giants[number].parts.index(part)
        result = outcome(partial(_write, giants[number], order), spill)
        yield Row(frames.RESULT, number, part, 0, 0, (number, result))


def documents(
    found: Groups, giants: Mapping[int, Giant]
) -> Iterator[tuple[Giant, Iterator[tuple[int, bytes]]]]:
    """The documents of each range of question ids, with their site."""
    for number, _, spill in _spills(found, giants):
        second, report = second_pass(spill, giants[number], Names("-", None))
        for nested in second.documents(report):
            yield giants[number], nested


def _spills(found: Groups, giants: Mapping[int, Giant]) -> Iterator[tuple[int, int | None, Spill]]:
    """The spill of each part, with the numbers of site and part, until the next is asked for."""
    for (site, part), of_part in found:
        with folders.temporary_folder() as folder, closing(Spill(folder)) as spill:
            for (kind, chunk), rows in groupby(of_part, attrgetter("kind", "chunk")):
                number = _OF_USERS if kind == frames.USERS else chunk
                path = spill.new_file(number)
                blocks = (_stored_users if kind == frames.USERS else stored)(path, rows)
                spill.commit(number, path, blocks, ChunkTally())
            spill.merge_only(TABLES[name].sequence for name in giants[site].options.nest)
            spill.index()
            yield site, part, spill


def _stored_users(path: str, rows: Iterable[Row]) -> list[Block]:
    with BlockWriter(path) as writer:
        users = UserRecords(Posts(), writer)
        for row in rows:
            keys = (KEY.pack(of, 0, 0, len(json) << 4) for of, json in row.data.items())
            users.add_compiled(b"".join(keys), b"".join(row.data.values()))
        users.finish()
    return writer.blocks


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


def _write(giant: Giant, order: int, spill: Spill) -> tuple[Report, set[str]]:
    form = giant.options.form
    name = f"{folders.PART}{max(order, 0):05}{ending(form.format, form.compression)}"
    with folders.draft(giant.site.folder) as draft:
        names = Names(os.path.join(draft, name), None, form)
        second, report = second_pass(spill, giant, names)
        if spill.blocks(None):
            report.strays = {_KEYLESS: 1}
        with Workers(1) as workers:
            second.run(workers, report).publish(names)
        made = folders.publish(giant.site.folder, draft, report, order + 1)
    report.strays.pop(_KEYLESS, None)
    report.peak_memory_bytes = peak_memory()
    return report, made
