"""Recipes for threads as text: `thread` and `chunks` (also called `rag`).

`thread` is a question with all of its answers as one text for pre-training, with comments if they
are nested. The text is Markdown: the title, the question, and the answers sorted by votes. Headings
inside posts are two levels lower than on the site. Field names follow Dolma's document
format (https://github.com/allenai/dolma, docs/data-format.md). datatrove's readers accept it
unchanged: they read `text`, `id` and `metadata`, and add all other fields to the metadata.

`chunks` are passages of posts for retrieval, each short enough for a model. They are cut by
semantic-text-splitter (https://github.com/benbrandt/text-splitter): at headings if the passages
between them fit, or else at blocks, paragraphs, sentences or words. A code block is therefore cut
only if it is longer than a passage. Each passage comes from one post.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, NotRequired, TypedDict

from so2docs.domain import rank, score
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.attribution import sum_up
from so2docs.extensions.recipes.passages import CHARACTERS, TOKENS, Splitter
from so2docs.extensions.recipes.recipe import BEST, Document, Recipe, Record, Setting


def thread_text(question: Document) -> str:
    """Format a question with its answers as Markdown."""
    title = question.get("Title")
    parts = [f"# {title}"] if title else []
    parts += [posts.text(question), *_comments(question)]
    for answer in rank(question):
        is_accepted = posts.is_accepted(answer, question)
        parts += ["## Accepted answer" if is_accepted else "## Answer", posts.text(answer)]
        parts += _comments(answer)
    return "\n\n".join([part for part in parts if part])


def _comments(post: Document) -> list[str]:
    """Return a heading and the comments of a post as a Markdown list; empty without comments."""
    texts = [f"- {posts.comment_text(comment)}" for comment in post.get("Comments", ())]
    return ["### Comments", "\n".join(texts)] if texts else []


def thread(question: Document) -> Iterator[Record]:
    """Make one record from a question and its answers."""
    source = posts.source(question, question)
    licenses, authors = sum_up(question, posts.site_url(question))
    yield {
        "id": f"{source['site']}-{question['Id']}",
        "text": thread_text(question),
        "source": source["site"],
        "created": question.get("CreationDate", ""),
        "metadata": {
            "qid": question["Id"],
            **source,
            "licenses": licenses,
            "authors": posts.name_authors(authors),
        },
    }


class ThreadMetadata(posts.QuestionId, posts.Source):
    """Metadata of a thread."""

    licenses: Annotated[list[str], "licences of all texts in the record"]
    authors: Annotated[list[posts.Author], "authors with name and URL"]


class Thread(TypedDict):
    """A record of `thread`."""

    id: Annotated[str, "id, unique across sites"]
    text: Annotated[str, "text of the question with its answers"]
    source: Annotated[str, "host name of the site"]
    created: Annotated[str, "date of creation, in UTC"]
    metadata: Annotated[ThreadMetadata, "source and attribution of the record"]


THREAD = Recipe(
    "thread",
    thread,
    Thread,
    optional_tables=("users",),
    fields=(*posts.FIELDS, "CreationDate"),
    body="markdown",
    attributed="posts",
    without_banner=True,
    lower_headings=2,
    settings=(BEST,),
    summary="a question with its answers as one text, for pre-training",
    tasks=("text-generation",),
)


def chunks(question: Document, **settings: Any) -> Iterator[Record]:
    """Make a record for each passage of a question, then of its answers, sorted by votes.

    Args:
        question: The document.
        settings: Arguments of `Splitter`.
    """
    splitter = Splitter(**settings)
    title, base = question.get("Title", ""), posts.site_url(question)
    source = posts.source(question, question)
    for post in (question, *rank(question)):
        text, answer_id = posts.text(post), {"answer_id": post["Id"]}
        if post is question:
            text, answer_id = "\n\n".join(filter(None, (title and f"# {title}", text))), {}
        id_ = f"{source['site']}-{post['Id']}"
        columns = {
            "accepted": posts.is_accepted(post, question),
            **source,
            "url": post["Url"],
            "score": score(post),
            **posts.origin(post, base),
        }
        for number, (start, passage) in enumerate(splitter.cut(text)):
            yield {
                "id": f"{id_}-{number}",
                "qid": question["Id"],
                **answer_id,
                "start": start,
                "title": title,
                "text": passage,
                **columns,
            }


def identify_tokenizer(name: str) -> str:
    """Return the name of a tokenizer, followed by a hash of its content if it is a file."""
    if not os.path.isfile(name):
        return name
    with open(name, "rb") as file:
        return f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"


class _PassageText(TypedDict):
    id: Annotated[str, "id, unique across sites"]
    qid: Annotated[int, "id of the question on its site"]
    answer_id: NotRequired[Annotated[int, "id of the answer on its site; absent for a question"]]
    start: Annotated[int, "position of the passage in the text of the post"]
    title: Annotated[str, "title of the question"]
    text: Annotated[str, "passage of the post"]
    accepted: Annotated[bool, "whether the asker accepted the answer"]


class Passage(_PassageText, posts.Source, posts.Origin):
    """A record of `chunks`."""


CHUNKS = replace(
    THREAD,
    name="chunks",
    function=chunks,
    record=Passage,
    settings=(
        Setting(
            "max_length",
            "Maximum length of a passage, in characters or tokens.",
            int,
            usually=f"{CHARACTERS} characters or {TOKENS} tokens",
            least=1,
        ),
        Setting(
            "overlap",
            "Maximum overlap of a passage with the previous passage.",
            int,
            0,
            least=0,
        ),
        Setting(
            "tokenizer",
            "Measure passages in tokens of this tokenizer: a Hugging Face tokenizer.json, or "
            "an OpenAI model such as gpt-4o.",
            str,
            usually="characters",
            identify=identify_tokenizer,
        ),
        BEST,
    ),
    check=Splitter,
    summary="a passage of a question or an answer, for retrieval (RAG)",
    tasks=("text-retrieval",),
)
