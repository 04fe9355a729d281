"""Descriptions of tags and badges of users: in the database, and on the pages of the reader."""

import json
import sqlite3
from pathlib import Path

import pytest
from support.command import run
from support.dumps import question, row, write_dump
from support.serve_site import asked

import so2docs

WIKI = '<p>See <a href="/q/2">the second</a>.</p><script>alert(1)</script><img src="x" onerror="y">'
EXCERPT = "Of <b>tea</b> & water"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A dump with tags, one of them described, and a user with badges."""
    site = tmp_path / "site"
    site.mkdir()
    write_dump(
        site / "Posts.xml",
        question(1, Tags="|tea|plain|", OwnerUserId=7),
        question(2, Tags="|tea|", OwnerUserId=7, AnswerCount=0),
        row(Id=3, PostTypeId=4, Body=EXCERPT),
        row(Id=4, PostTypeId=5, Body=WIKI),
        row(Id=5, PostTypeId=5, Body="Of a tag without questions"),
    )
    write_dump(
        site / "Tags.xml",
        row(Id=1, TagName="tea", Count=2, ExcerptPostId=3, WikiPostId=4),
        row(Id=2, TagName="plain", Count=1),
        row(Id=3, TagName="rare", Count=0, WikiPostId=5),
    )
    write_dump(site / "Users.xml", row(Id=7, Reputation=1, DisplayName="Ada"))
    write_dump(site / "Badges.xml", *[row(Id=n, UserId=7, Class=1 + n % 2) for n in range(5)])
    return site


def test_a_database_describes_tags_and_shows_them(site: Path, tmp_path: Path) -> None:
    database, tags = tmp_path / "site.db", tmp_path / "tags.jsonl.gz"
    output = tmp_path / "q.jsonl.gz"
    so2docs.convert(site, output, nest="badges", jobs=1)
    so2docs.to_sqlite(output, database, tag_texts=so2docs.tags(site), jobs=1)
    assert run("tags", site, tags).returncode == 0
    again = tmp_path / "again.db"
    assert run("sqlite", output, again, "--tag-texts", tags).returncode == 0
    direct = tmp_path / "direct.db"
    assert run("sqlite", site, direct, "--nest", "badges").returncode == 0
    for path in (database, again, direct):
        connection = sqlite3.connect(path)
        rows = connection.execute("SELECT Name, Questions, Excerpt, Wiki FROM tags ORDER BY Name")
        assert rows.fetchall() == [("plain", 1, None, None), ("tea", 2, EXCERPT, WIKI)]
        [(badges,)] = connection.execute("SELECT Badges FROM users")
        assert json.loads(badges) == {"Gold": 3, "Silver": 2, "Bronze": 0}
        connection.close()
    with asked(database) as client:
        page, other = (client.get(f"/questions?tag={tag}").text for tag in ("tea", "plain"))
        user, profile = client.get("/users/7").text, client.get("/users/7.json").json()
        missing = client.get("/about.json").json()["missing"]
    assert "Of &lt;b&gt;tea&lt;/b&gt; &amp; water" in page
    assert ">the second</a>" in page
    assert "alert(1)" not in page
    assert "onerror" not in page
    assert "About this tag" not in other
    assert not {"badges", "descriptions of tags"} & set(missing)
    assert "<dt>gold badges</dt><dd>3</dd>" in user
    assert profile["user"]["Badges"] == {"Gold": 3, "Silver": 2, "Bronze": 0}


def test_descriptions_are_of_one_site(site: Path, tmp_path: Path) -> None:
    output = tmp_path / "q.jsonl.gz"
    so2docs.convert(site, output, jobs=1)
    with pytest.raises(so2docs.OptionError, match="apply to one site"):
        so2docs.to_sqlite(
            output, tmp_path / "a.db", tag_texts=so2docs.tags(site), site_field="Site"
        )
    result = run("sqlite", output, tmp_path / "a.db", "--tag-texts", tmp_path / "nosuch.jsonl")
    assert (result.returncode, "Traceback" in result.stderr) == (1, False)
    assert not (tmp_path / "a.db").exists()
    damaged = tmp_path / "odd.jsonl"
    for line in ('{"Wiki": "no name"}', '"x"', "5"):
        damaged.write_text(f"{line}\n")
        result = run("sqlite", output, tmp_path / "a.db", "--tag-texts", damaged)
        assert (result.returncode, "Traceback" in result.stderr) == (1, False), result.stderr
