"""The compiled core sorts and joins like the reference, and stays within blocks."""

from array import array
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import product, starmap
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory import assert_nothing_is_kept

from so2docs import merge
from so2docs.nest import Nest
from so2docs.parse import core
from so2docs.parse.core import compiled
from so2docs.parse.keys import (
    ANSWER,
    BUCKET_BITS,
    KEY,
    QUESTION,
    REJECTED_ANSWER,
    REJECTED_QUESTION,
)
from so2docs.parse.table_rows import count_votes, unpack_votes
from so2docs.pipeline import bucket
from so2docs.schema import COMMENT, LINK, TABLES, VOTE

pytestmark = pytest.mark.skipif(core.built() == "python", reason="no compiled core")

WHOLE = range(1 << BUCKET_BITS)
IDS = st.integers(0, 6)
KINDS = (QUESTION, ANSWER, ANSWER, REJECTED_QUESTION, REJECTED_ANSWER)
QUESTIONS = (QUESTION, REJECTED_QUESTION)
join = partial(bucket.join_records, nesting=merge.DocumentBuilder(merge.gather([], WHOLE)))
NAMES = tuple(name for name, table in TABLES.items() if table.is_in_all)

VOTE_TYPES = st.sampled_from([2, 2, 2, 3, 3, 34, 63, 64, -1])

Record = tuple[int, int, int, int, bytes]
"""Question id, post id, rank, kind, JSON."""

UserId = st.sampled_from(["1", "2", "-1", "4", "999999999999999999", "1234567890123456789"])
TEXT = st.sampled_from(["", '"Text":"a"', r'"Text":"\"UserId\":2,\"OwnerUserId\":2,UserId\":1"'])
USER = st.one_of(
    st.just(""),
    st.builds('"{}UserId":{}'.format, st.sampled_from(["", "Owner", "LastEditor", "A"]), UserId),
    st.sampled_from(['"UserId":"x"', '"OwnerUserId":"2"', '"OwnerUserId":1,"LastEditorUserId":2']),
)
JSON = st.lists(TEXT | USER, max_size=3).map(
    lambda parts: f"{{{','.join(filter(None, dict.fromkeys(parts)))}}}"
)


def as_record(question_id: int, post_id: int, rank: int, kind: int, json: str) -> Record:
    """Make the record of a post; a post rejected by a filter has no JSON."""
    is_question = kind in QUESTIONS
    text = "" if kind in (REJECTED_QUESTION, REJECTED_ANSWER) else json
    return (post_id if is_question else question_id, post_id, rank, kind, text.encode())


POST = st.builds(as_record, IDS, IDS, st.integers(-2, 6), st.sampled_from(KINDS), JSON)


def rows_of(question_ids: st.SearchStrategy[int], post_ids: st.SearchStrategy[int]) -> Any:
    """Draw comments, links and votes for these posts."""
    kinds = st.sampled_from([COMMENT, COMMENT, LINK])
    json = JSON.filter(lambda json: len(json) > 2).map(str.encode)
    votes = st.builds(lambda kind, count: kind << 32 | count, VOTE_TYPES, st.integers(1, 3))
    return st.one_of(
        st.tuples(question_ids, post_ids, st.integers(0, 3), kinds, json),
        st.tuples(question_ids, post_ids, votes, st.just(VOTE), st.just(b"")),
    )


@st.composite
def thread(draw: Any, question_id: int) -> list[Record]:
    """Draw a question with answers and rows of both, sometimes with an irregular record."""
    ids = [question_id, *draw(st.lists(st.integers(10, 13), unique=True, max_size=3))]
    kinds = [QUESTION, *[ANSWER] * (len(ids) - 1)]
    posts = [
        as_record(question_id, post_id, draw(st.integers(9, 13)), kind, draw(JSON))
        for post_id, kind in zip(ids, kinds, strict=True)
    ]
    rows = draw(st.lists(rows_of(st.just(question_id), st.sampled_from(ids)), max_size=6))
    odd = st.one_of(POST, rows_of(IDS, IDS), rows_of(st.just(question_id), st.integers(9, 13)))
    return posts + rows + (draw(st.lists(odd, max_size=1)) if draw(st.integers(0, 3)) == 0 else [])


@st.composite
def threads(draw: Any) -> list[list[Record]]:
    """Draw records of questions, shuffled into blocks; votes have separate blocks."""
    questions = draw(st.lists(st.integers(0, 6), unique=True, max_size=3))
    records = draw(st.permutations([one for number in questions for one in draw(thread(number))]))
    cut = draw(st.integers(0, len(records)))
    blocks = (records[:cut], records[cut:])
    return [
        [one for one in block if (one[3] == VOTE) == is_votes]
        for block in blocks
        for is_votes in (False, True)
    ]


