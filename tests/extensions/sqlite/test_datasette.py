"""Datasette serves a database unchanged, with the metadata of the sample."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.places import SAMPLES

import so2docs

pytest.importorskip("datasette", reason="datasette is not installed")


def get(database: Path, *urls: str) -> list[Any]:
    """Return a response of Datasette, as JSON or as a page."""
    from datasette.app import Datasette

    metadata = json.loads((SAMPLES / "datasette.json").read_text(encoding="utf-8"))

    async def ask() -> list[Any]:
        served = Datasette([str(database)], metadata=metadata)
        await served.invoke_startup()
        answers = [await served.client.get(url) for url in urls]
        assert [answer.status_code for answer in answers] == [200] * len(urls)
        return [
            answer.json() if ".json" in url else answer.text
            for url, answer in zip(urls, answers, strict=True)
        ]

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("datasette") / "sample.db"
    so2docs.to_sqlite(SAMPLES / "posts.xml", path, only="posts")
    return path


pytestmark = pytest.mark.filterwarnings("ignore")  # Warnings of Datasette and its dependencies.


def test_search_and_facets_on_tags(database: Path) -> None:
    rows, facets, answers = get(
        database,
        "/sample/questions.json?_search=sourdough+collapse&_shape=objects",
        "/sample/questions.json?_shape=objects",
        "/sample/answers.json?_search=counter&_shape=objects",
    )
    assert [row["Id"] for row in rows["rows"]] == [1]
    tags = {row["value"]: row["count"] for row in facets["facet_results"]["Tags"]["results"]}
    assert tags["bread"] >= 1
    assert answers["rows"]


def test_pages_show_title_and_licence(database: Path) -> None:
    [front] = get(database, "/")
    assert "CC BY-SA, by the users of the site" in front
    assert "Stack Exchange data dump" in front
