"""The start and end of a dump give the same result for a file and a stream, in linear time."""

import gzip
import io
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.dumps import END, START, dump_of, question

import so2docs
from so2docs.dump.root import Ending
from so2docs.schema import POSTS

ROWS = question(1), question(2)
ENDS = {
    "vertical-tab": END + b"\x0b",
    "vertical-tab-in-the-tag": b"</posts\x0b>",
    "comment": END + b"<!-- end -->",
    "text": END + b"\nthe end",
    "blanks": END + b" \r\n" * 100_000,
    "stray-tag": END + question(3) + END,
    "stray-tags": END + END + question(3) + END + b"<!-- -->" + END,
    "tag-in-an-attribute": b'<row Id="4" Title="</posts>" />' + question(3) + END,
    "two-dumps": END + dump_of(question(3)),
    "two-roots": END + b"<posts></posts>",
    "cut-in-the-tag": END[:-1],
    "cut-after-a-stray-tag": END + question(3),
    "tag-with-blanks": b"</posts \r\n\t>\n",
    "text-after-a-tag-with-lines": b"</posts \r\n\n> \n\nthe end",
    "text-after-much": END + b"\n" * 100_000 + b"the end",
    "tag-of-another": b"</postsx>" + END,
}
ROOTS = {"empty": b"<posts/>", "empty-row": b"<posts/><row/>"}
ROOTS |= {"empty-lines": b"\n\n<posts\n/>\n\nx", "no-row": b"<posts>\n</posts>\nx"}


def outcome(dump: Path, source: BinaryIO | None = None, **options: Any) -> object:
    """Return the documents and strays of a dump, or its error."""
    output = dump.with_name("questions.jsonl")
    try:
        report = so2docs.convert(
            source or dump, output, jobs=1, force=True, restart=True, **options
        )
    except so2docs.DumpError as error:
        return type(error), error.problem, str(error.location), error.excerpt
    return output.read_bytes(), report.strays, report.rows


@pytest.mark.parametrize("kind", [*ENDS, *ROOTS])
def test_file_and_stream_agree(kind: str, tmp_path: Path) -> None:
    data = ROOTS[kind] if kind in ROOTS else START + b"".join(ROWS) + ENDS[kind]
    dump, packed = tmp_path / "Posts.xml", tmp_path / "Posts.xml.gz"
    dump.write_bytes(data)
    packed.write_bytes(gzip.compress(data))
    for errors, chunk_bytes in (("repair", None), ("skip", 60)):
        options = {"errors": errors, "chunk_bytes": chunk_bytes}
        plain = outcome(dump, errors=errors)
        streamed = outcome(packed, **options)
        with io.FileIO(dump) as file:  # The source is read like a pipe.
            piped = outcome(dump, source=file, **options)
        assert piped == streamed
        # The end of a file is checked first, the end of a stream last.
        if kind != "cut-after-a-stray-tag":
            assert streamed == plain


AFTER_END = "content after its closing </posts>"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("vertical-tab", f"has {AFTER_END}"),
        ("comment", f"has {AFTER_END}"),
        ("blanks", ""),
        ("two-dumps", f"is not well-formed XML ({AFTER_END}) in the row"),
        ("cut-in-the-tag", "is truncated: it ends without </posts>"),
        ("tag-with-blanks", ""),
    ],
)
def test_ends_of_every_kind(kind: str, words: str, tmp_path: Path) -> None:
    dump = tmp_path / "Posts.xml"
    dump.write_bytes(START + b"".join(ROWS) + ENDS[kind])
    actual = outcome(dump)
    assert isinstance(actual, tuple)
    assert actual[1] == words if words else actual[2] == 2


TOKENS = [b"</posts>", b"</posts", b" ", b">", b"<!--", b"<row ", b"x", b"<"]


@given(st.lists(st.sampled_from(TOKENS), max_size=12), st.integers(1, 9))
@example([b"</posts>", b"<!--", b"</posts>", b"-->"], 3)
def test_the_end_is_found_from_any_prefix(tokens: list[bytes], step: int) -> None:
    data = b"".join(tokens)
    ending = Ending("", (b"<posts>", b"</posts>"), POSTS)
    limits = [ending.rows_before(bytearray(data), size) for size in range(0, len(data), step)]
    with suppress(so2docs.DumpError):
        assert max(limits, default=0) <= ending.find(data)


REPEATED = {
    "comments-in-a-document-type": (b"<!DOCTYPE posts [", b"<!--"),
    "instructions-in-a-document-type": (b"<!DOCTYPE posts [", b"<?"),
    "quotes-in-a-document-type": (b"<!DOCTYPE posts [", b'"'),
    "document-types": (b"", b"<!DOCTYPE "),
    "comments": (b"", b"<!--"),
    "names": (b"<posts ", b"a "),
    "other-closing-tags": (b"<posts>", b"</postsx"),
    "half-closing-tags": (b"<posts>", b"</posts "),
    "text-at-the-end": (b"<posts>", b"</posts><!-- -->x"),
    "rows-that-are-cut": (b"<posts>", b"<row "),
}


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[pytest.mark.long] * (kind == "rows-that-are-cut"))
        for kind in REPEATED
    ],
)
def test_every_start_and_end_takes_linear_time(kind: str, is_packed: bool, tmp_path: Path) -> None:
    start, repeated = REPEATED[kind]
    data = start + repeated * (1_000_000 // len(repeated))
    dump = tmp_path / "Posts.xml"
    dump.write_bytes(gzip.compress(data, 1) if is_packed else data)
    started = time.process_time()
    assert isinstance(outcome(dump), tuple)
    assert time.process_time() - started < 10
