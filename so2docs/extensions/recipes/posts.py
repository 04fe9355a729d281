"""Functions and schemas that several recipes share: scores, texts and metadata of posts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated, Any, NotRequired, TypedDict

from so2docs.domain import score
from so2docs.extensions.recipes.attribution import writers

Post = dict[str, Any]


class Author(TypedDict):
    """An author of a text."""

    name: Annotated[str, "name of the author"]
    url: NotRequired[Annotated[str, "URL of the profile of the author"]]


class Origin(TypedDict):
    """Licence, authors and date of one post, or of one revision of a post."""

    license: Annotated[str, "licence of the post"]
    authors: Annotated[list[Author], "authors with name and URL"]
    created: Annotated[str, "date of creation, in UTC"]


class Source(TypedDict):
    """URL, site and score of a question or an answer, and the tags of the question."""

    url: Annotated[str, "URL of the post"]
    site: Annotated[str, "host name of the site"]
    tags: Annotated[list[str], "tags of the question"]
    score: Annotated[int, "votes for the post minus votes against it"]


class QuestionId(TypedDict):
    """The question of a record."""

    qid: Annotated[int, "id of the question on its site"]


class Metadata(QuestionId, Source, Origin):
    """Metadata of a question."""


class _Answer(TypedDict):
    id: Annotated[int, "id of the answer on its site"]
    url: Annotated[str, "URL of the answer"]
    score: Annotated[int, "votes for the answer minus votes against it"]
    accepted: Annotated[bool, "whether the asker accepted the answer"]


class Side(_Answer, Origin):
    """Metadata of an answer."""


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
"""The fields of documents that most recipes read."""


def text(post: Post) -> str:
    """Return the body of a post; empty if it has none."""
    return str(post.get("Body", ""))


def comment_text(comment: Post) -> str:
    """Return the text of a comment on one line."""
    return " ".join(str(comment.get("Text", "")).split())


def prompt(question: Post) -> str:
    """Return the title and the body of a question as one text."""
    return "\n\n".join([part for part in (question.get("Title"), text(question)) if part])


def is_accepted(answer: Post, question: Post) -> bool:
    """Whether the asker has accepted the answer."""
    return bool(answer["Id"] == question.get("AcceptedAnswerId"))


def preference_score(answer: Post, question: Post) -> int:
    """Compute the score of an answer on a scale for preference models.

    The result is -1 for a negative score. Otherwise it is log2(1 + score), rounded, plus one if the
    answer was accepted. Source: Askell and others, A General Language Assistant as a Laboratory for
    Alignment (https://arxiv.org/abs/2112.00861), section 4.1.
    """
    votes = score(answer)
    if votes < 0:
        return -1
    return round(math.log2(1 + votes)) + is_accepted(answer, question)


def site_url(question: Post) -> str:
    """Return the URL of the site, taken from the URL of a question."""
    return str(question["Url"]).rpartition("/questions/")[0]


def site(question: Post) -> str:
    """Return the host name of the site, taken from the URL of a question."""
    return site_url(question).rpartition("/")[2]


def source(question: Post, post: Post) -> dict[str, Any]:
    """Make an object of the form `Source` from a question or one of its answers."""
    return {
        "url": post["Url"],
        "site": site(question),
        "tags": question.get("Tags", []),
        "score": score(post),
    }


def metadata(question: Post) -> dict[str, Any]:
    """Make an object of the form `Metadata` from a question."""
    return {
        "qid": question["Id"],
        **source(question, question),
        **origin(question, site_url(question)),
    }


def side(answer: Post, question: Post, base: str) -> dict[str, Any]:
    """Make an object of the form `Side` from an answer, on the site with this base URL."""
    return {
        "id": answer["Id"],
        "url": answer["Url"],
        "score": score(answer),
        "accepted": is_accepted(answer, question),
        **origin(answer, base),
    }


def origin(part: Post, base: str) -> dict[str, Any]:
    """Make an object of the form `Origin` from a post, a comment or a revision."""
    return {
        "license": part.get("ContentLicense", ""),
        "authors": name_authors(writers(part, base)),
        "created": part.get("CreationDate", ""),
    }


def name_authors(authors: Iterable[tuple[str, str | None]]) -> list[dict[str, str]]:
    """Convert names and profile URLs to the form of `Author`."""
    return [{"name": name, "url": url} if url else {"name": name} for name, url in authors]
