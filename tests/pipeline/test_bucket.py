"""A range of question ids merged from its blocks."""

from pathlib import Path
from typing import Any

import pytest
from isal.isal_zlib import crc32
from support.dumps import answer, dump_of, question

import so2docs
from so2docs import merge, zstd
from so2docs.errors import SpillError
from so2docs.options.table import Options
from so2docs.parse import core as cores
from so2docs.parse.keys import ANSWER, BUCKET_BITS, KEY, QUESTION
from so2docs.pipeline import bucket
from so2docs.pipeline.bucket import (
    BucketResult,
    BucketTask,
    JoinedRecords,
    merge_bucket,
    merge_buckets,
)
from so2docs.store.blocks import Block, BlockReader, BlockWriter

JSON = b'{"Id":1}'
ONE_KEY = KEY.pack(1, 1, 0, len(JSON) << 4 | QUESTION)
BLOCKS = {
    "less-json": (ONE_KEY, JSON[1:]),
    "more-json": (ONE_KEY, JSON + b"}"),
    "less-than-nothing": (KEY.pack(1, 1, 0, -len(JSON) << 4 | QUESTION), JSON),
    "half-a-key": (ONE_KEY[:-8], JSON),
}


def task_of(keys: bytes, json: bytes, core: Any, folder: Path) -> BucketTask:
    path = folder / "q.spill" / "000000-1.blocks"
    path.parent.mkdir()
    with BlockWriter(str(path), room=1000) as writer:
        writer.write(0, bytearray(keys), bytearray(json))
    blocks = [(str(path), block) for block in writer.blocks]
    return BucketTask(range(1 << BUCKET_BITS), 0, blocks, Options(core=core))


@pytest.mark.parametrize("core", sorted({"python", cores.built()}))
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_damaged_block_with_a_valid_checksum(kind: str, core: Any, tmp_path: Path) -> None:
    """The changed block has the same checksum, which has a probability of one in four billion."""
    task = task_of(*BLOCKS[kind], core, tmp_path)
    with pytest.raises(SpillError, match=r"q\.spill: .* damaged \(.*restart=True"):
        merge_bucket(task, BucketResult())


def test_a_result_has_only_the_first_of_many_strays(tmp_path: Path) -> None:
    keys = b"".join(KEY.pack(1, number, 0, len(JSON) << 4 | ANSWER) for number in (2, 3, 4))
    result = merge_buckets(([task_of(keys, JSON * 3, "auto", tmp_path)], None))
    assert (sum(result.counts.strays.values()), len(result.first_stray)) == (3, 1)


@pytest.mark.parametrize("half", [0, 1])
def test_damaged_compression_with_a_valid_checksum(half: int, tmp_path: Path) -> None:
    path = str(tmp_path / "000000-1.blocks")
    kept = [zstd.compress(data) for data in (KEY.pack(1, 1, 0, QUESTION), JSON)]
    kept[half] = b"x" + kept[half][1:]
    Path(path).write_bytes(b"".join(kept))
    keys, json = kept
    block = Block(0, 0, len(keys), len(json), len(JSON), crc32(json), crc32(keys), 1)
    with (
        BlockReader() as reader,
        pytest.raises(SpillError, match=r"damaged \(at byte 0\); run the "),
    ):
        reader.read(path, block)


@pytest.mark.skipif(cores.built() == "python", reason="no compiled core")
@pytest.mark.parametrize("options", [{"nest": "all"}, {"split": "year"}, {"answers_by": "votes"}])
def test_the_compiled_core_leaves_only_odd_questions_to_the_reference(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fallbacks = []
    by_reference = JoinedRecords._by_reference

    def count(records: JoinedRecords, nesting: merge.DocumentBuilder, numbers: range) -> Any:
        fallbacks.append(numbers)
        return by_reference(records, nesting, numbers)

    monkeypatch.setattr(bucket, "gather", None)
    monkeypatch.setattr(JoinedRecords, "_by_reference", count)
    repeated = [question(20_000), answer(20_001, 20_000), answer(20_001, 20_000)]
    rows = [
        question(1, CreationDate="2020-01-01"),
        answer(2, 1, OwnerUserId=1),
        question(3),
        answer(4, 9),
    ]
    (tmp_path / "Posts.xml").write_bytes(dump_of(*rows, *repeated))
    for name in ("Comments", "PostLinks", "Votes", "Users"):
        row = b'<row Id="1" PostId="3" VoteTypeId="2" UserId="1" />'
        (tmp_path / f"{name}.xml").write_bytes(b"<t>%b</t>" % row)
    report = so2docs.convert(tmp_path, tmp_path / "q.jsonl", jobs=1, core="compiled", **options)
    assert (report.questions, sum(report.strays.values())) == (3, 2)
    # Answers without a question, and a question with the same answer twice.
    assert len(fallbacks) == 2
