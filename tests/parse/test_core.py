"""The compiled core gives the same posts as the reference, or falls back to it for a slice."""

import itertools
import os
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.command import run_python
from support.memory import assert_nothing_is_kept
from support.places import CHECKOUT, LONG, SAMPLES
from support.twins import (
    LEFT,
    ROW,
    ROWS,
    TABLE_TAKEN,
    TAKEN,
    Outcome,
    by_compiled,
    by_reference,
    is_taken,
    is_taken_of,
    slice_of,
)

from so2docs.dump.dump import open_dump, slices
from so2docs.parse import core
from so2docs.parse.keys import BUCKET_BITS, KEY
from so2docs.parse.posts import RecordBuffer, new_bucket
from so2docs.schema import NUMBERS, TABLES

pytestmark = pytest.mark.skipif(
    core.built() == "python", reason="the compiled core is not built: no C compiler"
)

EXAMPLES = int(os.environ.get("SO2DOCS_EXAMPLES", "100"))


@given(st.lists(st.sampled_from([b"\n", b"\r\n", b"a\0"])).map(b"".join))
def test_lines_are_counted(data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        assert core.count_lines(data) == data.count(b"\n")
        patch.setattr(core, "_core", None)
        assert core.count_lines(data) == data.count(b"\n")


PIECES = [b"</posts", b"<", b"/posts", b"</", b"x", b"x" * 250]


@given(st.lists(st.sampled_from(PIECES)), st.integers(0, 40) | st.integers(250, 2_000))
def test_a_closing_tag_is_noticed(parts: list[bytes], size: int) -> None:
    data = bytearray(b"".join(parts))
    with pytest.MonkeyPatch.context() as patch:
        assert core.contains(data, b"</posts", size) == (b"</posts" in data[:size])
        patch.setattr(core, "_core", None)
        assert core.contains(data, b"</posts", size) == (b"</posts" in data[:size])


def test_only_canonical_rows_are_taken() -> None:
    """Values are read in blocks of 16 bytes, and near the end of a slice byte by byte."""
    for spaces in ("", " " * 40):
        assert [row for row in TAKEN + LEFT if is_taken((ROW % row + spaces).encode())] == TAKEN


def test_only_canonical_slices_are_taken() -> None:
    canonical = [
        b"",
        b" \t\r\n",
        b'<row Id="1" PostTypeId="1"/>',
        b'<row\nId="1"\r\n\tPostTypeId="1"\r/><row PostTypeId="1" Id="2" />',
        b'<row Id="1" PostTypeId="3"/><row Id="2" PostTypeId="-4"/><row Id="9" PostTypeId="3"/>',
        b'<row ParentId="1" Body="x" Id="2" PostTypeId="2" />',
        b'<row ParentId="-16385" Id="-2" PostTypeId="2" /><row Id="-16384" PostTypeId="1" />',
        b'<row ParentId="999999999999999999" Id="2" PostTypeId="2" />',
    ]
    row = b'<row Id="1" PostTypeId="1" />'
    others = [
        *(b"x", b"\xef\xbb\xbf", b"\xc2\xa0", b"<row/>", b"<row />", b'<row Id="1" />'),
        *(b'<row PostTypeId="1" />', b'<row PostTypeId="3" />', b'<row Id="1" PostTypeId="2" />'),
        *(row.replace(b"<row ", start) for start in (b"<row", b"<rows ", b"< row ")),
        row.replace(b" Post", b"Post"),
        *(row.replace(b"/>", end) for end in (b"/ >", b">", b"></row>")),
        *(row + after for after in (b" x", b"<!-- --> ", b"</posts>")),
        b"".join(b'<row Id="1" PostTypeId="%d" />' % kind for kind in range(3, 36)),
    ]
    assert [data for data in canonical + others if is_taken(data)] == canonical


def test_canonical_rows_of_tables_are_taken() -> None:
    rows = [*TAKEN, *TABLE_TAKEN]
    for table, form in ROWS.items():
        left = [row for row in rows if not is_taken_of(table, (form % row).encode())]
        # Votes have one attribute too many for such a row.
        assert left == [row for row in rows if table == "votes" and "a61=" in row]


def test_other_rows_of_tables_come_out_the_same_or_are_left() -> None:
    event = '<row Id="7" PostHistoryTypeId="5" PostId="5" %s />'
    for table, form in {**ROWS, **dict.fromkeys(HISTORY, event)}.items():
        for row in LEFT:
            is_taken_of(table, (form % row).encode())


HISTORY = [name for name, table in TABLES.items() if table.stem == "PostHistory"]


@pytest.mark.parametrize("table", HISTORY)
def test_canonical_events_are_taken(table: str) -> None:
    """Both cores know which event types change a state and which have a text of the post."""
    rows = [
        f'<row Id="7" PostHistoryTypeId="{kind}" PostId="5" RevisionGUID="a" {attributes} />'
        for kind in (1, 9, 10, 22, 23, 32, 33, 38, 39, -5)
        for attributes in ('Text="a &lt; b" UserId="-1" Comment="x"', *TAKEN[:9])
    ]
    after = '\n<row Id="8" PostHistoryTypeId="10" PostId="5" />'
    assert [row for row in rows if not is_taken_of(table, (row + after).encode())] == []


def test_leaves_unusual_rows_of_tables_to_the_reference() -> None:
    id_of_post = 'Id="1" PostId="2"'
    more = {
        "history": ("", 'PostHistoryTypeId="x"', 'PostHistoryTypeId="5" User="x"'),
        "history-text": ('Text="x" PostHistoryTypeId="5" User="x"',),
        "comments": ('User="x"', 'Score="x"', 'UserId="01"'),
        "links": ('LinkType="x"', 'LinkTypeId=""', 'RelatedPostId="x"'),
        "votes": ("", *(f'VoteTypeId="{kind}"' for kind in (2**31, -(2**31) - 1)), 'UserId="\x01"'),
        "users": ('Reputation="1e3"', 'AboutMe="<"'),
    }
    rows = [(table, f"{id_of_post} {odd}") for table, odds in more.items() for odd in odds]
    rows += [("history", f'{id_of_post} Text="x" PostHistoryTypeId="5"'), ("comments", 'Id="1"')]
    rows += [("history-text", 'Id="1" PostHistoryTypeId="5"'), ("comments", 'PostId="1"')]
    rows += [("closings", 'PostId="1" PostHistoryTypeId="5"'), ("users", 'DisplayName="x"')]
    assert [one for one in rows if is_taken_of(one[0], f"<row {one[1]} />".encode())] == []


IDS = st.integers(-3, 40).map(str) | st.sampled_from(["16384", "-16385", "999999999999999999"])
TYPES = st.integers(-2, 4).map(str) | st.sampled_from(["-2147483648", "2147483647"])


@settings(max_examples=50)
@given(st.lists(st.tuples(IDS, IDS, TYPES), max_size=30))
def test_rows_of_tables_in_any_order(rows: list[tuple[str, str, str]]) -> None:
    row = '<row Id="{0}" PostId="{1}" VoteTypeId="{2}" LinkTypeId="{2}" />\n'
    data = (" \n" + "".join(row.format(*values) for values in rows)).encode()
    assert [is_taken_of(table, data) for table in ROWS] == [True] * len(ROWS)


@pytest.mark.parametrize("table", ROWS)
def test_slices_of_tables_cut_anywhere(table: str) -> None:
    file = (SAMPLES / "site" / TABLES[table].file).read_bytes()
    sample = file[file.index(b"<row") : file.rindex(b"</")]
    assert is_taken_of(table, sample[: sample.index(b"/>") + 2])
    for cut in range(len(sample)):
        is_taken_of(table, sample[:cut])
        is_taken_of(table, sample[cut:])


def test_inconsistent_records_are_rejected() -> None:
    from so2docs.parse import _core

    key = KEY.pack(1, 2, 3, 2 << 4 | 5)
    for keys, json, questions in (
        (key[:-1], b"{}", b"8" * 8),
        (key, b"{", b"8" * 8),
        (key, b"{} ", b"8" * 8),
        (key, b"{}", b"8" * 7),
        (KEY.pack(1, 2, 3, -1), b"", b"8" * 8),
    ):
        with pytest.raises(ValueError, match="do not match"):
            _core.file_records(keys, json, questions, RecordBuffer().buckets, BUCKET_BITS)
    with pytest.raises(ValueError, match="table is 3"):
        _core.read_table(b"", 3)


WRONG_UTF_8 = """
    80 BF C0 C1 C2 C080 C1BF C3 C3C3 C3C3A9
    E0 E080 E08080 E09FBF EDA080 EDBFBF EFBFBE EFBFBF E282 E282C3 E2C2A9
    F0 F08080 F0808080 F08FBFBF F0908F F0C2A9 F09F98 F09F98C3 F09F98FF F09F9841 F09F98C3A9
    F4908080 F5808080 F8888080 FE FF
"""


def test_invalid_utf_8_is_left_to_the_reference() -> None:
    """Every position is tested, because values are read in blocks of 16 bytes."""
    rows = [
        b'<row Id="1" PostTypeId="1" Body="%s%s%s" />' % (b"x" * position, raw, b"y" * 20)
        for position in range(20)
        for raw in map(bytes.fromhex, WRONG_UTF_8.split())
    ]
    assert [row for row in rows if is_taken(row)] == []


def test_every_valid_character() -> None:
    allowed = [*range(0x20, 0xD800), *range(0xE000, 0xFFFE), *range(0x10000, 0x110000, 61)]
    for first in range(0, len(allowed), 4096):
        codes = [code for code in allowed[first : first + 4096] if chr(code) not in '<&"']
        raw = "".join(map(chr, codes))
        references = "".join(f"&#{code};&#x{code:x};&#x{code:X};" for code in codes)
        assert is_taken((ROW % f'Raw="{raw}" References="{references}"').encode())


def test_the_same_names_are_numbers_and_lists() -> None:
    names = sorted(NUMBERS - {"Id", "PostTypeId"})
    for name in [*names, *(name[:-1] + "x" for name in names), *map(str.lower, names)]:
        assert is_taken((ROW % f'{name}="1"').encode())
        assert is_taken((ROW % f'{name}="x"').encode()) == (name not in NUMBERS)


def test_posts_are_appended_to_existing_buckets() -> None:
    data = slice_of(SAMPLES / "posts.xml")
    compiled, reference = Outcome(), Outcome()
    for _ in range(3):
        assert by_compiled(compiled, data)
        assert not by_compiled(compiled, data + b"<row/>")
        by_reference(reference, data)
    assert compiled == reference


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.xml")), ids=lambda path: path.stem)
def test_slices_cut_anywhere(sample: Path) -> None:
    data = slice_of(sample)
    starts = [match.start() for match in re.finditer(b"<row", data)] + [len(data)]
    step = 1 if LONG else 5
    for cut in range(0, len(data) + 1, step):
        is_taken(data[:cut])
        is_taken(data[cut:])
    for first, last in itertools.pairwise(starts):
        for cut in range(first, last + 1, step):
            is_taken(data[first:cut])


def test_every_slice_of_a_published_dump(real_dump: Path) -> None:
    dump = open_dump(str(real_dump))
    taken = [is_taken(data) for _, data in slices(dump, dump.start, dump.end, 65_536)]
    assert taken
    assert all(taken)


# ---- Differential tests: rows from the grammar, intact and broken. ----

numbers = st.one_of(st.integers(-5, 40_000), st.integers(-(10**18) + 1, 10**18 - 1)).map(str)
characters = st.characters(
    exclude_categories=["Cs"], exclude_characters=[*map(chr, range(32)), *'<&"\ufffe\uffff']
)
references = st.one_of(
    st.sampled_from(["&lt;", "&gt;", "&amp;", "&quot;", "&apos;", "&#xA;", "&#xD;", "&#9;"]),
    characters.map(lambda character: f"&#{ord(character)};"),
    characters.map(lambda character: f"&#x{ord(character):x};"),
)
texts = st.lists(
    st.one_of(
        st.text(characters, max_size=40),
        references,
        st.sampled_from(["\t", "\n", "\r", "\r\n", "\\", "|", "<p>".replace("<", "&lt;")]),
    ),
    max_size=12,
).map("".join)
tags = st.one_of(
    texts,
    st.lists(texts, max_size=4).map(lambda names: "|" + "|".join(names) + "|"),
    st.lists(texts, max_size=4).map(lambda names: "&lt;" + "&gt;&lt;".join(names) + "&gt;"),
)
names = st.one_of(
    st.sampled_from(["Body", "Title", "CreationDate", "ContentLicense", "OwnerDisplayName"]),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,20}", fullmatch=True).filter(
        lambda name: name[:3].lower() != "xml" and name not in NUMBERS | {"Tags", "Answers"}
    ),
)
spaces = st.sampled_from([" ", " ", "  ", "\n", "\r\n", "\t", "\r \n"])


