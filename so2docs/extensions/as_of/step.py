"""The step before the merge that restores the posts of a bucket as they were on a date."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import orjson
from isal.isal_zlib import crc32

from so2docs import merge
from so2docs.counts import ChunkTally, RowCounts
from so2docs.extensions.as_of.existence import Existence
from so2docs.extensions.as_of.restoration import Restoration, find_titles
from so2docs.extensions.as_of.sinks import choose_sink
from so2docs.options.table import Options
from so2docs.parse.keys import BUCKET_BITS
from so2docs.pipeline.bucket import select_part
from so2docs.pipeline.tasks import BucketTask, Step
from so2docs.store.blocks import Block, BlockReader, check_blocks_match
from so2docs.store.id_map import IdMap, IdMapWriter
from so2docs.store.users import Users, UserTable

if TYPE_CHECKING:
    from so2docs.processes.pool import Workers
    from so2docs.spill import Spill


@dataclass(frozen=True, slots=True)
class Prepared:
    """What restored bodies need to know of the whole site.

    Attributes:
        titles: Table of the titles, which has the form of a table of users; None if there are none.
        formula_sign: Delimiter of the first formula that a body marks; empty if none does.
    """

    titles: UserTable | None
    formula_sign: str


def prepare(
    spill: Spill,
    options: Options,
    tallies: Collection[ChunkTally],
    posts_map: str,
    workers: Workers,
) -> Prepared:
    """Find the titles of the posts that restored bodies name, and how bodies mark formulas."""
    titles = _map_titles(spill, options, tallies, posts_map, workers)
    return Prepared(titles, next((t.formula_sign for t in tallies if t.formula_sign), ""))


def _map_titles(
    spill: Spill,
    options: Options,
    tallies: Iterable[ChunkTally],
    posts_map: str,
    workers: Workers,
) -> UserTable | None:
    """Map posts whose addresses occur in restored bodies to the titles of their questions.

    Returns:
        Table of the titles, which has the form of a table of users; None if there are none.
    """
    named = {post_id for tally in tallies for post_id in tally.named}
    if not named or options.host is None:
        return None
    wanted: defaultdict[int, defaultdict[int, list[int]]]
    wanted = defaultdict(partial(defaultdict, list))
    with IdMap(posts_map) as posts:
        for post_id, question_id in posts.find(named).items():
            wanted[question_id >> BUCKET_BITS][question_id].append(post_id)
    table = UserTable(str(spill.folder / "titles.map"), {0: str(spill.folder / "titles.lines.map")})
    date, _ = Existence.of_dates(options)
    tasks = ((spill.blocks(number), dict(wanted[number]), date) for number in sorted(wanted))
    offset = 0
    with IdMapWriter(table.places) as places, open(table.files[0], "wb") as lines:
        for titles in workers.run(_find_titles_of, tasks):
            for post_id, title in titles:
                places.add([post_id], [offset])
                offset += lines.write(b"%08x%b\n" % (crc32(title), title))
        places.finish()
    return table


def _find_titles_of(
    task: tuple[list[tuple[str, Block]], dict[int, list[int]], Existence],
) -> list[tuple[int, bytes]]:
    """Find titles in a worker.

    Args:
        task: The blocks of a bucket, the ids of the posts whose title is needed, by question, and
            the date.

    Returns:
        Ids of the posts, each with the title of its question as JSON.
    """
    located, post_ids, date = task
    with BlockReader() as reader, check_blocks_match(located):
        blocks = (reader.read(path, block) for path, block in located)
        titles = find_titles(blocks, post_ids.keys(), date)
    return [
        (post_id, orjson.dumps(title))
        for question_id, title in sorted(titles.items())
        for post_id in post_ids[question_id]
    ]


@contextmanager
def restore(
    task: BucketTask, blocks: Iterable[merge.BlockData], counts: RowCounts, strays: list[bytes]
) -> Iterator[Iterable[merge.BlockData]]:
    """Yield the records of a task with its posts as they were on the date."""
    prepared: Prepared = task.prepared["as_of"]
    titles = prepared.titles
    with ExitStack() as stack:
        get_title = _no_title if titles is None else stack.enter_context(Users(titles)).get
        if task.options.core == "compiled":
            blocks = select_part(blocks, task.ids)
        restoration = Restoration(task.options, counts, get_title, prepared.formula_sign)
        restoration.strays = strays
        yield restoration.restore(blocks, task.ids)


def _no_title(post_id: int) -> None:
    """Stand in for the titles if texts name no questions."""


AS_OF = Step(choose_sink, prepare, restore)
