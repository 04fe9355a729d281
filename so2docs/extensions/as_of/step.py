"""The step before the merge that restores the posts of a bucket as they were on a date."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import orjson

from so2docs.counts import ChunkTally, RowCounts
from so2docs.extensions.as_of.existence import find_moments
from so2docs.extensions.as_of.first_formula import choose_first
from so2docs.extensions.as_of.moves import move_answers
from so2docs.extensions.as_of.records import LINKED
from so2docs.extensions.as_of.restoration import GetTitle, Restoration, find_titles
from so2docs.extensions.as_of.sinks import choose_sink, read_noted_posts
from so2docs.merge import BlockData
from so2docs.options.table import Options
from so2docs.parse.keys import BUCKET_BITS
from so2docs.pipeline.bucket import select_part
from so2docs.pipeline.tasks import BucketTask, Step
from so2docs.plugin import flag, log, require_packages
from so2docs.schema import TABLES
from so2docs.store.blocks import Block, BlockReader, check_blocks_match
from so2docs.store.id_map import IdMap, IdMapWriter
from so2docs.store.objects import Objects, ObjectWriter

if TYPE_CHECKING:
    from so2docs.processes.pool import Workers
    from so2docs.spill import Spill


@dataclass(frozen=True, slots=True)
class Prepared:
    """What restored bodies need to know of the whole site.

    Attributes:
        posts_map: Path of the map from posts to their questions; empty without other tables.
        titles: Path of the titles by question; empty without titles.
        first_formula: Date and delimiter of the first formula that a body marks; else empty texts.
    """

    posts_map: str
    titles: str
    first_formula: tuple[str, str]


_TABLES = {
    "history": "posts edited after the date become strays",
    "votes": "Score and AcceptedAnswerId are left out",
}


def check(options: Options, site: str) -> None:
    """Check that bodies can be rendered; warn if the host of the site is unknown."""
    has_history = TABLES["history"].file in {TABLES[name].file for name in options.tables}
    if options.restores_markdown or not has_history:
        return
    require_packages(f"HTML of bodies restored by {flag('as_of')}", "markdown-it-py", extra="as-of")
    if options.site is None:
        log.warning(
            "the site of %r is unknown, so in restored bodies, addresses of questions stay "
            "addresses, and formulas are Markdown; put the dump into a folder named after the site",
            site,
        )


def prepare(
    spill: Spill,
    options: Options,
    tallies: Collection[ChunkTally],
    posts_map: str,
    workers: Workers,
) -> Prepared:
    """Move merged answers to their former questions; find the titles that restored bodies name."""
    titles = ""
    if posts_map:
        move_answers(spill, options, posts_map, workers)
        titles = _map_titles(spill, options, posts_map, workers)
    return Prepared(posts_map, titles, choose_first(tally.notes for tally in tallies))


def _map_titles(spill: Spill, options: Options, posts_map: str, workers: Workers) -> str:
    """Map the questions whose addresses, or those of their answers, are in texts to their titles.

    Ids are sorted on disk, first by post, then by question, so that each map is read in order.
    """
    if options.site is None:
        return ""
    linked, wanted = str(spill.folder / "linked.map"), str(spill.folder / "wanted.map")
    with IdMapWriter(linked) as posts:
        for post_ids in read_noted_posts(spill, LINKED):
            posts.add(post_ids, post_ids)
        posts.finish()
    with (
        IdMap(linked) as posts,
        IdMap(posts_map) as known,
        IdMapWriter(wanted) as questions,
    ):
        for post_ids, _ in posts.items():
            question_ids = list(known.find(post_ids).values())
            questions.add(question_ids, question_ids)
        questions.finish()
    path = str(spill.folder / "titles.map")
    with IdMap(wanted) as questions, ObjectWriter(path) as writer:
        date, _ = find_moments(options)
        ids = (question_id for part, _ in questions.items() for question_id in part)
        tasks = (
            (spill.blocks(bucket), frozenset(of_bucket), date)
            for bucket, of_bucket in groupby(ids, lambda question_id: question_id >> BUCKET_BITS)
        )
        for titles in workers.run(_find_titles, tasks):
            writer.add(titles)
        writer.finish()
    return path


_TitleTask = tuple[list[tuple[str, Block]], frozenset[int], str]
"""The blocks of a bucket, wanted questions, and the date."""


def _find_titles(task: _TitleTask) -> list[tuple[int, bytes]]:
    """Find the titles of questions in a worker; return them as JSON, in ascending order of ids."""
    located, question_ids, date = task
    with BlockReader() as reader, check_blocks_match(located):
        blocks = (reader.read(path, block) for path, block in located)
        titles = find_titles(blocks, question_ids, date)
    return [(question_id, orjson.dumps(title)) for question_id, title in sorted(titles.items())]


@contextmanager
def restore(
    task: BucketTask, blocks: Iterable[BlockData], counts: RowCounts, strays: list[bytes]
) -> Iterator[Iterable[BlockData]]:
    """Yield the records of a task with its posts as they were on the date."""
    prepared: Prepared = task.prepared
    with ExitStack() as stack:
        get_title: GetTitle = dict[int, bytes]().get  # An unknown site has no titles.
        if prepared.titles:
            posts = stack.enter_context(IdMap(prepared.posts_map))
            titles = stack.enter_context(Objects(prepared.titles))
            get_title = partial(_get_title, posts, titles)
        if task.options.core == "compiled":
            blocks = select_part(blocks, task.ids)
        first = prepared.first_formula
        restoration = Restoration(task.options, counts, strays, get_title, first)
        yield restoration.restore(blocks, task.ids)


def _get_title(posts: IdMap, titles: Objects, post_id: int) -> bytes | None:
    question_id = posts.get(post_id)
    return None if question_id is None else titles.get(question_id)


AS_OF = Step(_TABLES, ("comments",), check, choose_sink, prepare, restore)
