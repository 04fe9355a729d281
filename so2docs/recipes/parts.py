"""Recipes for parts of posts: `blocks` and `edits`.

`blocks` are code blocks, each with its language, the text before it and the post it is from. A code
block is a `<pre>` of a body. Its language is what the site highlights it as, where the author said
so: `class="lang-py"`.

`edits` are edits of a body, a title or tags: before, after, why, by whom, under which licence.
Texts are those of the history: Markdown as it was typed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from so2docs.escape import strip_tags
from so2docs.recipes import posts
from so2docs.recipes.recipe import BOOLEAN, INTEGER, TEXT, Document, Recipe, Record, record

_PRE = re.compile(r"<pre\b([^<>]*)>(.*?)(?:</pre>|\Z)", re.DOTALL | re.IGNORECASE)
_CODE = re.compile(r"\s*<code\b([^<>]*)>", re.IGNORECASE)
_LANGUAGE = re.compile(r"""class\s*=\s*["'](?:[^"']*\s)?lang(?:uage)?-([^\s"']+)""", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
_BLOCK = re.compile(
    r"</?(?:p|li|ul|ol|h[1-6]|blockquote|hr|div|table|thead|tbody|tr|td|th|dl|dt|dd)\b[^<>]*>",
    re.IGNORECASE,
)


def blocks(question: Document) -> Iterator[Record]:
    """A record for each code block of the question, and then of its answers by votes."""
    for post in (question, *posts.rank(question)):
        body = posts.text(post)
        if "<pre" not in body.lower():
            continue
        metadata = {
            **posts.post_metadata(question, post),
            "score": posts.score(post),
            "accepted": posts.is_accepted(post, question),
            **posts.origin(question, post),
        }
        for number, (before, language, code) in enumerate(_code_blocks(body)):
            yield {
                "id": f"{post['Id']}-{number}",
                "text_before": before,
                "language": language,
                "code": code,
                "metadata": metadata,
            }


def _code_blocks(body: str) -> Iterator[tuple[str, str, str]]:
    """The text before each code block, its language, and the code."""
    end = 0
    for block in _PRE.finditer(body):
        before, end = body[end : block.start()], block.end()
        inside = block[2]
        inner = _CODE.match(inside)
        language = _LANGUAGE.search(block[1]) or (inner and _LANGUAGE.search(inner[1]))
        code = strip_tags(_LINE_BREAK.sub("\n", inside))
        code = code.replace("\r\n", "\n").removeprefix("\n").removesuffix("\n")
        if code.strip():
            name = language[1] if language else ""
            yield _last_text(before), "" if name == "none" else name, code


def _last_text(html: str) -> str:
    """The last paragraph, heading or list item that has text."""
    for part in reversed(_BLOCK.split(html)):
        text = strip_tags(_LINE_BREAK.sub(" ", part))
        if words := text.split():
            return " ".join(words)
    return ""


BLOCKS = Recipe(
    "blocks",
    blocks,
    record(
        id=TEXT,
        text_before=TEXT,
        language=TEXT,
        code=TEXT,
        metadata=record(**posts.POST, score=INTEGER, accepted=BOOLEAN, **posts.ORIGIN),
    ),
    optional_tables=("users",),
    fields=(*posts.FIELDS, "CreationDate"),
    attributed=True,
    reads_html=True,
)

_EDITABLE = ("Title", "Body", "Tags")
_VERBS = ("Edit", "Rollback")


def edits(question: Document) -> Iterator[Record]:
    """A record for each text that an edit or a rollback changed, by time; answers come last."""
    for post in (question, *question.get("Answers", ())):
        current: dict[str, str] = {}
        for entry in post["History"]:
            for field in _EDITABLE:
                if field not in entry:
                    continue
                after = " ".join(entry[field]) if field == "Tags" else entry[field]
                before = current.get(field)
                current[field] = after
                events = [
                    f"{verb}{field}" for verb in _VERBS if f"{verb}{field}" in entry["Events"]
                ]
                if events and before is not None and before != after:
                    yield {
                        "id": f"{entry['Id']}-{field.lower()}",
                        "field": field.lower(),
                        "before": before,
                        "after": after,
                        "comment": entry.get("Comment", ""),
                        "metadata": {
                            **posts.post_metadata(question, post),
                            "event": events[-1],
                            **posts.origin(question, entry),
                        },
                    }


EDITS = Recipe(
    "edits",
    edits,
    record(
        id=TEXT,
        field=TEXT,
        before=TEXT,
        after=TEXT,
        comment=TEXT,
        metadata=record(**posts.POST, event=TEXT, **posts.ORIGIN),
    ),
    tables=("history-text",),
    optional_tables=("users",),
    fields=("Id", "Title", "Tags", "History", "Answers.Id", "Answers.History"),
    attributed=True,
)