def blocks_of(record: Any) -> Any:
    """Distribute these records over blocks."""
    return st.lists(st.lists(record, max_size=12), max_size=4)


class SomeUsers:
    """Users with a few ids."""

    def __init__(self) -> None:
        self.users = {user_id: orjson.dumps({"Id": user_id}) for user_id in (-1, 2, 10**18 - 1)}
        self.get = self.users.get

    def get_all(self, user_ids: Sequence[int]) -> list[bytes | None]:
        return list(map(self.get, user_ids))


def as_block(records: list[Record]) -> tuple[bytes, bytes]:
    """Join the keys and the JSON of records."""
    keys = [KEY.pack(*record[:3], len(record[4]) << 4 | record[3]) for record in records]
    return b"".join(keys), b"".join(record[4] for record in records)


@pytest.fixture
def fallbacks(monkeypatch: pytest.MonkeyPatch) -> list[range]:
    """Ranges of records that the compiled core left to the reference, which gets none of them."""
    ranges: list[range] = []
    monkeypatch.setattr(
        bucket.JoinedRecords, "_by_reference", lambda *arguments: ranges.append(arguments[-1])
    )
    return ranges


def outcome(nesting: merge.DocumentBuilder) -> Any:
    """Return the documents, strays and counts of a nesting."""
    documents = [(result.question_id, b"".join(result.parts), result.size) for result in nesting]
    return documents, nesting.strays, nesting.counts


def outcomes(blocks: list[Any], ids: range, tables: Any, *order: Any, **options: Any) -> list[Any]:
    """Return the results of the reference and of the compiled core."""
    users: Any = SomeUsers() if "users" in tables else None
    nests = [Nest(tables, users and users.get) if tables else None for _ in range(2)]
    reference = merge.DocumentBuilder(merge.gather(blocks, ids), *order, nest=nests[0], **options)
    compiled = merge.DocumentBuilder(
        bucket.JoinedRecords(blocks, ids, users=users), *order, nest=nests[1], **options
    )
    return [outcome(reference), outcome(compiled)]


@settings(max_examples=60)
@given(
    blocks_of(POST),
    st.sampled_from(["id", "votes"]),
    st.sampled_from([b"", b'"Site":"a"']),
    st.booleans(),
)
def test_posts_as_the_reference(
    records: Any, answers_by: Any, extra: bytes, with_answers: bool
) -> None:
    options: Any = {"extra": extra, "with_answers": with_answers}
    blocks = [as_block(block) for block in records]
    expected, actual = outcomes(blocks, WHOLE, (), answers_by, **options)
    assert actual == expected


@pytest.mark.long
@given(threads(), st.sampled_from([(), NAMES]), st.integers(1, 60))
def test_runs_are_the_documents_of_a_segment(records: Any, tables: Any, size: int) -> None:
    blocks = [as_block([one for one in block if tables or one[3] < COMMENT]) for block in records]
    users: Any = SomeUsers() if tables else None
    segments: list[list[tuple[Any, ...]]] = []
    tallies = []
    for run in (None, bucket.RunForm(b"}\n", size)):
        nest = Nest(tables, users and users.get) if tables else None
        nesting = merge.DocumentBuilder(
            bucket.JoinedRecords(blocks, WHOLE, users=users, run=run), nest=nest
        )
        segments.append([])
        run_bytes, first, documents, text = 0, 0, 0, b""
        for result in nesting:
            first = result.question_id if documents == 0 else first
            text += b"".join(result.parts) + (b"" if result.run else b"}\n")
            documents += result.run or 1
            run_bytes += result.size
            if run_bytes >= size:
                segments[-1].append((first, documents, text))
                run_bytes, documents, text = 0, 0, b""
        segments[-1].append((first, documents, text))
        tallies.append((nesting.counts, nesting.strays))
    assert segments[0] == segments[1]
    assert tallies[0] == tallies[1]


KEYS = st.tuples(st.integers(-9, 9), IDS, IDS, st.integers(-1, 99))


@settings(max_examples=50)
@given(st.lists(st.lists(KEYS, max_size=5).map(lambda keys: b"".join(starmap(KEY.pack, keys)))))
def test_sizes_of_questions_as_the_reference(blocks: list[bytes]) -> None:
    actual = []
    for add_sizes in (merge.add_sizes, compiled.add_sizes):
        sizes = array("q", [-1]) * 16
        spans: list[tuple[int, int] | None] = []
        for keys in blocks:
            spans.append(None)
            with suppress(ValueError):
                spans[-1] = add_sizes(keys, sizes)
        actual.append((sizes, spans))
    assert actual[0] == actual[1]


