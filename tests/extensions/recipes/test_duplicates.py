"""The recipe `duplicates`: its records, and the join of questions with their originals."""

from pathlib import Path
from typing import Any

import pytest
from support.dumps import row, write_dump
from support.formats_read_back import jsonl

import so2docs

SITE = "tea.example.com"


def test_pairs_and_their_attribution(tmp_path: Path) -> None:
    """Links may be repeated, lead to missing questions or to the question itself."""
    posts = [
        row(Id=1, PostTypeId=1, Title="Why?", Body="<p>first</p>", CreationDate="2020-01-01"),
        row(Id=2, PostTypeId=1, Title="How?", Body="", CreationDate="2020-01-02"),
        row(Id=3, PostTypeId=1, Title="When?", Body="<p>third</p>", CreationDate="2020-01-03"),
        row(Id=4, PostTypeId=2, ParentId=1, Body="<p>answer</p>", CreationDate="2020-01-04"),
    ]
    pairs = [(3, 1), (1, 2), (3, 1), (3, 3), (3, 4), (3, 9), (2, 1), (3, 2)]
    links = [row(Id=i, PostId=a, RelatedPostId=b, LinkTypeId=3) for i, (a, b) in enumerate(pairs)]
    links.append(row(Id=20, PostId=1, RelatedPostId=3, LinkTypeId=1))
    write_dump(tmp_path / "Posts.xml", *posts)
    write_dump(tmp_path / "PostLinks.xml", *links)
    report = so2docs.convert(
        tmp_path, tmp_path / "set", recipe="duplicates", site="tea.example.com"
    )
    assert report.records == 4
    titles = [tuple(row.values()) for row in jsonl(tmp_path / "set/title-title-pair/train.jsonl")]
    assert titles == [("Why?", "How?"), ("How?", "Why?"), ("When?", "Why?"), ("When?", "How?")]
    bodies = [tuple(row.values()) for row in jsonl(tmp_path / "set/body-body-pair/train.jsonl")]
    assert bodies == [("first", ""), ("", "first"), ("third", "first"), ("third", "")]
    first = jsonl(tmp_path / "set/post-post-pair/train.jsonl")[0]
    assert first == {"post1": "Why?\n\nfirst", "post2": "How?"}
    sides = jsonl(tmp_path / "set/attribution/train.jsonl")
    assert [[side["qid"] for side in row.values()] for row in sides] == [
        [1, 2],
        [2, 1],
        [3, 1],
        [3, 2],
    ]
    assert sides[0]["question1"]["license"] == "CC BY-SA 4.0"


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
