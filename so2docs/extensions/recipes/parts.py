"""Recipes for parts of posts: `blocks` and `edits`.

`blocks` are code blocks, each with its language, the preceding text and the origin of its post. A
code block is a `<pre>` element in a body. As in the site's highlighting, its language comes from a
class such as `lang-py`, or from the tags of the question.

`edits` are edits of a body, a title or tags: the text before and after, reason, author and licence.
The texts come from the history, which has Markdown as typed by the authors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from so2docs.domain import rank, score
from so2docs.escape import strip_tags
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.languages import language_of_tags, name_language
from so2docs.options.recipe import (
    BEST,
    BOOLEAN,
    INTEGER,
    TEXT,
    Adjustments,
    Description,
    Document,
    Recipe,
    Record,
    record,
)

_PRE = re.compile(r"<pre\b([^<>]*)>(.*?)(?:</pre>|\Z)", re.DOTALL | re.IGNORECASE)
_CODE = re.compile(r"\s*<code\b([^<>]*)>", re.IGNORECASE)
_LANGUAGE = re.compile(r"""class\s*=\s*["'](?:[^"']*\s)?lang(?:uage)?-([^\s"']+)""", re.IGNORECASE)
_LINE_BREAK = re.compile(r"<br\b[^<>]*>", re.IGNORECASE)
_BLOCK = re.compile(
    r"</?(?:p|li|ul|ol|h[1-6]|blockquote|hr|div|table|thead|tbody|tr|td|th|dl|dt|dd)\b[^<>]*>",
    re.IGNORECASE,
)


def blocks(question: Document) -> Iterator[Record]:
    """Make a record for each code block of the question, then of its answers, sorted by votes."""
    base = posts.site_url(question)
    for post in (question, *rank(question)):
        body = posts.text(post)
        if "<pre" not in body.lower():
            continue
        by_tags = language_of_tags(question.get("Tags", ()))
        metadata = {
            **posts.post_metadata(question, post),
            "score": score(post),
            "accepted": posts.is_accepted(post, question),
            **posts.origin(post, base),
        }
        for number, (before, said, code) in enumerate(_code_blocks(body)):
            language = by_tags if said is None else name_language(said)
            language_from = "author" if said is not None else "tags" if by_tags else ""
            yield {
                "id": f"{metadata['site']}-{post['Id']}-{number}",
                "text_before": before,
                "language": language,
                "language_from": language_from,
                "code": code,
                "metadata": metadata,
            }


def _code_blocks(body: str) -> Iterator[tuple[str, str | None, str]]:
    """Yield the text before each code block, the language in its class, and the code.

    The language is None without a class, and empty for `lang-none`.
    """
    end = 0
    for block in _PRE.finditer(body):
        before, end = body[end : block.start()], block.end()
        inside = block[2]
        inner = _CODE.match(inside)
        language = _LANGUAGE.search(block[1]) or (inner and _LANGUAGE.search(inner[1]))
        code = strip_tags(_LINE_BREAK.sub("\n", inside))
        code = code.replace("\r\n", "\n").removeprefix("\n").removesuffix("\n")
        if code.strip():
            name = language[1] if language else None
            yield _last_text(before), "" if name == "none" else name, code


def _last_text(html: str) -> str:
    """Return the text of the last non-empty paragraph, heading or list item; empty without one."""
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
        language_from=TEXT,
        code=TEXT,
        metadata=record(**posts.POST, score=INTEGER, accepted=BOOLEAN, **posts.ORIGIN),
    ),
    optional_tables=("users",),
    fields=(*posts.FIELDS, "CreationDate"),
    attributed="posts",
    reads_html=True,
    adjustments=Adjustments(settings=(BEST,)),
    description=Description(
        summary="a block of code, with its language and the text before it",
        tasks=("text-generation",),
        meanings={
            **posts.MEANINGS,
            "text_before": "paragraph, heading or list item before the code",
            "language": "language of the code; empty if unknown",
            "language_from": "source of the language: `author` or `tags`; empty if unknown",
            "code": "text of the code block",
        },
    ),
)

_EDITABLE = ("Title", "Body", "Tags")
_VERBS = ("Edit", "Rollback")


def edits(question: Document, *, drop_users: bool = False) -> Iterator[Record]:
    """Make a record for each text changed by an edit or a rollback.

    The question comes first, then its answers; the records of each post are in chronological order.

    Args:
        question: The document.
        drop_users: Leave out records of texts whose author is unknown: their author may be among
            the users to drop, whose names the history does not contain.
    """
    base = posts.site_url(question)
    for post in (question, *question.get("Answers", ())):
        metadata = posts.post_metadata(question, post)
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
                if drop_users and (is_before_unknown or unknown[field]):
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
    attributed="posts",
    adjustments=Adjustments(options=("drop_users",)),
    description=Description(
        summary="an edit of a title, a body or tags: before, after and why (needs the history)",
        meanings={
            **posts.MEANINGS,
            "field": "edited field: `title`, `body` or `tags`",
            "before": "text before the edit",
            "after": "text after the edit",
            "comment": "comment of the editor",
            "event": "type of the event, such as `EditBody`",
            "license": "licence of the edit",
            "authors": "editor with name and URL",
        },
    ),
)
