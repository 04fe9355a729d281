"""Documents counted by the keys of their posts alone, in an executor: no JSON is read for it.

The same merge decides, so that nobody counts differently from what is written.
"""

from __future__ import annotations

from collections import deque

from so2docs import merge
from so2docs.errors import AccountingError
from so2docs.merge import Tally
from so2docs.nest import Nest
from so2docs.passes.bucket import BucketTask
from so2docs.posts.posts import ANSWER, KEY, QUESTION
from so2docs.spark.plan import Site
from so2docs.store.blocks import BlockReader


def nested_keys(task: BucketTask, limit: int | None = None) -> Tally:
    """What would become of the posts of a range of question ids."""
    with BlockReader() as reader:
        blocks = ((reader.read_keys(path, block), b"") for path, block in task.blocks)
        posts = merge.sorted_posts(blocks, task.ids)
    nest = Nest(task.options.nest) if task.options.nest else None
    nested = merge.Nesting(posts, owners=task.owners, limit=limit, nest=nest)
    deque(nested, maxlen=0)
    return nested.tally


def check_posts(tally: Tally, task: BucketTask, site: Site) -> None:
    """Raise `AccountingError` unless every post of a range of question ids went somewhere."""
    placed = tally.questions + tally.answers + sum(tally.strays.values()) + tally.filtered
    posts = 0
    with BlockReader() as reader:
        for path, block in task.blocks:
            for question_id, _, _, kind in KEY.iter_unpack(reader.read_keys(path, block)):
                posts += question_id in task.ids and kind & 15 in (QUESTION, ANSWER)
    if placed != posts:
        raise AccountingError(
            f"{site.dump.path}: {posts:,} posts came out of the shuffle but {placed:,} were "
            "placed; this is a defect of so2docs, please report it"
        )
