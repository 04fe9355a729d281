"""Recipes for whole threads as text: `thread`, and `chunks`, or `rag`.

`thread` is a question with all of its answers as one text, for pre-training. The names of Dolma's
document format (https://github.com/allenai/dolma, docs/data-format.md), which datatrove's readers
take unchanged (`text`, `id`, `metadata`; the rest joins the metadata). Markdown: the title, the
question, and the answers by votes.

`chunks` are passages of a thread for retrieval, each short enough for a model: the Markdown of
`thread`, cut by semantic-text-splitter (https://github.com/benbrandt/text-splitter): at headings,
then blocks, paragraphs, sentences and words, at the highest level where a passage fits, so that a
code block is cut only if it is longer than a passage.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

from so2docs.errors import OptionError, flag
from so2docs.recipes import posts
from so2docs.recipes.recipe import INTEGER, TEXT, Document, Recipe, Record, record

CHARACTERS, TOKENS = 2000, 512
"""The longest passage where none is asked for."""


def thread_text(question: Document) -> str:
    """A question with its answers as Markdown."""
    title = question.get("Title")
    parts = [f"# {title}"] if title else []
    parts.append(posts.text(question))
    for answer in posts.rank(question):
        is_accepted = posts.is_accepted(answer, question)
        parts += ["## Accepted answer" if is_accepted else "## Answer", posts.text(answer)]
    return "\n\n".join(part for part in parts if part)


def thread(question: Document) -> Iterator[Record]:
    """One record of a question."""
    yield {
        "id": str(question["Id"]),
        "text": thread_text(question),
        "source": posts.site(question),
        "created": question.get("CreationDate", ""),
        "metadata": posts.metadata(question),
    }


THREAD = Recipe(
    "thread",
    thread,
    record(id=TEXT, text=TEXT, source=TEXT, created=TEXT, metadata=record(**posts.METADATA)),
    optional_tables=("users",),
    fields=(*posts.FIELDS, "CreationDate"),
    body="markdown",
    attributed=True,
)


def chunks(
    question: Document,
    *,
    max_length: int | None = None,
    overlap: int | None = None,
    tokenizer: str | None = None,
) -> Iterator[Record]:
    """The passages of a question with its answers, in order.

    Args:
        question: The document.
        max_length: Most characters of a passage, or tokens where there is a tokenizer.
        overlap: Most of these that a passage repeats of the one before.
        tokenizer: A `tokenizer.json` of Hugging Face, or the name of a model of OpenAI.
    """
    metadata = posts.metadata(question)
    splitter = make_splitter(max_length, overlap, tokenizer)
    for number, (start, text) in enumerate(splitter.chunk_indices(thread_text(question))):
        yield {
            "id": f"{question['Id']}-{number}",
            "qid": question["Id"],
            "start": start,
            "title": question.get("Title", ""),
            "text": text,
            **metadata,
        }


def identify_tokenizer(name: str | None) -> str | None:
    """The name of a tokenizer, with the hash of its file if it has one."""
    if name is None or not os.path.isfile(name):
        return name
    with open(name, "rb") as file:
        return f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()[:12]}"


@cache
def make_splitter(
    max_length: int | None = None, overlap: int | None = None, tokenizer: str | None = None
) -> Any:
    """Make what cuts threads into passages.

    Raises:
        OptionError: The library is missing, there is no such tokenizer, or the overlap is as long
            as a passage.
    """
    try:
        from semantic_text_splitter import MarkdownSplitter
    except ImportError:
        raise OptionError(
            f"{flag('recipe', 'chunks')} needs semantic-text-splitter: "
            "pip install semantic-text-splitter"
        ) from None
    most = max_length or (CHARACTERS if tokenizer is None else TOKENS)
    if (overlap or 0) >= most:
        raise OptionError(
            f"{flag('overlap', overlap)} must be less than the length of a passage, {most:,}"
        )
    if tokenizer is None:
        return MarkdownSplitter(most, overlap=overlap or 0)
    is_file = os.sep in tokenizer or tokenizer.endswith(".json")
    make = (
        MarkdownSplitter.from_huggingface_tokenizer_file
        if is_file
        else MarkdownSplitter.from_tiktoken_model
    )
    try:
        return make(tokenizer, most, overlap or 0)
    except Exception as error:  # The library raises no other.
        raise OptionError(
            f"{flag('tokenizer')} is {tokenizer!r}, which cannot be read: {error}; give a "
            "tokenizer.json of Hugging Face, or the name of a model of OpenAI such as gpt-4o"
        ) from error


CHUNKS = replace(
    THREAD,
    name="chunks",
    function=chunks,
    schema=record(id=TEXT, qid=INTEGER, start=INTEGER, title=TEXT, text=TEXT, **posts.METADATA),
    fields=posts.FIELDS,
    settings=("max_length", "overlap", "tokenizer"),
    check=make_splitter,
)
