"""What recipes ask about a post that comes with attribution."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from so2docs.domain import rank_by_votes
from so2docs.recipes.attribution import credit
from so2docs.recipes.recipe import INTEGER, TEXT, Schema, array, record

Post = dict[str, Any]

AUTHORS: Schema = array({**record(name=TEXT, url=TEXT), "required": ["name"]})

METADATA: dict[str, Schema] = {
    "url": TEXT,
    "site": TEXT,
    "tags": array(TEXT),
    "score": INTEGER,
    "licenses": array(TEXT),
    "authors": AUTHORS,
}
"""What `metadata` says of a question."""

POST: dict[str, Schema] = {
    "qid": INTEGER,
    "post_id": INTEGER,
    "url": TEXT,
    "site": TEXT,
    "title": TEXT,
    "tags": array(TEXT),
}
"""What `metadata` says of the post that a part is from."""

ORIGIN: dict[str, Schema] = {"license": TEXT, "authors": AUTHORS, "created": TEXT}
"""What `metadata` says of a post or a revision by itself."""

FIELDS = (
    "Id",
    "Title",
    "Body",
    "Score",
    "Tags",
    "AcceptedAnswerId",
    "Answers.Id",
    "Answers.Body",
    "Answers.Score",
)
"""What most recipes read."""


def score(post: Post) -> int:
    """Votes for a post less those against it; 0 where it has none."""
    value = post.get("Score", 0)
    return value if isinstance(value, int) else 0


def text(post: Post) -> str:
    """The body of a post."""
    return str(post.get("Body", ""))


def prompt(question: Post) -> str:
    """A question as what is asked: title and body."""
    return "\n\n".join(part for part in (question.get("Title"), text(question)) if part)


def is_accepted(answer: Post, question: Post) -> bool:
    """Whether who asked has accepted it."""
    return bool(answer["Id"] == question.get("AcceptedAnswerId"))


def rank(question: Post) -> list[Post]:
    """The answers: the accepted one first, then by falling score, then by id."""
    return sorted(
        question.get("Answers", ()),
        key=lambda answer: (
            *rank_by_votes(answer["Id"], score(answer), question.get("AcceptedAnswerId")),
            answer["Id"],
        ),
    )


def preference_score(answer: Post, question: Post) -> int:
    """How much an answer was liked, on a scale for preference models.

    The logarithm to base 2 of one more than the score, rounded, and one more if it was accepted; -1
    for a negative score: Askell and others, A General Language Assistant as a Laboratory for
    Alignment (https://arxiv.org/abs/2112.00861), section 4.1.
    """
    votes = score(answer)
    if votes < 0:
        return -1
    return round(math.log2(1 + votes)) + is_accepted(answer, question)


def site_url(question: Post) -> str:
    """The address of the site, of a question's address."""
    return str(question["Url"]).rpartition("/questions/")[0]


def site(question: Post) -> str:
    """The host name of the site."""
    return site_url(question).rpartition("/")[2]


def metadata(question: Post) -> dict[str, Any]:
    """Source, tags, licences and authors of a question."""
    return {
        "url": question["Url"],
        "site": site(question),
        "tags": question.get("Tags", []),
        "score": score(question),
        "licenses": question["Licenses"],
        "authors": name_authors(
            (author["DisplayName"], author.get("Url")) for author in question["Authors"]
        ),
    }


def post_metadata(question: Post, post: Post) -> dict[str, Any]:
    """What `POST` names, of a question or one of its answers."""
    return {
        "qid": question["Id"],
        "post_id": post["Id"],
        "url": post["Url"],
        "site": site(question),
        "title": question.get("Title", ""),
        "tags": question.get("Tags", []),
    }


def origin(question: Post, source: Post) -> dict[str, Any]:
    """What `ORIGIN` names, of a post or a revision of one."""
    return {
        "license": source.get("ContentLicense", ""),
        "authors": name_authors(credit(source, site_url(question))),
        "created": source.get("CreationDate", ""),
    }


def name_authors(authors: Iterable[tuple[str, str | None]]) -> list[dict[str, str]]:
    """Names and profiles as records have them."""
    return [{"name": name} | ({"url": url} if url else {}) for name, url in authors]
