"""A question and its answers as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill
from typing import Any

from click import style

from so2docs.escape import for_terminal
from so2docs.reader.html_text import as_text


def as_page(question: dict[str, Any], width: int = 80) -> str:
    """A document as text, with terminal styles, which `click.echo` drops where none are wanted.

    Args:
        question: A document.
        width: Columns to wrap at.
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
    """What a post holds of links and comments."""
    for link in _rows(post, "Links"):
        kind = _text(link, "LinkType") or "link"
        yield from ("", style(f"  {kind}: {_text(link, 'RelatedPostId')}", dim=True))
    for comment in _rows(post, "Comments"):
        facts = [_author(comment, "User", "UserDisplayName", "UserId") or "comment"]
        if comment.get("Score"):
            facts.append(f"score {_text(comment, 'Score')}")
        if "CreationDate" in comment:
            facts.append(_day(comment))
        yield from ("", style(f"  {' · '.join(facts)}", dim=True))
        yield fill(_text(comment, "Text"), width, initial_indent="  ", subsequent_indent="  ")


def _rows(post: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = post.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _author(post: dict[str, Any], user: str, name: str, number: str) -> str:
    """Who wrote it: the user that is nested, else the name or number in the row."""
    nested = post.get(user)
    if isinstance(nested, dict) and "DisplayName" in nested:
        return _text(nested, "DisplayName")
    return _text(post, name) or (f"user {_text(post, number)}" if number in post else "")


def _facts(post: dict[str, Any], kind: str) -> str:
    """One line about a post; what it lacks is left out."""
    facts = [f"{kind} {_text(post, 'Id')}"]
    if "Score" in post:
        facts.append(f"score {_text(post, 'Score')}")
    if "ViewCount" in post:
        facts.append(f"{_text(post, 'ViewCount')} views")
    if "CreationDate" in post:
        facts.append(f"asked {_day(post)}" if kind == "question" else _day(post))
    if name := _author(post, "Owner", "OwnerDisplayName", "OwnerUserId"):
        facts.append(f"by {name}")
    if isinstance(votes := post.get("Votes"), dict):
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
