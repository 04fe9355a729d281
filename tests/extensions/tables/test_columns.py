"""Columns of a slice: the compiled core agrees with the reference on the same bytes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.places import SAMPLES
from support.twins import (
    COLUMNS_LEFT,
    COLUMNS_TAKEN,
    LEFT,
    ROW,
    TAKEN,
    is_taken_in_columns,
    slice_of,
)

from so2docs.parse import core
from so2docs.schema import DUMP, RESERVED

pytestmark = pytest.mark.skipif(core.built() == "python", reason="no C compiler")

_POSTS_ONLY = {f'{name}="x"' for name in RESERVED} | {'Site="x"'}


def test_taken() -> None:
    rows = [*TAKEN, *COLUMNS_TAKEN]
    for row in rows:
        for table in DUMP:
            is_taken_in_columns(table, (ROW % row).encode())
    odd = [f'<row Id="7" {row} /><row Id="8"/>\r\n' for row in rows]
    assert [data for data in odd if not is_taken_in_columns("badges", data.encode())] == []


_TOO_MANY = 65
"""Attributes of a row of posts; here only those without a column are limited."""


def test_left() -> None:
    """Rows that are not canonical change nothing; only documents have reserved names."""
    rows = [row for row in (*LEFT, *COLUMNS_LEFT) if row.count("=") < _TOO_MANY - 2]
    for row in rows:
        data = (ROW % row).encode(errors="surrogatepass")
        taken = [is_taken_in_columns(table, data) for table in ("posts", "badges", "comments")]
        assert all(taken) == (row in _POSTS_ONLY), row


def test_rows_without_an_id_are_left() -> None:
    assert not is_taken_in_columns("tags", b'<row TagName="a"/>')
    assert not is_taken_in_columns("tags", b'<row Id="1"/><row TagName="a"/>')
    assert is_taken_in_columns("tags", b"")


def test_columns_missing_from_some_rows() -> None:
    rows = [
        f'<row Id="{n}"'
        + (f' Score="{n}"' if n % 3 else "")
        + (f' Tags="|a{n}|b|"' if n % 2 else "")
        + (f' Body="{n}"' if n % 5 == 0 else "")
        + (f' New="{n}"' if n % 7 == 0 else "")
        + "/>"
        for n in range(1000)
    ]
    assert is_taken_in_columns("posts", "\n".join(rows).encode())


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.xml")), ids=lambda path: path.stem)
def test_samples(sample: str) -> None:
    """Rows are tested one by one, so that a row for the reference does not hide others."""
    for line in slice_of(sample).splitlines():  # type: ignore[arg-type]
        is_taken_in_columns("posts", line)


VALUES = st.one_of(
    st.text(st.sampled_from('0123456789-T:.|"&<>\\é\n\t x'), max_size=30),
    st.datetimes().map(lambda date: date.isoformat(timespec="milliseconds")),
    st.integers(-(10**19), 10**19).map(str),
    st.sampled_from(["True", "False", "", "|a|b|", "<a><b>"]),
)


@settings(max_examples=100)
@given(
    st.sampled_from(sorted(DUMP)),
    st.lists(st.dictionaries(st.integers(0, 30), VALUES, max_size=8), max_size=6),
)
def test_any_values(table: str, attributes: list[dict[int, str]]) -> None:
    names = [*DUMP[table].attributes, "New", "Other"]
    rows = []
    for number, values in enumerate(attributes):
        texts = {names[at % len(names)]: value for at, value in values.items()} | {
            "Id": str(number)
        }
        written = " ".join(f'{name}="{_escaped(text)}"' for name, text in texts.items())
        rows.append(f"<row {written} />")
    is_taken_in_columns(table, "\n".join(rows).encode())


def _escaped(text: str) -> str:
    for character, reference in {"&": "&amp;", "<": "&lt;", '"': "&quot;", "\n": "&#xA;"}.items():
        text = text.replace(character, reference)
    return text
