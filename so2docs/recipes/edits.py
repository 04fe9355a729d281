"""`edits`: each edit of a body, a title or tags: before, after, why, by whom, under which licence.

Texts are those of the history: Markdown as it was typed.
"""

from __future__ import annotations

from collections.abc import Iterator

from so2docs.recipes import posts
from so2docs.recipes.recipe import TEXT, Document, Recipe, Record, record

SCHEMA = record(
    id=TEXT,
    field=TEXT,
    before=TEXT,
    after=TEXT,
    comment=TEXT,
    metadata=record(**posts.POST, event=TEXT, **posts.ORIGIN),
)

_FIELDS = ("Title", "Body", "Tags")
_VERBS = ("Edit", "Rollback")


def edits(question: Document) -> Iterator[Record]:
    """A record for each text that an edit or a rollback changed, by time; answers come last."""
    for post in (question, *question.get("Answers", ())):
        current: dict[str, str] = {}
        for entry in post["History"]:
            for field in _FIELDS:
                if field not in entry:
                    continue
                after = " ".join(entry[field]) if field == "Tags" else entry[field]
                before = current.get(field)
                current[field] = after
                events = [
                    f"{verb}{field}" for verb in _VERBS if f"{verb}{field}" in entry["Events"]
                ]
                if events and before is not None and before != after:
                    text = {"field": field.lower(), "before": before, "after": after}
                    yield _record(question, post, entry, text, events[-1])


def _record(
    question: Document, post: Document, entry: Document, text: dict[str, str], event: str
) -> Record:
    return {
        "id": f"{entry['Id']}-{text['field']}",
        **text,
        "comment": entry.get("Comment", ""),
        "metadata": {
            **posts.post_metadata(question, post),
            "event": event,
            **posts.origin(question, entry),
        },
    }


RECIPE = Recipe(
    "edits",
    edits,
    SCHEMA,
    tables=("history-text",),
    optional_tables=("users",),
    fields=("Id", "Title", "Tags", "History", "Answers.Id", "Answers.History"),
    attributed=True,
)
