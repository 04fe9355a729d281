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
def read_table(data: bytes, table: int) -> tuple[int, int | None, bytes, bytes] | None: ...
def file_records(
    keys: bytes,
    json: bytes,
    questions: bytes,
    buckets: dict[int, Bucket],
    new_bucket: Callable[[], Bucket],
    bucket_bits: int,
) -> None: ...
def sort_posts(blocks: list[tuple[bytes, bytes]]) -> bytearray: ...
def join_posts(
    blocks: list[tuple[bytes, bytes]],
    posts: bytearray,
    first: int,
    enough: int,
    opening: bytes,
    with_answers: bool,
    by_votes: bool,
) -> list[tuple[int, int, int, bytes | None]]: ...
