"""Format a question and its answers as readable text for the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import fill
from typing import Any

from click import style

from so2docs.plugin import find_hook, for_terminal

_NARROWEST = 20
_START = re.compile(r"([> ]*)((?:[-*+]|\d+[.)])? *)")
_FENCE = re.compile(r"[> ]*(?:(?:[-*+]|\d+[.)]) +)?(`{3,})")


def as_text(body: str, width: int = 80) -> str:
    """Convert the body of a post to wrapped Markdown.

    Args:
        body: HTML of the body.
        width: Maximum width of paragraphs, in columns; code and tables are not wrapped.
    """
    to_markdown = find_hook("body markdown")("python", None)
    lines, fence = [], ""
    for line in for_terminal(to_markdown(body)).splitlines():
        mark = _FENCE.match(line)
        if fence:
            fence = "" if line.endswith(fence) else fence
        elif mark:
            fence = mark[1]
        elif len(line) > width and "|" not in line and (start := _START.match(line)):
            paragraph = fill(
                line,
                max(width, _NARROWEST),
                subsequent_indent=start[1] + " " * len(start[2]),
                break_long_words=False,
                break_on_hyphens=False,
            )
            lines.append(paragraph)
            continue
        lines.append(line)
    return "\n".join(lines)


def as_page(question: dict[str, Any], width: int = 80) -> str:
    """Format a document as text with terminal styles, which `click.echo` strips for files.

    Args:
        question: The document.
        width: Maximum width of a line, in columns; values above 100 are reduced to 100.
    """
    return "\n".join(_lines(question, min(width, 100)))


def _lines(question: dict[str, Any], width: int) -> Iterator[str]:
    answers = question.get("Answers", [])
    yield style(_text(question, "Title") or f"Question {_text(question, 'Id')}", bold=True)
    yield style(_facts(question, "question"), dim=True)
    if tags := question.get("Tags"):
        yield " ".join(style(f"[{for_terminal(tag)}]", fg="cyan") for tag in tags)
    yield ""
    yield as_text(_text(question, "Body"), width)
    yield from _nested(question, width)
    accepted = question.get("AcceptedAnswerId", "none")
    count = f"{len(answers)} answer{'' if len(answers) == 1 else 's'}"
    yield from ("", style(f"── {count} ".ljust(width, "─"), bold=True))
    for answer in answers:
        mark = style("✔ accepted · ", fg="green") if answer.get("Id") == accepted else ""
        yield from ("", mark + style(_facts(answer, "answer"), dim=True), "")
        yield as_text(_text(answer, "Body"), width)
        yield from _nested(answer, width)


def _nested(post: dict[str, Any], width: int) -> Iterator[str]:
    """Yield the lines for the links and comments of a post."""
    for link in post.get("Links", ()):
        kind = _text(link, "LinkType") or "link"
        yield from ("", style(f"  {kind}: {_text(link, 'RelatedPostId')}", dim=True))
    for comment in post.get("Comments", ()):
        facts = [_author(comment, "User", "UserDisplayName", "UserId") or "comment"]
        if comment.get("Score"):
            facts.append(f"score {_text(comment, 'Score')}")
        if "CreationDate" in comment:
            facts.append(_day(comment))
        yield from ("", style(f"  {' · '.join(facts)}", dim=True))
        yield fill(_text(comment, "Text"), width, initial_indent="  ", subsequent_indent="  ")


def _author(post: dict[str, Any], user: str, name: str, number: str) -> str:
    """Return the author's name, nested or in the row, or else `user ID`; empty if unknown."""
    nested = post.get(user, {})
    if "DisplayName" in nested:
        return _text(nested, "DisplayName")
    return _text(post, name) or (f"user {_text(post, number)}" if number in post else "")


def _facts(post: dict[str, Any], kind: str) -> str:
    """Format the id, score, views, dates, author and votes of a post as one line.

    Missing values are left out.
    """
    facts = [f"{kind} {_text(post, 'Id')}"]
    if "Score" in post:
        facts.append(f"score {_text(post, 'Score')}")
    if "ViewCount" in post:
        facts.append(f"{_text(post, 'ViewCount')} views")
    if "CreationDate" in post:
        facts.append(f"asked {_day(post)}" if kind == "question" else _day(post))
    if name := _author(post, "Owner", "OwnerDisplayName", "OwnerUserId"):
        facts.append(f"by {name}")
    votes = post.get("Votes", {})
    facts += [f"{for_terminal(kind)} {_text(votes, kind)}" for kind in votes]
    if "ClosedDate" in post:
        facts.append(f"closed {_text(post, 'ClosedDate')[:10]}")
    return " · ".join(facts)


def _day(post: dict[str, Any]) -> str:
    return _text(post, "CreationDate")[:16].replace("T", " ")


def _text(post: dict[str, Any], name: str) -> str:
    value = post.get(name, "")
    if isinstance(value, int):
        return f"{value:,}" if name in ("Score", "ViewCount") else str(value)
    return value if name == "Body" else for_terminal(value)
