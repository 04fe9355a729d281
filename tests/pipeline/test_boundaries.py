"""Tasks of the second pass fit in memory wherever ids cluster."""

from __future__ import annotations

import random
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.dumps import answer, left_by, question, row, write_dump

import so2docs
from so2docs.options.table import Options
from so2docs.parse import core as cores
from so2docs.parse.keys import BUCKET_BITS
from so2docs.pipeline import bucket, second_pass
from so2docs.pipeline.bucket import BucketTask
from so2docs.store.blocks import Block

LIMIT = 50_000


@given(
    st.dictionaries(st.integers(0, 1023), st.integers(0, 40), max_size=60),
    st.integers(0, 100),
)
def test_halves_fit_or_hold_one_id(sizes: dict[int, int], limit: int) -> None:
    ordered = sorted(sizes.items())
    ends = [0, *accumulate(size for _, size in ordered)]
    cuts = list(second_pass._halves(range(1024), sorted(sizes), ends, limit))
    parts = [range(*part) for part in pairwise((0, *cuts, 1024))]
    for part in parts:
        part_sizes = [size for number, size in ordered if number in part]
        assert part_sizes or not sizes
        assert sum(part_sizes) <= limit or len(part_sizes) == 1
    # There are no unnecessary cuts: two neighbours would not fit together, or they are not halves
    # of one range.
    for before, after in pairwise(parts):
        both = [size for number, size in ordered if before.start <= number < after.stop]
        assert sum(both) > limit or len(before) != len(after) or before.start % (2 * len(before))


def clustered_rows() -> list[bytes]:
    """Make rows of a bucket, mostly under neighbouring ids; answers and strays are anywhere."""
    rng = random.Random(5)
    rows = [question(n, Body=rng.randbytes(6_000).hex()) for n in range(100, 130)]
    rows += [question(2_000, Body="x"), question(9_000), question(40_000, Body="y" * 60_000)]
    rows += [question(3_000, Body="z" * 70_000)]
    for post_id in range(20_000, 20_300):
        rows.append(answer(post_id, rng.randrange(98, 132), Body=rng.randbytes(1_500).hex()))
    rows.append(answer(20_005, 110))
    rng.shuffle(rows)
    return rows


@pytest.fixture(scope="module")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("clustered")
    write_dump(folder / "Posts.xml", *clustered_rows())
    comments = [row(Id=n, PostId=n % 40 + 98, Text="c" * 300) for n in range(400)]
    write_dump(folder / "Comments.xml", *comments)
    return folder


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> list[BucketTask]:
    """The tasks of conversions with small parts, in one process."""
    seen: list[BucketTask] = []
    usual = bucket.load_bucket

    def noticing(task: BucketTask, run: Any) -> Any:
        seen.append(task)
        return usual(task, run)

    monkeypatch.setattr(second_pass, "PART_BYTES", LIMIT)
    monkeypatch.setattr(second_pass, "PART_BYTES_NESTED", LIMIT)
    monkeypatch.setattr(bucket, "load_bucket", noticing)
    return seen


@pytest.mark.parametrize(("nest", "core"), [((), "python"), (("comments",), cores.built())])
def test_clustered_ids_give_no_large_tasks(
    nest: tuple[str, ...], core: Any, clustered: Path, tasks: list[BucketTask], tmp_path: Path
) -> None:
    output = tmp_path / "q.jsonl"
    so2docs.convert(
        clustered, output, jobs=1, core=core, nest=nest, chunk_bytes=100_000, spill_budget=0
    )
    lines = output.read_bytes().splitlines(keepends=True)
    ids = [document["Id"] for document in so2docs.read(output)]
    documents = dict(zip(ids, map(len, lines), strict=True))
    assert len(documents) == 34
    for task in tasks:
        sizes = [documents[number] for number in documents if number in task.ids]
        assert len(sizes) <= 1 or sum(sizes) < 1.1 * LIMIT
        assert len(sizes) == 1 or task.size <= LIMIT
    for before, after in pairwise(tasks):
        # All question ids of a bucket are in a task.
        is_first = after.ids.start % (1 << BUCKET_BITS) == 0
        assert is_first or before.ids.stop == after.ids.start
    # A task has the blocks of a bucket with a key in its range.
    blocks = {block for task in tasks for block in task.blocks}
    assert max(len(task.blocks) for task in tasks) < len(blocks)


def test_clustered_ids_give_the_same_bytes(
    clustered: Path, tmp_path: Path, tasks: list[BucketTask]
) -> None:
    ways: list[dict[str, Any]] = [
        {"jobs": 1, "chunk_bytes": 10**7, "core": "python"},
        {"jobs": 2, "chunk_bytes": 30_000, "spill_budget": 0},
        {"jobs": 1, "chunk_bytes": 100_000},
    ]
    contents = []
    for number, options in enumerate(ways):
        output = tmp_path / str(number) / "q.jsonl.gz"
        output.parent.mkdir()
        so2docs.convert(clustered, output, nest="comments", split="3files", **options)
        contents.append(left_by(output))
    assert len(tasks) > 10
    assert contents[0] == contents[1] == contents[2]


def test_groups_of_tasks_without_json_end_too() -> None:
    """On a past date, later posts leave blocks without JSON in very many buckets."""
    block = Block(0, 0, 32, 0, 0, 0, 0, 0)
    tasks = [BucketTask(range(n, n + 1), 0, [("", block)] * 100, Options()) for n in range(50)]
    groups = list(second_pass._together(iter(tasks), 1 << 20, second_pass._BYTES_OF_BLOCK))
    assert [task for group in groups for task in group] == tasks
    assert max(map(len, groups)) <= 6
