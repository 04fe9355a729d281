"""Who belongs to whom, in blocks for the shuffle: answers to questions, users to posts.

A block has the form of all others (`posts.KEY`), so that it is written, shuffled and read by the
same code. What its keys say:

- under the id of an answer: its question;
- under the id of a user: a part whose posts or comments name that user, without JSON;
- under the id of a user, with JSON: the user, and where in the chunk.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from so2docs.passes import chunk as chunks
from so2docs.posts.posts import BUCKET_BITS, KEY, Bucket, Posts, new_bucket
from so2docs.spark.plan import Layout, Site
from so2docs.spark.records import Placed, sorted_out
from so2docs.store.blocks import Block, BlockWriter

# A quote inside a JSON string has a backslash before it, so that these are keys.
_USER_ID = re.compile(rb'"(?:Owner|LastEditor)?UserId":(-?\d+)')


class References:
    """Gathers references; `records` writes them.

    Args:
        site: The site that they are of.
        layout: Where they go.
    """

    def __init__(self, site: Site, layout: Layout) -> None:
        self._site = site
        self._layout = layout
        self._answers: defaultdict[int, Bucket] = defaultdict(new_bucket)
        self._users: defaultdict[int, Bucket] = defaultdict(new_bucket)
        self._named: defaultdict[int, set[bytes]] = defaultdict(set)

    def add_answers(self, keys: bytes) -> None:
        """Add those of some posts that have a question of another id."""
        if self._site.nests_rows:
            for question_id, post_id, _, _ in KEY.iter_unpack(keys):
                if question_id != post_id:
                    key = KEY.pack(post_id, question_id, 0, 0)
                    self._answers[post_id >> BUCKET_BITS].keys.extend(key)

    def add_users(self, json: bytes | memoryview, part: int) -> None:
        """Add the users that posts or comments of a part name."""
        if self._site.nests_users:
            self._named[part].update(_USER_ID.findall(json))

    def add_user(self, user_id: int, place: int, line: bytes) -> None:
        """Add a user."""
        bucket = self._users[user_id >> BUCKET_BITS]
        bucket.keys.extend(KEY.pack(user_id, place, 0, len(line) << 4))
        bucket.json.extend(line)

    def records(self, chunk: int, path: str) -> Iterator[Placed]:
        """All that was added.

        Args:
            chunk: Number of the chunk that it is of.
            path: A file for it.
        """
        site, layout = self._site.number, self._layout
        for part, named in sorted(self._named.items()):
            for user_id in sorted(map(int, named)):
                self._users[user_id >> BUCKET_BITS].keys.extend(KEY.pack(user_id, part, 0, 0))

        def of_post(block: Block) -> int:
            return layout.of_post(site, block.bucket)

        def of_user(block: Block) -> int:
            assert block.bucket is not None
            return layout.of_user(site, block.bucket)

        for buckets, partition_of in ((self._answers, of_post), (self._users, of_user)):
            with BlockWriter(path) as writer:
                chunks.flush(Posts(buckets=dict(buckets)), writer, 0)
            yield from sorted_out(path, writer.blocks, site, chunk, partition_of)
