"""Source, licence and authors of one post, for the recipes next to this file."""

from __future__ import annotations

from typing import Annotated, Any

from so2docs.extensions.recipes import posts


class PostId(posts.QuestionId):
    """The post of a record."""

    post_id: Annotated[int, "id of the post on its site"]
    url: Annotated[str, "URL of the post"]
    site: Annotated[str, "host name of the site"]
    title: Annotated[str, "title of the question"]
    tags: Annotated[list[str], "tags of the question"]


def identify(post: posts.Post, question: posts.Post) -> dict[str, Any]:
    """Make an object of the form `PostId` from a question or one of its answers."""
    return {
        "qid": question["Id"],
        "post_id": post["Id"],
        "url": post["Url"],
        "site": posts.site(question),
        "title": question.get("Title", ""),
        "tags": question.get("Tags", []),
    }
