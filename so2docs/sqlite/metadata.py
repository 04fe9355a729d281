"""What Datasette shows with a database: titles, licence, source, facets, search, queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from so2docs.sqlite.about import About
from so2docs.sqlite.layout import quoted

_TITLES = {
    "questions": "Questions: the attributes of their rows under the dump's own names",
    "answers": "Answers; ParentId is the question",
    "tags": "Tags, with the number of their questions",
    "question_tags": "Which question has which tag",
    "comments": "Comments on questions and answers",
    "links": "Links between questions: related ones and duplicates",
    "history": "Revisions and other events of posts: an entry for what one user did at once",
    "votes": "Votes, counted by post and type",
    "users": "Users whom posts and comments name",
    "texts": "Titles, tags and bodies as text: what full-text search finds words in",
}


def metadata_name(database: str) -> str:
    """The name of the metadata next to a database."""
    return str(Path(database).with_suffix(".metadata.json"))


def metadata(database: str, about: About) -> bytes:
    """The metadata of a database, which has its name or gets it soon, as JSON."""
    names = [site.title for site in about.sites]
    title = names[0] if len(names) == 1 else f"{len(names)} sites"
    hosts = [site.host for site in about.sites if site.host]
    values = {
        "title": f"{title}: questions and answers",
        "license": "CC BY-SA, by the users of the site",
        "license_url": "https://creativecommons.org/licenses/by-sa/4.0/",
        "source": "Stack Exchange data dump",
        "source_url": f"https://{hosts[0]}/" if hosts else "https://stackexchange.com/sites",
        "databases": {Path(database).stem: {"tables": _tables(about), "queries": _queries(about)}},
    }
    return json.dumps(values, indent=2, ensure_ascii=False).encode() + b"\n"


def _tables(about: About) -> dict[str, Any]:
    tables: dict[str, Any] = {
        name: {"description": _TITLES.get(name, f"Rows of {name} that posts hold")}
        for name in (*about.rows, *(["texts"] if about.search != "none" else []))
    }
    row = "Id" if about.site_field is None else "Row"
    site = [] if about.site_field is None else [about.site_field]
    tables["questions"] |= {
        "label_column": "Title",
        "sort_desc": "Score",
        "facets": [*site, {"array": "Tags"}],
    }
    tables["answers"] |= {"sort_desc": "Score"}
    tables["tags"] |= {"sort_desc": "Questions"}
    if "users" in tables:
        tables["users"] |= {"label_column": "DisplayName", "sort_desc": "Reputation"}
    searched = {"all": ("questions", "answers", "texts"), "titles": ("questions", "texts")}
    for name in searched.get(about.search, ()):
        tables[name] |= {"fts_table": "search", "fts_pk": row}
    return tables


def _queries(about: About) -> dict[str, Any]:
    """Canned queries."""
    site = about.site_field
    column = "" if site is None else f"{quoted(site)}, "
    also = "" if site is None else f" AND q.{quoted(site)} = t.{quoted(site)}"
    queries = {
        "questions_of_a_tag": {
            "title": "Questions of a tag, highest score first",
            "sql": "SELECT q.* FROM question_tags t JOIN questions q ON q.Id = t.QuestionId"
            f"{also} WHERE t.Tag = :tag ORDER BY q.Score DESC LIMIT 100",
        },
        "unanswered": {
            "title": "Questions without an answer, highest score first",
            "sql": "SELECT * FROM questions q WHERE NOT EXISTS (SELECT 1 FROM answers a WHERE "
            f"a.ParentId = q.Id{also.replace('t.', 'a.')}) ORDER BY Score DESC LIMIT 100",
        },
        "posts_of_a_user": {
            "title": "Questions and answers of a user, latest first",
            "sql": f"SELECT 'question' AS Kind, {column}Id, CreationDate, Score, Title "
            "FROM questions WHERE OwnerUserId = :user UNION ALL "
            f"SELECT 'answer', {column}Id, CreationDate, Score, NULL FROM answers "
            "WHERE OwnerUserId = :user ORDER BY CreationDate DESC LIMIT 100",
        },
        "questions_by_month": {
            "title": "Questions by month",
            "sql": f"SELECT {column}substr(CreationDate, 1, 7) AS Month, count(*) AS Questions "
            f"FROM questions GROUP BY {column}Month ORDER BY {column}Month",
        },
    }
    if about.search != "none":
        row = "Id" if site is None else "Row"
        queries["find"] = {
            "title": "Find words; the best first",
            "sql": f"SELECT {'' if site is None else f'texts.{quoted(site)}, '}texts.Id, "
            "texts.Title, snippet(search, -1, '[', ']', ' … ', 24) AS Snippet FROM search "
            f"JOIN texts ON texts.{row} = search.rowid WHERE search MATCH :words "
            "ORDER BY rank LIMIT 50",
        }
    return queries
