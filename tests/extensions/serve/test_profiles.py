"""Profiles and badges of users, and descriptions of tags: in the database and in the reader."""

from pathlib import Path

import pytest
from support.dumps import question, row, write_dump
from support.serve_site import asked, make_database

import so2docs

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


def test_pages_of_users_and_tags(site: Path, tmp_path: Path) -> None:
    database = tmp_path / "q.db"
    so2docs.to_sqlite(site, database, site="tea.stackexchange.com")
    with asked(database) as client:
        page, other = (client.get(f"/users/{number}").text for number in (7, 8))
        tag, plain = (client.get(f"/questions?tag={name}").text for name in ("tea", "plain"))
        about = client.get("/about").text
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
    assert "comments, links between questions, votes; posts deleted on the site" in about


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
    make_database(documents, tmp_path / "q.db", site="tea.stackexchange.com")
    with asked(tmp_path / "q.db") as client:
        for number, (website, address) in enumerate(WEBSITES.items(), 1):
            page = client.get(f"/users/{number}").text
            links = page.count('rel="nofollow noopener noreferrer"')
            assert links == (address is not None), website
            assert address is None or f'href="{address}"' in page
            assert website.strip() in page