def test_truncated_and_excessive_sizes() -> None:
    sizes = array("q", [-1]) * 16
    for keys in (KEY.pack(1, 1, 0, 1)[:-1], KEY.pack(1, 1, 0, (1 << 63) - 1) * 20):
        with pytest.raises(ValueError, match="do not match"):
            compiled.add_sizes(keys, sizes)
    with pytest.raises(ValueError, match="a power of two"):
        compiled.add_sizes(KEY.pack(1, 1, 0, 1), sizes[:15])


def test_joins_documents_in_runs() -> None:
    posts = [(n, n, 0, QUESTION, b'{"Id":%d}' % n) for n in range(1, 9)]
    stray = (4, 20, 0, REJECTED_ANSWER, b"")
    nesting = merge.DocumentBuilder(
        bucket.JoinedRecords([as_block([*posts, stray])], WHOLE, run=bucket.RunForm(b"}\n", 35))
    )
    runs = [(result.question_id, result.run) for result in nesting]
    assert runs == [(1, 3), (4, 0), (5, 1), (6, 3)]


@settings(max_examples=25)
@given(
    threads(),
    st.lists(st.sampled_from(NAMES), min_size=1, unique=True).map(tuple),
    st.sampled_from(["id", "votes"]),
    st.booleans(),
)
def test_tables_as_the_reference(
    records: Any, tables: Any, answers_by: Any, in_parts: bool
) -> None:
    kinds = {TABLES[name].kind for name in tables} | {*KINDS}
    blocks = [as_block([record for record in block if record[3] in kinds]) for block in records]
    for ids in (range(3), range(3, 7)) if in_parts else (WHOLE,):
        expected, actual = outcomes(blocks, ids, tables, answers_by)
        assert actual == expected


ODD = [
    (1, 9, 1, COMMENT, b'{"Id":5}'),  # No such post.
    (1, 0, 2 << 32 | 1, VOTE, b""),
    (1, 2, 0, ANSWER, b'{"Id":2}'),  # Repeated posts.
    (1, 1, 0, QUESTION, b'{"Id":1}'),
    (1, 9, 0, REJECTED_ANSWER, b""),
    (1, 1, 0, REJECTED_QUESTION, b""),
    (1, 1, -1 << 32 | 1, VOTE, b""),  # Unusual types of votes.
    (1, 2, 64 << 32 | 1, VOTE, b""),
    (1, 1, 1, COMMENT, b'{"Id":5,"UserId":1234567890123456789}'),
    (1, 1, 1, COMMENT, b'{"Id":5,"UserId":"2"}'),
]


def test_odd_groups_are_left_to_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = [(1, 1, 0, QUESTION, b'{"Id":1}'), (1, 2, 0, ANSWER, b'{"Id":2,"OwnerUserId":2}')]
    by_reference = bucket.JoinedRecords._by_reference
    fallbacks: list[range] = []

    def count(*arguments: Any) -> Any:
        fallbacks.append(arguments[-1])
        return by_reference(*arguments)

    monkeypatch.setattr(bucket.JoinedRecords, "_by_reference", count)
    for odd in ODD:
        blocks = [as_block(plain), as_block([odd]), as_block([(3, 3, 0, QUESTION, b'{"Id":3}')])]
        expected, actual = outcomes(blocks, WHOLE, NAMES, "id")
        assert (actual, fallbacks) == (expected, [range(3)]), odd
        fallbacks.clear()


HISTORY = [name for name, table in TABLES.items() if table.stem == "PostHistory"]
EVENT = b'{"Id":7,"PostHistoryTypeId":10,"UserId":2,"RevisionGUID":"a","CreationDate":"2020-01-01"}'


@pytest.mark.parametrize("users", [(), ("users",)])
@pytest.mark.parametrize("level", HISTORY)
def test_only_posts_without_history_are_joined(level: str, users: Any, fallbacks: Any) -> None:
    """The compiled core adds members for no events; the reference makes those of events."""
    posts = [(n, n, 0, QUESTION, b'{"Id":%d,"OwnerUserId":2}' % n) for n in (1, 2)]
    posts += [(n, n + 10, 0, ANSWER, b"{}") for n in (1, 2)]
    expected, actual = outcomes([as_block(posts)], WHOLE, (level, *users))
    assert (actual, fallbacks) == (expected, [])
    event = as_block([(2, 12, 7, TABLES[level].kind, EVENT)])
    outcomes([as_block(posts), event], WHOLE, (level, *users))
    assert fallbacks == [range(2, 5)]


