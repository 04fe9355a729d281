"""Documents, flat tables and selections have the same questions for the same filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.dumps import row, write_dump
from support.filtering import filtered
from support.flat_oracle import read_back

import so2docs
from so2docs.schema import DUMP

VALUES = {
    "Score": st.sampled_from(["-2", "0", "3", "+3", "many"]),
    "Tags": st.sampled_from(["", "|a|", "<a><B>", "|A|c|", "a"]),
    "CreationDate": st.sampled_from(
        [
            *("2020-01-01T00:00:00.000", "2021-05-05T12:00:00.5", "2021-05-05T12:00:00"),
            *("2021-02-30T00:00:00", "2021-02", ""),
        ]
    ),
    "AnswerCount": st.sampled_from(["0", "1", "2", "none"]),
    "AcceptedAnswerId": st.sampled_from(["12", "x"]),
    "Body": st.sampled_from(["text", "a longer text", "\u00fc\u00fc\u00fc"]),
}
QUESTIONS = st.lists(st.fixed_dictionaries({}, optional=VALUES), min_size=1, max_size=9)
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "tags": st.lists(st.sampled_from(["a", "b", "C", "?"]), min_size=1),
        "min_score": st.integers(-2, 4),
        "min_answers": st.integers(0, 2),
        "max_answers": st.integers(0, 2),
        "answered": st.booleans(),
        "accepted": st.booleans(),
        "since": st.sampled_from(["2020-01-01", "2021-05-05T12:00:00.500"]),
        "until": st.sampled_from(["2021-05-05T12:00:00.500", "2022"]),
        "sample": st.sampled_from(["50%", "80%"]),
    },
)
OF_ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "max_body": st.sampled_from([4, 6]),
        "min_answer_score": st.integers(-2, 4),
        "sample_size": st.integers(1, 5),
    },
)


def ids_of(documents: Any) -> list[int]:
    return [document["Id"] for document in documents]


@settings(max_examples=14)
@given(questions=QUESTIONS, options=FILTERS, of_answers=OF_ANSWERS)
def test_two_ways_select_the_same_questions(
    questions: list[dict[str, str]],
    options: dict[str, Any],
    of_answers: dict[str, Any],
    tmp_path: Path,
) -> None:
    if "sample" in options:
        of_answers.pop("sample_size", None)
    if options.get("since", "") >= options.get("until", "3"):
        del options["since"]
    posts = [row(Id=n, PostTypeId=1, **values) for n, values in enumerate(questions, 1)]
    posts += [
        row(Id=n + 10, PostTypeId=2, ParentId=n, **values) for n, values in enumerate(questions, 1)
    ]
    dump = write_dump(tmp_path / "Posts.xml", *posts)
    so2docs.convert(dump, tmp_path / "all.jsonl.gz", jobs=1, force=True)
    with so2docs.open(tmp_path / "all.jsonl.gz") as docs:
        everything = list(docs.values())
    documents = list(so2docs.documents(dump, jobs=1, **options, **of_answers))
    so2docs.tables(
        dump, tmp_path / "flat", jobs=1, format="jsonl", force=True, **options, **of_answers
    )
    if not options.keys() | of_answers.keys() <= {"since", "until"}:
        rows = read_back(tmp_path / "flat", DUMP["posts"], "jsonl")
        posts_of = [post for one in documents for post in (one, *one["Answers"])]
        assert sorted(ids_of(rows)) == sorted(ids_of(posts_of))
    if options.keys().isdisjoint({"since", "until"}):  # The oracle compares dates as texts.
        assert documents == filtered(everything, **options, **of_answers)
