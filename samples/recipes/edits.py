"""Edits of a body, a title or tags: the text before and after, reason, author and licence.

    so2docs convert DUMP edits.parquet --recipe edits:EDITS

The texts come from the history (`PostHistory.xml`), which has Markdown as typed by the authors.
With `--set known=true`, records of texts whose author is unknown are left out: that author may be
among those of `--drop-users`, because the history does not name them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, TypedDict

from post_metadata import PostId, identify

from so2docs import Recipe, Setting
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.recipe import Document, Record

_EDITABLE = ("Title", "Body", "Tags")
_VERBS = ("Edit", "Rollback")


def edits(question: Document, *, known: bool = False) -> Iterator[Record]:
    """Make a record for each text changed by an edit or a rollback.

    The question comes first, then its answers; the records of each post are in chronological order.

    Args:
        question: The document.
        known: Leave out records of texts whose author is unknown.
    """
    base = posts.site_url(question)
    for post in (question, *question.get("Answers", ())):
        metadata = identify(post, question)
        current: dict[str, str] = {}
        unknown: dict[str, bool] = {}
        for entry in post["History"]:
            origin = posts.origin(entry, base)
            for field in _EDITABLE:
                if field not in entry:
                    continue
                after = " ".join(entry[field]) if field == "Tags" else entry[field]
                before, is_before_unknown = current.get(field), unknown.get(field)
                current[field], unknown[field] = after, not origin["authors"]
                events = [
                    f"{verb}{field}" for verb in _VERBS if f"{verb}{field}" in entry["Events"]
                ]
                if known and (is_before_unknown or unknown[field]):
                    continue
                if events and before is not None and before != after:
                    yield {
                        "id": f"{metadata['site']}-{entry['Id']}-{field.lower()}",
                        "field": field.lower(),
                        "before": before,
                        "after": after,
                        "comment": entry.get("Comment", ""),
                        "metadata": {**metadata, "event": events[-1], **origin},
                    }


class _Event(PostId):
    event: Annotated[str, "type of the event, such as `EditBody`"]


class EditMetadata(_Event, posts.Origin):
    """Metadata of an edit: licence and authors are those of the edit."""


class Edit(TypedDict):
    """A record."""

    id: Annotated[str, "id, unique across sites"]
    field: Annotated[str, "edited field: `title`, `body` or `tags`"]
    before: Annotated[str, "text before the edit"]
    after: Annotated[str, "text after the edit"]
    comment: Annotated[str, "comment of the editor"]
    metadata: Annotated[EditMetadata, "source of the post, and licence and editor of the edit"]


EDITS = Recipe(
    "edits",
    edits,
    Edit,
    tables=("history-text",),
    optional_tables=("users",),
    fields=("Id", "Title", "Tags", "History", "Answers.Id", "Answers.History"),
    attributed="posts",
    settings=(
        Setting("known", "Leave out records of texts whose author is unknown.", bool, False),
    ),
    summary="an edit of a title, a body or tags: before, after and why (needs the history)",
)
