"""A question and its answers as text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from click import style

from so2docs.escape import for_terminal
from so2docs.lookup.html_text import as_text


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
    accepted = question.get("AcceptedAnswerId", "none")
    count = f"{len(answers)} answer{'' if len(answers) == 1 else 's'}"
    yield from ("", style(f"── {count} ".ljust(width, "─"), bold=True))
    for answer in answers:
        mark = style("✔ accepted · ", fg="green") if answer.get("Id") == accepted else ""
        yield from ("", mark + style(_facts(answer, "answer"), dim=True), "")
        yield as_text(_text(answer, "Body"), width)


def _facts(post: dict[str, Any], kind: str) -> str:
    """One line about a post; what it lacks is left out."""
    facts = [f"{kind} {_text(post, 'Id')}"]
    if "Score" in post:
        facts.append(f"score {_text(post, 'Score')}")
    if "ViewCount" in post:
        facts.append(f"{_text(post, 'ViewCount')} views")
    if "CreationDate" in post:
        facts.append(f"asked {_day(post)}" if kind == "question" else _day(post))
    if "OwnerDisplayName" in post or "OwnerUserId" in post:
        name = _text(post, "OwnerDisplayName") or f"user {_text(post, 'OwnerUserId')}"
        facts.append(f"by {name}")
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
