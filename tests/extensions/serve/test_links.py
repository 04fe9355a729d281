"""Links in posts lead to pages of the reader, for all its sites; websites of users are links."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from support.serve_site import asked, make_database

from so2docs.extensions.serve.links import parse_link

TEA, BEER = "tea.stackexchange.com", "alcohol.stackexchange.com"


def test_addresses_of_posts() -> None:
    for address, link in (
        ("/questions/1", (TEA, (1,))),
        ("//tea.stackexchange.com/questions/1/x/2?noredirect=1#2", (TEA, (2, 1))),
        ("http://www.tea.stackexchange.com/questions/1/x#5", (TEA, (5, 1))),
        ("https://beer.stackexchange.com/q/1/55", (BEER, (1,))),
        ("https://alcohol.stackexchange.com/a/2/", (BEER, (2,))),
        ("/posts/2", (TEA, (2,))),
        ("/questions/1/x#comment7_3", (TEA, (3, 1))),
        ("/posts/2/revisions", None),
        ("/posts/comments/7", None),
        ("/users/-1/community?tab=answers", None),
        ("/questions/tagged/a", None),
        ("https://tea.stackexchange.com", None),
        ("ftp://tea.stackexchange.com/q/1", None),
        ("https://[tea/q/1", None),
        ("q/1", None),
    ):
        assert parse_link(address, TEA) == link


@pytest.mark.parametrize("part", ["/", "//", "https://", '"/', "//a/q/1"])
def test_addresses_are_read_in_linear_time(part: str) -> None:
    def seconds(count: int) -> float:
        begun = time.thread_time()
        parse_link(part * count, TEA)
        return time.thread_time() - begun + 0.002

    assert min(seconds(80_000) / seconds(20_000) for _ in range(3)) < 8


def post(question_id: int, body: str, **more: Any) -> dict[str, Any]:
    created = {"CreationDate": "2020-01-01T00:00:00.000", "Score": 1, "Body": body}
    return {"Id": question_id, "Title": f"Question {question_id}", "Tags": ["hot"], "Answers": []
            } | created | more  # fmt: skip


def links(*addresses: str) -> str:
    return "".join(f'<p><a href="{address}">x</a></p>' for address in addresses)


LINKS = {
    "https://beer.stackexchange.com/questions/3/x": "/beer/questions/3",
    "https://alcohol.stackexchange.com/a/4/9": "/beer/a/4",
    "https://alcohol.stackexchange.com/questions/3/x/99#99": "/beer/questions/3",
    "https://alcohol.stackexchange.com/q/3#comment71_4": "/beer/a/4",
    "/questions/1#comment72_1": "/tea/questions/1",
    "/questions/1": "/tea/questions/1",
}
OUTSIDE = [
    "https://alcohol.stackexchange.com/q/999",
    "https://alcohol.stackexchange.com/tags/hot",
    "https://alcohol.stackexchange.com/users/8",
    "https://coffee.stackexchange.com/q/3",
]


def test_links_to_all_sites_of_the_reader(tmp_path: Path) -> None:
    answer = {"Id": 4, "ParentId": 3, "Score": 0, "Body": "b"}
    make_database([post(1, links(*LINKS, *OUTSIDE))], tmp_path / "tea.db", site=TEA)
    make_database([post(3, links("/q/3"), Answers=[answer], OwnerUserId=8)],
                      tmp_path / "beer.db", site=BEER)  # fmt: skip
    prefix = {"tea": "/tea.stackexchange.com", "beer": "/alcohol.stackexchange.com"}
    with asked(tmp_path / "tea.db", tmp_path / "beer.db") as client:
        page = client.get(f"{prefix['tea']}/questions/1").text
        hrefs = re.findall(r'<p><a href="([^"]*)"[^>]*>x</a></p>', page)
        paths = [re.sub(r"^/(\w+)/", lambda m: prefix[m[1]] + "/", path) for path in LINKS.values()]
        assert hrefs == [*paths, *OUTSIDE]
        for path in paths:
            assert client.get(path, follow_redirects=True).status_code == 200


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
