"""Move answers of merged questions to the questions that they belonged to on the date.

A dump has such an answer under its later question. Between the passes, its records are copied to
the bucket of its former question, in a chunk after those of the history. The restoration leaves the
originals out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import orjson

from so2docs.counts import ChunkTally
from so2docs.extensions.as_of.records import LATER, MERGE, MOVED
from so2docs.extensions.as_of.sinks import read_noted_posts
from so2docs.options.table import Options
from so2docs.parse.keys import ANSWER, BUCKET_BITS, KEY, integers, walk
from so2docs.schema import TABLES
from so2docs.spill import MADE_CHUNK, SEQUENCE_BITS
from so2docs.store.blocks import Block, BlockReader, check_blocks_match
from so2docs.store.id_map import IdMap

if TYPE_CHECKING:
    from so2docs.processes.pool import Workers
    from so2docs.spill import Spill

_Task = tuple[list[tuple[str, Block]], frozenset[int]]
_Records = list[tuple[int | None, bytes | bytearray, bytes | bytearray]]


def move_answers(spill: Spill, options: Options, posts_map: str, workers: Workers) -> None:
    """Copy the records of moved answers to the buckets of their former questions, once."""
    file = TABLES["history"].file
    sequence = max(
        (TABLES[n].sequence for n in options.tables if TABLES[n].file == file), default=0
    )
    if not sequence:
        return
    chunk = (sequence << SEQUENCE_BITS) + MADE_CHUNK
    if chunk in spill.tallies(sequence):
        return
    # A set of answers that moderators merged, which are few.
    answers: defaultdict[int, set[int]] = defaultdict(set)
    with IdMap(posts_map) as posts:
        for post_ids in read_noted_posts(spill, MOVED):
            for post_id, question_id in posts.find(post_ids).items():
                if post_id != question_id:
                    answers[question_id >> BUCKET_BITS].add(post_id)
    if not answers:
        return
    tasks = ((spill.blocks(bucket), frozenset(answers[bucket])) for bucket in sorted(answers))
    spill.add_chunk(chunk, chain.from_iterable(workers.run(_copy_records, tasks)), ChunkTally())


def _copy_records(task: _Task) -> _Records:
    """Copy the records of answers in a worker; return keys and JSON by bucket of the question."""
    located, answers = task
    with BlockReader() as reader, check_blocks_match(located):
        origins = find_origins(_read_blocks(reader, located, answers))
        copies: defaultdict[int, tuple[bytearray, bytearray]]
        copies = defaultdict(lambda: (bytearray(), bytearray()))
        for keys, json in _read_blocks(reader, located, answers):
            for question_id, post_id, rank, kind, start, end in walk(keys):
                if post_id not in answers or is_merge(rank, kind) or post_id == question_id:
                    continue
                origin, row = origins[post_id], json[start:end]
                if kind == ANSWER:
                    row = orjson.dumps({**orjson.loads(row), "ParentId": origin})
                new_keys, new_json = copies[origin >> BUCKET_BITS]
                new_keys += KEY.pack(origin, post_id, rank, len(row) << 4 | kind)
                new_json += row
    return [(bucket, *copies[bucket]) for bucket in sorted(copies)]


def _read_blocks(
    reader: BlockReader, located: list[tuple[str, Block]], answers: frozenset[int]
) -> Iterator[tuple[bytes, bytes]]:
    """Read the blocks that have records of these posts."""
    for path, block in located:
        keys = reader.read_keys(path, block)
        if not answers.isdisjoint(integers(keys)[1::4]):
            yield reader.read(path, block)


def is_merge(rank: int, kind: int) -> bool:
    """Whether a record is the later merge by which an answer came to its question."""
    return kind == LATER and rank == MERGE


def find_origins(blocks: Iterator[tuple[bytes, bytes]]) -> dict[int, int]:
    """Find the question of each moved answer on the date: the origin of the first later merge."""
    merges: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
    for keys, json in blocks:
        for _, post_id, rank, kind, start, end in walk(keys):
            if is_merge(rank, kind):
                event = orjson.loads(json[start:end])
                merges[post_id].append((event["CreationDate"], event["Origin"]))
    return {post_id: min(events)[1] for post_id, events in merges.items()}
