"""Rows become posts with the same types as in the oracle, one row at a time."""

import json

from hypothesis import example, given
from hypothesis import strategies as st
from support.dumps import START
from support.oracle import NUMBERS, nest

from so2docs.parse import posts
from so2docs.parse.keys import KEY

VALUES = st.one_of(
    st.sampled_from(["1", "2", "3", "-1", "", "|a|b|", "<a><b>", "|", "<>", "x", "+7", "007"]),
    st.sampled_from([str(2**63 - 1), str(2**63), str(-(2**63)), "9" * 400, "\u0664", "1e3", " 1"]),
    st.integers(-(2**70), 2**70).map(str),
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"<&'), max_size=5),
)
NAMES = st.sampled_from([*sorted(NUMBERS), "Tags", "Body", "Answers"])


@given(st.dictionaries(NAMES, VALUES, max_size=8))
@example({"Id": "1", "PostTypeId": "1", **{f"A{n}": "" for n in range(100)}})
@example({"Id": "5", "PostTypeId": "2", "ParentId": str(2**63), "Score": "1"})
def test_any_row(row: dict[str, str]) -> None:
    escaped = {n: v.replace("&", "&amp;").replace("<", "&lt;") for n, v in row.items()}
    attributes = " ".join(f'{name}="{value}"' for name, value in escaped.items())
    oracle = nest(START + f"<row {attributes} />".encode() + b"</posts>")
    actual = posts.RecordBuffer()
    posts.add(actual, [dict(row)])
    strays = [json.loads(line) for line in actual.strays.splitlines()]
    records = [(bytes(b.keys), json.loads(bytes(b.json))) for b in actual.buckets.values()]
    orphans = [stray for stray in oracle.strays if stray["reason"] == "question_not_in_dump"]
    assert strays == [stray for stray in oracle.strays if stray not in orphans]
    expected = [{**one} for one in oracle.documents] + [stray["row"] for stray in orphans]
    for one in expected:
        one.pop("Answers", None)
    assert [json_row for _, json_row in records] == expected
    assert actual.other_types.total() == sum(oracle.other_types.values())
    for keys, json_row in records:
        question_id, post_id, rank, size_and_kind = KEY.unpack(keys)
        is_question = json_row["PostTypeId"] == 1
        assert question_id == json_row["Id" if is_question else "ParentId"]
        assert post_id == json_row["Id"]
        assert size_and_kind & 15 == json_row["PostTypeId"]
        ranked = json_row.get("AcceptedAnswerId" if is_question else "Score")
        unranked = post_id if is_question else 0
        assert rank == (ranked if isinstance(ranked, int) else unranked)


def test_malformed_line() -> None:
    assert json.loads(posts.malformed_line(7, b"<row \xff")) == {
        "reason": "malformed_row",
        "offset": 7,
        "text": "<row \ufffd",
    }