@st.composite
def rows_of_the_grammar(draw: st.DrawFn) -> bytes:
    attributes = {"Id": draw(numbers), "PostTypeId": draw(st.sampled_from("1122225"))}
    if attributes["PostTypeId"] == "2" or draw(st.booleans()):
        attributes["ParentId"] = draw(numbers)
    for name in draw(st.sets(st.sampled_from(sorted(NUMBERS - attributes.keys())))):
        attributes[name] = draw(numbers)
    attributes |= draw(st.dictionaries(names, texts, max_size=6))
    if draw(st.booleans()):
        attributes["Tags"] = draw(tags)
    ordered = draw(st.permutations(list(attributes.items())))
    row = "<row" + "".join(f'{draw(spaces)}{name}="{value}"' for name, value in ordered)
    return (row + draw(st.sampled_from(["/>", " />", "\r\n/>"]))).encode()


@st.composite
def slices_of_the_grammar(draw: st.DrawFn) -> bytes:
    between = st.sampled_from([b"", b" ", b"\r\n  ", b"\n"])
    parts = draw(st.lists(rows_of_the_grammar(), min_size=1, max_size=4))
    return draw(between) + b"".join(row + draw(between) for row in parts)


WRONG = rb"""
    " ' < > & ; = / /> - + 0 <row </row> <!-- --> &# &#x &lt &#0; &nbsp; <![CDATA[ ]]> <?x?>
    _Id="3" _x:y="" _xmlns="" _Answers="1" _Score="01" _Tags="|"
"""
WRONG_BYTES = "00 0B 7F C080 C2A0 E280A8 EDA080 EFBFBE EFBBBF F4908080"
broken = st.one_of(
    st.binary(max_size=4),
    st.sampled_from([token.replace(b"_", b" ") for token in WRONG.split()]),
    st.sampled_from([bytes.fromhex(digits) for digits in WRONG_BYTES.split()]),
)


