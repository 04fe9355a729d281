"""Profiles and badges of users, and descriptions of tags: in the database and in the reader."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.dumps import question, row, write_dump
from support.serve_site import asked

import so2docs
from so2docs.output.product import ExistingOutputError

ABOUT = (
    '<h2>Baker</h2><p>Ask <a href="/q/1">me</a> or <a href="javascript:x">x</a>.</p>'
    '<script>alert(1)</script><img src="https://example.org/x.png" onerror="y" alt="me">'
)
ADA = {"Location": "Ghent & <b>", "WebsiteUrl": "https://example.org/?a=1&b=2", "AboutMe": ABOUT}


WIKI = '<p>See <a href="/q/2">the second</a>.</p><script>alert(1)</script><img src="x" onerror="y">'
EXCERPT = "Of <b>tea</b> & water"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A dump with a described tag, and a user with badges and a profile."""
    site = tmp_path / "site"
    write_dump(
        site / "Posts.xml",
        question(1, Tags="|tea|plain|", OwnerUserId=7),
        question(2, Tags="|tea|", OwnerUserId=8, AnswerCount=0),
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
    write_dump(
        site / "Users.xml",
        row(Id=7, Reputation=1, DisplayName="Ada", **ADA),
        row(Id=8, Reputation=1, DisplayName="Leo"),
    )
    write_dump(site / "Badges.xml", *[row(Id=n, UserId=7, Class=1 + n % 2) for n in range(5)])
    return site


@pytest.fixture
def output(site: Path, tmp_path: Path) -> Path:
    so2docs.convert(site, tmp_path / "q.jsonl.gz", nest="badges", jobs=1)
    return tmp_path / "q.jsonl.gz"


def profiles(path: Path) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT Id, Location, WebsiteUrl, AboutMe FROM users ORDER BY Id")
    found = rows.fetchall()
    connection.close()
    return found


def test_profiles_of_the_users_in_the_documents(site: Path, output: Path, tmp_path: Path) -> None:
    """From a folder or a file, by the library or the command."""
    write_dump(
        site / "Users.xml",
        row(Id=7, Reputation=1, DisplayName="Ada", **ADA),
        row(Id=9, Reputation=1, DisplayName="Eve", AboutMe="SECRET"),
        row(Id="x", AboutMe="no user"),
        row(Id=7, DisplayName="Ada", Location="a repeated row"),
        b'  <row Id="7" AboutMe="a & b" />\n',
    )
    so2docs.to_sqlite(output, tmp_path / "a.db", profiles=site, jobs=1)
    run("sqlite", output, tmp_path / "b.db", "--profiles", site / "Users.xml", code=0)
    for name in ("a.db", "b.db"):
        assert profiles(tmp_path / name) == [(7, *ADA.values()), (8, None, None, None)]
        assert b"SECRET" not in (tmp_path / name).read_bytes()
    so2docs.to_sqlite(output, tmp_path / "without.db", jobs=1)
    assert {row[1:] for row in profiles(tmp_path / "without.db")} == {(None, None, None)}
    with pytest.raises(
        ExistingOutputError, match=r"without\.db: .* \(without profiles\)"
    ) as refused:
        so2docs.to_sqlite(output, tmp_path / "without.db", profiles=site, jobs=1)
    assert refused.value.state == "other options"


def test_users_left_out_have_no_profile(site: Path, tmp_path: Path) -> None:
    (tmp_path / "ids").write_text("7\n")
    output = tmp_path / "q.jsonl"
    so2docs.convert(site, output, nest="users", drop_users=tmp_path / "ids")
    so2docs.to_sqlite(output, tmp_path / "q.db", profiles=site, jobs=1)
    assert profiles(tmp_path / "q.db") == [(8, None, None, None)]
    for secret in (b"Ghent", b"Baker", b"example.org"):
        assert secret not in (tmp_path / "q.db").read_bytes()


def test_descriptions_and_badges(site: Path, output: Path, tmp_path: Path) -> None:
    database, tags = tmp_path / "site.db", tmp_path / "tags.jsonl.gz"
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
        [(badges,)] = connection.execute("SELECT Badges FROM users WHERE Id = 7")
        assert json.loads(badges) == {"Gold": 3, "Silver": 2, "Bronze": 0}
        connection.close()


def test_descriptions_are_of_one_site(site: Path, output: Path, tmp_path: Path) -> None:
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


def test_pages_of_users_and_tags(site: Path, output: Path, tmp_path: Path) -> None:
    database, texts = tmp_path / "q.db", so2docs.tags(site)
    host = "tea.stackexchange.com"
    so2docs.to_sqlite(output, database, profiles=site, tag_texts=texts, site=host)
    with asked(database) as client:
        page, other = (client.get(f"/users/{number}").text for number in (7, 8))
        tag, plain = (client.get(f"/questions?tag={name}").text for name in ("tea", "plain"))
        user = client.get("/users/7.json").json()["user"]
        missing = client.get("/about.json").json()["missing"]
    assert "Ghent &amp; &lt;b&gt;" in page
    website = 'rel="nofollow noopener noreferrer" href="https://example.org/?a=1&amp;b=2">'
    assert website in page
    assert ">Baker</h3>" in page
    assert '<a href="/questions/1" rel="noopener noreferrer nofollow">me</a>' in page
    assert "<dt>gold badges</dt><dd>3</dd>" in page
    assert "Of &lt;b&gt;tea&lt;/b&gt; &amp; water" in tag
    assert ">the second</a>" in tag
    for text in ("javascript:", "alert(1)", "onerror", "<img"):
        assert text not in page + tag
    assert 'id="about"' not in other
    assert "About this tag" not in plain
    assert {name: user[name] for name in ADA} == ADA
    assert user["Badges"] == {"Gold": 3, "Silver": 2, "Bronze": 0}
    assert not {"profiles of users", "badges", "descriptions of tags"} & {*missing}


WEBSITES = {
    "http://a.example": "http://a.example",
    "HTTPS://a.example/x": "HTTPS://a.example/x",
    "//a.example": "https://a.example",
    "https://tea.stackexchange.com/q/1": "/questions/1",
    "a.example": None,
    "mailto:a@b.example": None,
    "MailTo:a@b.example": None,
    "javascript:alert(1)": None,
    "\tjava\nscript:alert(1)": None,
    "data:text/html,x": None,
    "http://": None,
    "http://[": None,
}


def test_only_web_addresses_are_links(tmp_path: Path) -> None:
    documents = []
    for number, website in enumerate(WEBSITES, 1):
        owner = {"Id": number, "DisplayName": "Ada", "WebsiteUrl": website}
        documents.append({"Id": number, "OwnerUserId": number, "Owner": owner, "Answers": []})
    so2docs.to_sqlite(documents, tmp_path / "q.db", site="tea.stackexchange.com", jobs=1)
    with asked(tmp_path / "q.db") as client:
        for number, (website, address) in enumerate(WEBSITES.items(), 1):
            page = client.get(f"/users/{number}").text
            links = page.count('rel="nofollow noopener noreferrer"')
            assert links == (address is not None), website
            assert address is None or f'href="{address}"' in page
            assert website.strip() in page


def test_impossible_profiles(site: Path, output: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.jsonl"
    so2docs.convert(site / "Posts.xml", plain, jobs=1)
    (site / "Users.xml").rename(tmp_path / "Users.xml")
    for arguments, code, message in (
        ((plain, "--profiles", tmp_path / "Users.xml"), 1, "the documents have no users"),
        ((output, "--profiles", site), 1, "give a folder or an archive with Users.xml"),
        ((output, "--profiles", tmp_path / "no"), 1, "no: cannot be read"),
        ((output, "--profiles", tmp_path, "--site-field", "Site"), 2, "apply to one site"),
    ):
        done = run("sqlite", arguments[0], tmp_path / "q.db", *arguments[1:])
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
        assert message in done.stderr
        assert not (tmp_path / "q.db").exists()


def test_a_served_archive_has_profiles(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for table in ("Comments", "PostLinks", "Votes"):
        write_dump(site / f"{table}.xml")
    write_dump(site / "Users.xml", row(Id=7, Reputation=1, DisplayName="Ada", **ADA))
    with asked(site) as client:
        assert "Ghent" in client.get("/users/7").text
