"""The state of a date, restored from a later dump."""

from pathlib import Path
from typing import Any

import pytest
from support.site_over_time import FIRST, LAST, Site

import so2docs
from so2docs.options.choices import Core

Row = dict[str, Any]


def split_posts(documents: list[Row]) -> dict[int, Row]:
    """Return questions and answers by id."""
    posts: dict[int, Row] = {}
    for document in documents:
        for post in (document, *document.pop("Answers")):
            posts[post["Id"]] = post
    return posts


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Site, Path]:
    site = Site(seed=7)
    return site, site.write(tmp_path_factory.mktemp("site") / "dump")


def restored(dump: Path, **options: Any) -> dict[int, Row]:
    with so2docs.documents(dump, jobs=1, **options) as documents:
        return split_posts([dict(document) for document in documents])


@pytest.mark.parametrize("core", ["python", "compiled"])
def test_every_evening_of_a_site_is_restored(site: tuple[Site, Path], core: Core) -> None:
    over_time, dump = site
    for day in range(FIRST, LAST + 1, 3):
        posts = restored(dump, as_of=f"2020-01-{day:02}", core=core)
        expected = over_time.expect(day)
        for post in expected.values():
            post["Body"] = f"<p>{post['Body']}</p>\n"
        assert posts == expected, day
