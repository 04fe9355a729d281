"""`thread`: a question with all of its answers as one text, for pre-training.

The names of Dolma's document format (https://github.com/allenai/dolma, docs/data-format.md), which
datatrove's readers take unchanged (`text`, `id`, `metadata`; the rest joins the metadata).
Markdown: the title, the question, and the answers by votes.
"""

from __future__ import annotations

from collections.abc import Iterator

from so2docs.recipes import posts
from so2docs.recipes.recipe import TEXT, Document, Recipe, Record, record

SCHEMA = record(id=TEXT, text=TEXT, source=TEXT, created=TEXT, metadata=record(**posts.METADATA))


def text(question: Document) -> str:
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
        "text": text(question),
        "source": posts.site(question),
        "created": question.get("CreationDate", ""),
        "metadata": posts.metadata(question),
    }


RECIPE = Recipe(
    "thread",
    thread,
    SCHEMA,
    optional_tables=("users",),
    fields=(*posts.FIELDS, "CreationDate"),
    body="markdown",
    attributed=True,
)
