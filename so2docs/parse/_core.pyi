"""The compiled core: rows to posts, and records to documents.

Ids and positions are 64-bit integers: little-endian in keys, in the order of the machine elsewhere.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable
from mmap import mmap

from so2docs.parse.posts import Bucket

def add_rows(
    data: bytes,
    buckets: defaultdict[int, Bucket],
    pairs: bytearray,
    bucket_bits: int,
    reserved: tuple[bytes, ...],
) -> tuple[int, int | None, dict[int, int], str, str] | None:
    """Turn a slice of rows into posts, as `rows.parse` and `posts.add` do.

    Args:
        data: The slice.
        buckets: The buckets to append the posts to.
        pairs: The buffer to append the question id and post id of each post to.
        bucket_bits: Binary logarithm of the number of question ids in a bucket.
        reserved: Reserved attribute names.

    Returns:
        The number of rows, the `Id` of the last row, and the number of rows of each other post
        type; or None, with nothing changed, if a row is not canonical.
    """

def count_lines(data: bytes) -> int:
    """Count line feeds, several times as fast as `data.count` if the lines are long."""

def contains(data: bytes | bytearray, size: int, text: bytes) -> bool:
    """Whether a text occurs in the first `size` bytes."""

def answer_ids(data: bytes) -> bytes | None:
    """Return the low 32 bits of the id of each answer in documents, as `index.answer_ids` does.

    Returns:
        The bits, little-endian; None if an answer does not start with `Id` and `PostTypeId`.
    """

def read_table(data: bytes, table: int) -> tuple[int, int | None, bytes, bytes] | None:
    """Turn a slice of rows of a table into records, as `rows.parse` and `table_rows` do.

    Args:
        data: The slice.
        table: Kind of the records; 4 for users.

    Returns:
        The number of rows, the `Id` of the last row, keys and JSON; or None if a row is not
        canonical.
    """

def read_columns(
    data: bytes, names: tuple[bytes, ...], kinds: bytes
) -> tuple[int, int | None, list[tuple[int, bytes, bytes, bytes, bytes]]] | None:
    """Turn a slice of rows of any table into columns, as `rows.parse` and `flat.columns` do.

    Args:
        data: The slice.
        names: Names of the columns; the first is an integer in every row, the last is for all other
            attributes.
        kinds: The type of each column: 0 text, 1 integers, 2 dates as text with milliseconds,
            3 booleans, 4 tags, 5 other attributes as the text of a JSON object.

    Returns:
        The number of rows, the first value of the last row, and for each column the number of nulls
        and the Arrow buffers: validity, values, offsets, offsets of lists; or None
        if a row is not canonical.
    """

def file_records(
    keys: bytes,
    json: bytes,
    questions: bytes,
    buckets: defaultdict[int, Bucket],
    bucket_bits: int,
) -> None:
    """Append records to the buckets of their questions.

    Args:
        keys: The keys that `read_table` returned.
        json: The JSON objects.
        questions: A question id for each record, little-endian.
        buckets: The buckets to append the records to.
        bucket_bits: Binary logarithm of the number of question ids in a bucket.
    """

def count_votes(keys: bytes) -> bytes:
    """Add up the votes of each post and type, as `table_rows.count_votes` does.

    Args:
        keys: Keys of records that count votes.

    Returns:
        One record for each post and type, in the order of the posts.
    """

def to_markdown(body: str, sign: str) -> str | None:
    r"""Turn the HTML of a body into Markdown, as `markdown.to_markdown` does.

    Args:
        body: The HTML.
        sign: The delimiter of formulas, `$` or `\$`; empty if the body has no formulas.

    Returns:
        The Markdown; or None if only the reference can convert the body, such as a table.
    """

def to_text(body: str) -> str | None:
    """Turn the HTML of a body into text, as `sqlite.rows.separate_words` does.

    Args:
        body: The HTML, without images.

    Returns:
        The text; or None if only the reference can convert the body.
    """

def new_bzip2() -> object:
    """Allocate memory to decode a bzip2 block; one thread at a time may use it."""

def find_bzip2(data: bytes | bytearray, start: int) -> int:
    """Find the next magic number of bzip2, which starts a block or ends a stream.

    Args:
        data: Compressed bytes.
        start: The bit to start at.

    Returns:
        The position of the magic number in bits; -1 if there is none.
    """

def decode_bzip2(
    memory: object, data: bytes, start: int, level: int
) -> tuple[int, int, int] | None:
    """Decode a bzip2 block.

    Args:
        memory: Memory from `new_bzip2`, which keeps the block until another block is decoded.
        data: Compressed bytes.
        start: The first bit of the block.
        level: Maximum size of the block, 1 to 9 times 100,000 bytes.

    Returns:
        The bit after the block, its checksum, and whether the block is randomized and so not
        decoded; or None if the block is damaged or incomplete.
    """

def read_bzip2(memory: object, size: int) -> bytes:
    """Return the next `size` bytes of a decoded block; fewer at its end.

    Raises:
        OSError: At the end of the block, its checksum is wrong.
    """

def new_lzma2(dictionary: int, window: mmap) -> object:
    """Make the state to decode an LZMA2 stream; one thread at a time may use it.

    Args:
        dictionary: Size of the dictionary in bytes, at most 2^30.
        window: Memory for the decoded bytes, which no other state uses: 128 bytes more than the
            dictionary and 4 MiB. In a window of 129 bytes more than the stream, and one byte for
            each reset of the dictionary, no byte is overwritten. Streams that do not fit are
            refused.
    """

def decode_lzma2(memory: object, data: bytes, start: int) -> int | None:
    """Decode the next chunk of a stream, or its end marker.

    Args:
        memory: State from `new_lzma2`. The previous chunk must have been read.
        data: Compressed bytes.
        start: Position of the chunk.

    Returns:
        The position after the chunk, `start` if the data ends within the chunk; or None if the
        chunk is damaged, unusual, or larger than the rest of the window.
    """

def read_lzma2(memory: object) -> tuple[int, int]:
    """Return where the decoded chunk starts and ends in the window; equal if it was read."""

def find_values(
    firsts: array[int],
    keys: array[int],
    values: array[int],
    get_block: Callable[[int], array[int]],
) -> None:
    """Look up ids in a map, as `IdMap.find` does.

    Args:
        firsts: The first id of each block.
        keys: The ids, in any order.
        values: An integer for each id, replaced by the id's value if the id is in the map.
        get_block: Returns a block by its number: ids and their values.
    """

def find_objects(
    firsts: array[int], keys: array[int], get_block: Callable[[int], bytes]
) -> list[bytes | None]:
    """Look up JSON objects, as `Objects.get` does.

    Args:
        firsts: The first id of each block.
        keys: The ids; each block is read once if they are ascending.
        get_block: Returns a block by its number, as `pack_objects` made it.
    """

def select_records(block: tuple[bytes, bytes], low: int, high: int) -> tuple[bytes, bytes]:
    """Copy the records of some question ids out of a block, as `merge.gather` does.

    Args:
        block: Keys and JSON.
        low: The first question id.
        high: The first question id after the range.

    Returns:
        Keys and JSON of the records.
    """

def sort_records(blocks: list[tuple[bytes, bytes]]) -> bytearray:
    """Sort the records of a bucket by question, post, table, rank and order in the dump.

    `merge.DocumentBuilder` uses the same order.

    Args:
        blocks: The keys and JSON of each block, in the order of the dump.

    Returns:
        Six integers for each record: question id, post id, rank, size << 4 | kind, place in the
        blocks (number << 40 | offset), order in the dump.
    """

def add_sizes(keys: bytes, sizes: array[int]) -> tuple[int, int]:
    """Add the size of each record to the size of its question, as `merge.add_sizes` does."""

def user_ids(blocks: list[tuple[bytes, bytes]], records: bytearray, naming: int) -> bytes:
    """Return the ids of all users that the posts and rows reference.

    Args:
        blocks: The blocks given to `sort_records`.
        records: The result of `sort_records`.
        naming: A bit for each kind of rows with the `UserId` of a user.

    Returns:
        Distinct integers in ascending order.
    """

def join_records(
    blocks: list[tuple[bytes, bytes]],
    records: bytearray,
    first: int,
    enough: int,
    *,
    opening: bytes,
    closing: bytes,
    with_answers: bool,
    by_votes: bool,
    tables: int,
    naming: int,
    made: int,
    members: tuple[bytes, ...],
    vote_names: tuple[bytes, ...],
    user_ids: array[int],
    users: list[bytes | None] | None,
) -> list[tuple[int, int, int, int, bytes | None, bytes, int]]:
    """Join the records of each question id, as `merge.DocumentBuilder` and `nest.Nest` do.

    Args:
        blocks: The blocks given to `sort_records`.
        records: The result of `sort_records`.
        first: Index of the record to start at, which is the first record of its question id.
        enough: Size of records and documents at which to stop, in bytes; for runs, size of posts.
        opening: Bytes between the fields of a question and its answers.
        closing: Bytes after each document of a run; empty if documents are not joined into runs.
        with_answers: Whether to write answers.
        by_votes: Whether to sort answers by votes, not by id.
        tables: A bit for each nested kind of rows.
        naming: A bit for each kind of rows with the `UserId` of a user.
        made: A bit for each kind of rows that only the reference can write, such as the history.
        members: JSON that precedes the rows, by kind; for kinds in `made`, the complete members of
            a post without rows.
        vote_names: Names of vote types, by number, as keys with the colon.
        user_ids: The result of `user_ids`.
        users: The JSON of each user, None for an unknown id; None if no users are nested.

    Returns:
        An entry for each question id, as described by `bucket.JoinedGroup`. It has no document for
        a missing question, a repeated id, a row of another post, or anything else that only the
        reference can join. A run is one entry, and ends before a question without a document.
    """
