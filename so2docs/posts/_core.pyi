from array import array
from collections.abc import Callable

from so2docs.posts.posts import Bucket

def add_rows(
    data: bytes,
    buckets: dict[int, Bucket],
    pairs: bytearray,
    new_bucket: Callable[[], Bucket],
    bucket_bits: int,
    reserved: bytes,
) -> tuple[int, int | None, dict[int, int]] | None: ...
def count_lines(data: bytes) -> int: ...
def read_table(data: bytes, table: int) -> tuple[int, int | None, bytes, bytes] | None: ...
def file_records(
    keys: bytes,
    json: bytes,
    questions: bytes,
    buckets: dict[int, Bucket],
    new_bucket: Callable[[], Bucket],
    bucket_bits: int,
) -> None: ...
def find_values(
    firsts: array[int],
    keys: array[int],
    values: array[int],
    get_block: Callable[[int], array[int]],
) -> None: ...
def select_records(block: tuple[bytes, bytes], low: int, high: int) -> tuple[bytes, bytes]: ...
def sort_records(blocks: list[tuple[bytes, bytes]]) -> bytearray: ...
def user_ids(blocks: list[tuple[bytes, bytes]], records: bytearray) -> bytes: ...
def join_records(
    blocks: list[tuple[bytes, bytes]],
    records: bytearray,
    first: int,
    enough: int,
    opening: bytes,
    closing: bytes,
    with_answers: bool,
    by_votes: bool,
    tables: int,
    vote_names: tuple[bytes, ...],
    repeated: array[int],
    user_ids: array[int],
    users: list[bytes | None] | None,
) -> list[tuple[int, int, int, int, bytes | None, int, int, int, int]]: ...
