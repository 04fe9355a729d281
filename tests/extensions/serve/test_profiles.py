"""Websites of users: only web addresses are links."""

from pathlib import Path

from support.serve_site import asked, make_database

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
