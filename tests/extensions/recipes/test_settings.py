"""Values of settings at their boundary."""

from pathlib import Path
from typing import Any

import pytest
from support.dumps import answer, question, write_dump

import so2docs


@pytest.mark.parametrize(
    ("settings", "records"),
    [
        ({"min_margin": 3}, 1),
        ({"min_margin": 4}, 0),
    ],
)
def test_a_setting_at_the_boundary_passes(
    settings: dict[str, Any], records: int, tmp_path: Path
) -> None:
    """The scores of the pair, log2(1 + votes), differ by 3."""
    dump = write_dump(
        tmp_path / "Posts.xml",
        question(1, Title="t", Body="b", Tags="|a|"),
        answer(2, 1, Score=7, Body="b"),
        answer(3, 1, Score=0, Body="b"),
    )
    report = so2docs.convert(
        dump,
        tmp_path / "pairs.jsonl",
        recipe="pairs",
        settings=settings,
        site="beer.stackexchange.com",
        jobs=1,
    )
    assert report.records == records