@pytest.mark.long
def test_no_object_is_left_in_memory() -> None:
    posts = [(n, n, 0, QUESTION, b'{"Id":%d,"OwnerUserId":2}' % n) for n in range(300, 320)]
    comments = [(n, n, 1, COMMENT, b'{"Id":1,"UserId":-1}') for n in range(300, 320)]
    strays = [(n, n, 1, LINK, b'{"Id":1}') for n in range(400, 420)]
    blocks = [as_block(comments), as_block([*posts, *strays])]

    def run() -> None:
        for _ in range(200):
            outcomes(blocks, range(300, 410), NAMES)
            with suppress(ValueError):
                outcomes([(blocks[0][0], b"")], WHOLE, NAMES)

    assert_nothing_is_kept(run)


def test_a_call_ends_between_two_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "ENOUGH_BYTES", 1)
    kinds = {True: QUESTION, False: ANSWER}
    pairs = product(range(9), repeat=2)
    posts = [(n, m, 0, kinds[n == m], b'{"Id":%d}' % m) for n, m in pairs]
    expected, actual = outcomes([as_block(posts)], WHOLE, ())
    assert actual == expected
    assert actual[2].questions == 9


VOTE_KINDS = st.integers(-(2**31), 2**31 - 1) | st.integers(1, 3)


@given(st.lists(st.tuples(st.integers(1, 4), VOTE_KINDS), max_size=40), st.integers(1, 9))
def test_votes_are_added_up_as_by_the_reference(votes: list[tuple[int, int]], count: int) -> None:
    keys = b"".join(KEY.pack(1, post, kind * 2**32 + count, VOTE) for post, kind in votes)
    counted = compiled.count_votes(keys)
    assert counted == count_votes(keys)
    assert compiled.count_votes(counted) == counted
    ranks = [rank for _, _, rank, _ in KEY.iter_unpack(counted)]
    assert sum(unpack_votes(rank)[1] for rank in ranks) == count * len(votes)
    assert len(ranks) == len(set(votes))
    if keys:
        with pytest.raises(ValueError, match="truncated"):
            compiled.count_votes(keys[:-1])


def test_keys_that_contradict_their_json() -> None:
    key = KEY.pack(1, 1, 0, 2 << 4 | 1)
    blocks = [(key, b"{"), (key, b"{}}"), (key[:-1], b"{}"), (b"", b"{}")]
    blocks += [(KEY.pack(1, 1, 0, size), b"{}") for size in (-1, 1 << 62)]
    for block in blocks:
        with pytest.raises(ValueError, match="do not match"):
            compiled.sort_records([(b"", b""), block])
        with pytest.raises(ValueError, match="do not match"):
            compiled.select_records(block, WHOLE.start, WHOLE.stop)


def test_unsorted_blocks() -> None:
    blocks = [as_block([(1, 1, 0, QUESTION, b'{"Id":1}'), (1, 2, 0, ANSWER, b'{"Id":2}')])]
    records = compiled.sort_records(blocks)
    shorter = [(blocks[0][0], blocks[0][1][:-1])]
    for others in ([], shorter, [(b"", b"")]):
        with pytest.raises(ValueError, match="not the blocks that were sorted"):
            list(join(others, records, 0, 1))
        with pytest.raises(ValueError, match="not the blocks that were sorted"):
            compiled.user_ids(others, records, 0)
    without_json = [(KEY.pack(1, 1, 0, QUESTION), b"")]
    sorted_ = compiled.sort_records(without_json)
    [group] = join(without_json, sorted_, 0, 1)
    assert (*group[:2], group[4]) == (1, 1, None)
    for first in (-1, 3):
        with pytest.raises(ValueError, match="there are 2 records"):
            join(blocks, records, first, 1)
    for wrong in ([b"", b""], [(b"",)], [(b"", 1)], ["ab"]):
        with pytest.raises(TypeError):
            compiled.sort_records(wrong)  # type: ignore[arg-type]


def test_users_that_contradict_their_ids() -> None:
    blocks = [as_block([(1, 1, 0, QUESTION, b'{"OwnerUserId":1}')])]
    records = compiled.sort_records(blocks)
    wrong: list[dict[str, Any]] = [
        {"user_ids": array("q", [1]), "users": []},
        {"user_ids": array("q", [1]), "users": None},
        {"user_ids": b"1234567", "users": []},
        {"users": ()},
    ]
    for one in wrong:
        with pytest.raises(ValueError, match="do not match"):
            join(blocks, records, 0, 1, **one)
    for users in ([1], ["x"]):
        ids = array("q", [1])
        [group] = join(blocks, records, 0, 1, user_ids=ids, users=users)  # type: ignore[arg-type]
        assert group[4] is None
