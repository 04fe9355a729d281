"""Tags with their descriptions, on an unusual site and on published dumps."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support.command import run
from support.dumps import question, row, unpacked, write_dump
from support.places import DUMPS, NO_DUMPS

import so2docs

POSTS = [
    row(Id=9, PostTypeId=5, Body="<p>Of tea & <b>more</b></p>", CreationDate="2020-01-02"),
    question(1, Body='It says PostTypeId="4" and <row Id="7" PostTypeId="5" />'),
    row(Id=8, Body="Hot water", OwnerUserId=5, Score=0, PostTypeId=4, ContentLicense="CC BY-SA"),
    row(Id=7, PostTypeId=3, Body="A wiki of another kind"),
    row(Id=8, PostTypeId=4, Body="The same Id again"),
    row(PostTypeId=4, Body="Without an Id"),
    row(Id=10, PostTypeId=4, Body=""),
    row(Id=11, PostTypeId=5, Body="Of no tag"),
]
TAGS = [
    row(Id=2, TagName="tea", Count=12, ExcerptPostId=8, WikiPostId=9, IsRequired="True"),
    row(Id=1, TagName="c++", Count=3, ExcerptPostId=10, WikiPostId=404, IsModeratorOnly="odd"),
    row(Id=3, TagName="plain", Count="many", New="x"),
    row(Id=4, TagName="shared", Count=0, ExcerptPostId=8, WikiPostId="x"),
    row(Id=5, Count=1),
    row(TagName="without Id"),
    row(Id="x", TagName="odd Id"),
]
TEA_POST = {"Id": 8, "OwnerUserId": 5, "Score": 0, "PostTypeId": 4, "ContentLicense": "CC BY-SA"}
TEA_WIKI = {"Id": 9, "PostTypeId": 5, "CreationDate": "2020-01-02"}
EXPECTED = [
    {
        **{"Id": 2, "Name": "tea", "Count": 12, "ExcerptPostId": 8, "WikiPostId": 9},
        **{"IsRequired": True, "Excerpt": "Hot water", "Wiki": "<p>Of tea & <b>more</b></p>"},
        **{"ExcerptPost": TEA_POST, "WikiPost": TEA_WIKI},
    },
    {
        **{"Id": 1, "Name": "c++", "Count": 3, "ExcerptPostId": 10, "WikiPostId": 404},
        **{"IsModeratorOnly": "odd", "ExcerptPost": {"Id": 10, "PostTypeId": 4}},
    },
    {"Id": 3, "Name": "plain", "Count": "many", "New": "x"},
    {
        **{"Id": 4, "Name": "shared", "Count": 0, "ExcerptPostId": 8, "WikiPostId": "x"},
        **{"Excerpt": "Hot water", "ExcerptPost": TEA_POST},
    },
]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A dump with posts that describe tags, and others that only seem to."""
    site = tmp_path / "site"
    write_dump(site / "Posts.xml", *POSTS)
    write_dump(site / "Tags.xml", *TAGS)
    return site


def test_every_tag_and_every_row(site: Path, tmp_path: Path) -> None:
    for jobs in (1, 2):
        with so2docs.tags(site, jobs=jobs) as tags:
            assert [json.dumps(tag) for tag in tags] == [json.dumps(tag) for tag in EXPECTED]
        assert tags.report.as_dict() == {
            **{"rows": 7, "tags": 4, "excerpts": 2, "wikis": 1, "posts": 5, "unused": 2},
            **{"missing": 1, "filtered": 0},
            "strays": {"tag_invalid_id": 1, "tag_missing_id": 1, "tag_missing_name": 1},
        }
    for end in (".jsonl", ".jsonl.gz", ".jsonl.zst"):
        result = run("tags", site, tmp_path / f"tags{end}", code=0)
        assert "with an excerpt      2\n" in result.stderr
        text = unpacked(tmp_path / f"tags{end}")
        assert [json.loads(line) for line in text.splitlines()] == EXPECTED


def test_attributes_named_like_keys_of_documents(site: Path) -> None:
    names = ("Name", "Excerpt", "Wiki", "ExcerptPost", "WikiPost", "Other")
    mine = dict.fromkeys(names, "mine")
    tag = row(Id=2, TagName="tea", Count=1, ExcerptPostId=8, WikiPostId=9, **mine)
    write_dump(site / "Tags.xml", tag)
    with so2docs.tags(site) as tags:
        [document] = tags
    assert document.pop("Other") == mine
    assert [document[name] for name in ("Name", "Excerpt")] == ["tea", "Hot water"]
    assert document["ExcerptPost"] == TEA_POST


def test_invalid_outputs_and_unreadable_rows(site: Path, tmp_path: Path) -> None:
    output = tmp_path / "tags.jsonl"
    output.write_text("mine")
    refused = run("tags", site, output)
    assert (refused.returncode, output.read_text()) == (1, "mine")
    assert run("tags", site, tmp_path / "tags.csv").returncode == 2
    assert run("tags", "-").returncode == 2
    write_dump(site / "Posts.xml", *POSTS, b'  <row Id="3" PostTypeId="4" Body="&nosuch;" />\n')
    with pytest.raises(so2docs.MalformedDumpError, match=r"Posts\.xml.*line 11"):
        list(so2docs.tags(site))
    damaged = run("tags", site, output, "--force")
    assert (damaged.returncode, output.read_text()) == (1, "mine")
    (site / "Tags.xml").unlink()
    with pytest.raises(so2docs.DumpError, match=r"has no Tags\.xml"):
        list(so2docs.tags(site))
    with pytest.raises(so2docs.DumpError, match=r"archive with Posts\.xml and Tags\.xml$"):
        list(so2docs.tags(site / "Posts.xml"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["site", "tags.jsonl"]


@pytest.mark.long
@pytest.mark.skipif(not list(DUMPS.glob("archives/*.7z")), reason=NO_DUMPS)
@pytest.mark.parametrize("source", sorted(DUMPS.glob("archives/*.7z")), ids=lambda path: path.name)
def test_published_tags(source: Path, tmp_path: Path) -> None:
    py7zr = pytest.importorskip("py7zr", reason=f"py7zr is needed to unpack {source.name}")
    with py7zr.SevenZipFile(source) as archive:
        archive.extract(path=tmp_path, targets=["Posts.xml", "Tags.xml"])
    posts = {post.get("Id"): post.attrib for post in _rows(tmp_path / "Posts.xml")}
    expected = list(_rows(tmp_path / "Tags.xml"))
    for dump, jobs in ((source, 2), (tmp_path, 1)):
        with so2docs.tags(dump, jobs=jobs) as tags:
            actual = list(tags)
        assert [tag["Name"] for tag in actual] == [tag.get("TagName") for tag in expected]
        for tag, element in zip(actual, expected, strict=True):
            assert tag["Count"] == int(element.get("Count", ""))
            for key in ("Excerpt", "Wiki"):
                post: Any = posts.get(element.get(f"{key}PostId"), {})
                assert tag.get(key, "") == post.get("Body", "")
                about = tag.get(f"{key}Post", {})
                assert {name: str(value) for name, value in about.items()} == {
                    name: value for name, value in post.items() if name != "Body"
                }
        kinds = [post["PostTypeId"] for post in posts.values()]
        assert tags.report.posts == kinds.count("4") + kinds.count("5")


def _rows(path: Path) -> Any:
    return ElementTree.parse(path).getroot()
