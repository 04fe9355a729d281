"""Both cores on the same bytes: what the compiled one takes must come out as the reference has it.

Shared by the tests and the fuzzer.
"""

from dataclasses import dataclass, field

from so2docs import core, posts, rows
from so2docs.posts import Posts

FRAME = b"<posts>", b"</posts>"


@dataclass(slots=True)
class Outcome:
    """What slices became, and what a chunk notes about them."""

    posts: Posts = field(default_factory=Posts)
    rows: int = 0
    last_id: int | None = None
    repaired: int = 0
    malformed: int = 0


def by_reference(outcome: Outcome, data: bytes, frame: tuple[bytes, bytes] = FRAME) -> None:
    for part in rows.parse(data, frame):
        if isinstance(part, rows.Malformed):
            outcome.malformed += 1
        elif part.rows:
            outcome.rows += len(part.rows)
            outcome.repaired += part.repaired
            last_id = rows.row_id(part.rows[-1])
            outcome.last_id = outcome.last_id if last_id is None else last_id
            posts.add(outcome.posts, part.rows)


def by_compiled(outcome: Outcome, data: bytes, frame: tuple[bytes, bytes] = FRAME) -> bool:
    """Whether the compiled core took the slice; if not, nothing may have changed."""
    added = core.add_canonical(data, frame, outcome.posts)
    if added is None:
        return False
    outcome.rows += added.rows
    outcome.last_id = outcome.last_id if added.last_id is None else added.last_id
    return True


def is_taken(data: bytes, frame: tuple[bytes, bytes] = FRAME) -> bool:
    """Whether the compiled core takes a slice; asserts that it does as the reference."""
    compiled, reference = Outcome(), Outcome()
    if not by_compiled(compiled, data, frame):
        assert compiled == Outcome(), data
        return False
    by_reference(reference, data, frame)
    assert compiled == reference, data
    assert list(compiled.posts.buckets) == list(reference.posts.buckets), data
    assert list(compiled.posts.other_types) == list(reference.posts.other_types), data
    return True