@settings(max_examples=EXAMPLES // 10)
@given(slices_of_the_grammar())
def test_every_slice_of_the_grammar_is_taken(data: bytes) -> None:
    assert is_taken(data)


@pytest.mark.long
@settings(max_examples=EXAMPLES)
@given(slices_of_the_grammar(), st.lists(st.tuples(st.integers(0), st.integers(0, 3), broken)))
def test_rejects_whatever_the_reference_rejects(
    data: bytes, changes: list[tuple[int, int, bytes]]
) -> None:
    for place, removed, inserted in changes:
        at = place % (len(data) + 1)
        data = data[:at] + inserted + data[at + removed :]
    is_taken(data)


# ---- The limits of the function itself. ----


def test_no_object_is_left_in_memory() -> None:
    """Integers above 256 are separate objects, and buckets of such ids have higher numbers."""
    data = re.sub(rb' (ParentId|Id)="', rb' \1="1000000', slice_of(SAMPLES / "posts.xml"))

    def run() -> None:
        for _ in range(500):
            assert by_compiled(Outcome(), data)
            assert not by_compiled(Outcome(), data + b"<row/>")
            with suppress(TypeError):
                _add(data, bucket=lambda: (bytearray(), b""))

    assert_nothing_is_kept(run)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc to ask for memory")
def test_no_buffer_is_left_in_memory() -> None:
    """3,000 calls would leak 180 MB or more."""
    good = ROW.encode() % b'Body="%s" Tags="%s"' % (b"x" * 30_000, b"y" * 30_000)
    pages = []
    for data in (good, good + b"<row/>"):
        for times in (10, 3000):
            for _ in range(times):
                by_compiled(Outcome(), data)
            pages.append(int(Path("/proc/self/statm").read_text().split()[1]))
    assert (pages[-1] - pages[0]) * os.sysconf("SC_PAGE_SIZE") < 32 * 1024 * 1024


def _add(
    data: bytes = b'<row Id="1" PostTypeId="1"/>',
    posts: RecordBuffer | None = None,
    bucket: Callable[[], Any] = new_bucket,
    bits: int = BUCKET_BITS,
) -> object:
    from so2docs.parse import _core

    posts = posts or RecordBuffer(buckets=defaultdict(bucket))
    return _core.add_rows(data, posts.buckets, posts.pairs, bits, ())


def test_arguments_of_other_types_are_refused() -> None:
    with pytest.raises(TypeError):
        _add(bytearray())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bucket_bits is 63"):
        _add(bits=63)
    for wrong in (None, (), (bytearray(),), (b"", bytearray()), [bytearray(), bytearray()]):
        with pytest.raises(TypeError, match="two bytearrays"):
            _add(bucket=lambda wrong=wrong: wrong)  # type: ignore[misc]


def test_an_error_of_the_callback_is_passed_on() -> None:
    def fail() -> None:
        raise KeyError("bucket")

    with pytest.raises(KeyError, match="bucket"):
        _add(bucket=fail)


def test_a_bytearray_in_use_is_not_moved() -> None:
    posts = RecordBuffer()
    assert _add(posts=posts)
    with memoryview(posts.pairs), pytest.raises(BufferError):
        _add(posts=posts)


FREE_THREADED = """
import setuptools, sysconfig
known = sysconfig.get_config_var
sysconfig.get_config_var = lambda name: 1 if name == "Py_GIL_DISABLED" else known(name)
from distutils.core import run_setup
distribution = run_setup("setup.py", ["bdist_wheel"], stop_after="commandline")
wheel = distribution.get_command_obj("bdist_wheel")
wheel.ensure_finalized()
print(wheel.py_limited_api, distribution.ext_modules[0].py_limited_api)
"""


def test_free_threaded_python_has_no_stable_abi() -> None:
    """setuptools refuses to build for the stable ABI there."""
    result = run_python("-c", FREE_THREADED, cwd=CHECKOUT)
    assert result.stdout.split() == ["False", "False"]
