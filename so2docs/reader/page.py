"""A question and its answers as text for people."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from textwrap import fill
from typing import Any

from click import style
from lxml import etree

from so2docs.escape import for_terminal
from so2docs.parse.bodies import parse_body, plain_text

# The HTML of a post as plain text for a terminal.

_BLOCKS = {"p", "div", "blockquote", "pre", "hr", "br", "details", "summary"}
_BLOCKS |= {"ul", "ol", "li", "dl", "dt", "dd", "table", "tr"}
_BLOCKS |= {"html", "head", "body", "h1", "h2", "h3", "h4", "h5", "h6"}
_NARROWEST = 20
_SPACE = re.compile(r"\s+")


def as_text(body: str, width: int = 80) -> str:
    """Render the body of a post.

    Args:
        body: HTML, as Stack Exchange stores it.
        width: Columns to wrap paragraphs at; code is not wrapped.

    Returns:
        Paragraphs separated by empty lines, code indented by four spaces, list items marked,
        quotations behind `> `, links followed by their address.
    """
    if not body.strip():
        return ""
    root = parse_body(for_terminal(body))
    try:
        text = "\n\n".join(_blocks(root, width))
    except RecursionError:  # Tags nested hundreds deep.
        text = plain_text(root)
    return for_terminal(text)


def _blocks(element: etree._Element, width: int) -> Iterator[str]:
    """The paragraphs of an element, in order."""
    inline = [element.text or ""]
    for child in element:
        if child.tag in _BLOCKS:
            yield from _wrapped(inline, width)
            yield from _block(child, width)
            inline = []
        else:
            inline.append(_inline(child))
        inline.append(child.tail or "")
    yield from _wrapped(inline, width)


def _block(element: etree._Element, width: int) -> Iterator[str]:
    tag = element.tag
    if tag == "pre":
        code = "".join(element.itertext()).strip("\n").expandtabs(4)
        yield textwrap.indent(code, "    ", lambda line: True)
    elif tag in ("ul", "ol"):
        yield "\n".join(_items(element, width))
    elif tag == "blockquote":
        yield textwrap.indent("\n\n".join(_blocks(element, width - 2)), "> ", lambda line: True)
    elif tag == "hr":
        yield "-" * min(width, 20)
    elif tag == "tr":
        yield " | ".join(_SPACE.sub(" ", _inline(cell)).strip() for cell in element)
    elif tag == "table":
        yield "\n".join(row for part in element.iter("tr") for row in _block(part, width))
    else:
        yield from _blocks(element, width)


def _items(element: etree._Element, width: int) -> Iterator[str]:
    items = element.findall("li")
    for number, item in enumerate(items, 1):
        mark = f"{number}. " if element.tag == "ol" else "- "
        text = "\n".join(_blocks(item, width - len(mark)))
        yield mark + textwrap.indent(text, " " * len(mark)).lstrip(" ")


def _inline(element: etree._Element) -> str:
    """The text of an element within a paragraph."""
    if not isinstance(element.tag, str):
        return ""
    if element.tag == "img":
        return f"[image: {element.get('alt') or element.get('src') or ''}]"
    inside = (element.text or "") + "".join(
        _inline(child) + (child.tail or "") for child in element
    )
    if element.tag == "code":
        return f"`{inside}`"
    address = element.get("href")
    if element.tag == "a" and address and address.strip() != inside.strip():
        return f"{inside} [{address}]"
    return inside


def _wrapped(inline: list[str], width: int) -> Iterator[str]:
    text = _SPACE.sub(" ", "".join(inline)).strip()
    if text:
        yield textwrap.fill(
            text, max(width, _NARROWEST), break_long_words=False, break_on_hyphens=False
        )


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
    """Show the links and comments of a post."""
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
