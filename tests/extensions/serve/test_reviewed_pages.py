"""Pages of a small invented site with everything that pages show, compared with reviewed files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from support.golden import compare
from support.places import SAMPLES
from support.serve_site import asked

import so2docs

READER = SAMPLES / "reader"
PAGES = {
    "front": "/",
    "about": "/about",
    "questions": "/questions",
    **{f"question-{number}": f"/questions/{number}" for number in range(1, 8)},
    "tag-with-description": "/questions?tag=tea",
    "tag": "/questions?tag=plain",
    "unanswered": "/questions?unanswered=1",
    "tags": "/tags",
    "tags-like": "/tags?like=LA",
    "users": "/users",
    **{f"user-{number}": f"/users/{number}" for number in (5, 7, 8, 9)},
    "search": "/search?q=word+two",
    "help": "/search",
}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    database = tmp_path_factory.mktemp("pages") / "q.db"
    everything = "posts,comments,links,votes,users,badges,tags"
    so2docs.to_sqlite(READER, database, site="ja.stackoverflow.com", only=everything, jobs=1)
    with asked(database) as http_client:
        yield http_client


def main_of(page: str) -> str:
    """Return the title and the content of a page, without what differs between machines."""
    [title], [main] = (re.findall(f"<{name}.*?</{name}>", page, re.S) for name in ("title", "main"))
    main = re.sub(r"(?<=<bdi>)/\S*/samples", "…", main)
    return f"{title}\n{main.replace(so2docs.__version__, 'VERSION')}\n"


@pytest.mark.parametrize("name", PAGES)
def test_pages(name: str, client: Any) -> None:
    answer = client.get(PAGES[name])
    assert answer.status_code == 200
    for text in ("javascript:", "alert(1)", "onerror", "<img", "\u202e", "\u2066"):
        assert text not in answer.text
    compare(main_of(answer.text), str(READER / "pages" / f"{name}.html"))


@pytest.mark.parametrize(
    "path", ["/search?q=word%20{}", "/search?q=[{}]", "/questions?tag={}", "/tags?like={}", "/{}"]
)
def test_marks_of_direction_in_addresses_are_replaced(path: str, client: Any) -> None:
    page = client.get(path.format("a\u202eb\u2066")).text
    assert not set("\u202e\u2066") & set(page)
    assert "\ufffd" in page or path == "/{}"
