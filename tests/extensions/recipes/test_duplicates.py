"""Sets of several files: without a pair, and the sizes in their README."""

from pathlib import Path
from typing import Any

import pytest
from support.dumps import row, write_dump
from support.formats_read_back import jsonl

import so2docs

SITE = "tea.example.com"


def test_a_site_without_duplicates(tmp_path: Path) -> None:
    write_dump(tmp_path / "Posts.xml", row(Id=1, PostTypeId=1, Title="Why?", Body="<p>a</p>"))
    write_dump(tmp_path / "PostLinks.xml")
    report = so2docs.convert(
        tmp_path, tmp_path / "set", recipe="duplicates", site="tea.example.com"
    )
    assert report.records == 0
    assert jsonl(tmp_path / "set/title-title-pair/train.jsonl") == []


@pytest.mark.parametrize("card", [False, True])
@pytest.mark.parametrize(
    ("recipe", "file"), [("duplicates", "title-title-pair/train.jsonl"), ("beir", "corpus.jsonl")]
)
def test_the_readme_has_the_sizes_of_the_set(
    recipe: str, file: str, card: bool, tmp_path: Path
) -> None:
    """`datasets` takes a set at the same path with the same front matter from its cache."""
    site, output = tmp_path / SITE, tmp_path / "set"
    ids = range(1, 6)
    write_dump(
        site / "Posts.xml",
        *(row(Id=id_, PostTypeId=1, Title=f"Title {id_}", Body=f"<p>{id_}</p>") for id_ in ids),
    )
    write_dump(
        site / "PostLinks.xml",
        *(row(Id=id_, PostId=id_, RelatedPostId=1, LinkTypeId=3) for id_ in ids[1:]),
    )
    fronts = set()
    for dropped in ("9", "4,5"):
        options: Any = {"recipe": recipe, "drop_posts": dropped, "card": card, "site": SITE}
        so2docs.convert(site, output, force=True, **options)
        front = (output / "README.md").read_text(encoding="utf-8").split("\n---\n")[0]
        fronts.add(front)
        data = (output / file).read_bytes()
        size = f"num_bytes: {len(data)}\n    num_examples: {data.count(10)}\n"
        assert f"{size}  download_size: {len(data)}" in front
        assert front.count("num_examples: ") == front.count("  - split: ")
    assert len(fronts) == 2
