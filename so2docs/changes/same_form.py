"""Whether two outputs can be compared: of one site, and converted with the same options.

An output does not say how it was made, so the first documents of both are asked. What holds for
every document of one and for none of the other is a difference of the conversions, not of the
dumps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from so2docs.changes.compare import ANSWERS
from so2docs.contract.manifest import other_options
from so2docs.errors import OptionError, OutputError, flag
from so2docs.lookup.collection import Collection
from so2docs.schema import ANSWER_ATTRIBUTES, QUESTION_ATTRIBUTES, TABLES

_MOST = 2000
_FEW = 20

_MARKUP = re.compile(r"<[^>]*>|&#?\w+;|[^\w]+|_")

_NESTED = {table.key: name for name, table in TABLES.items() if table.key}
_ALWAYS = {"Id", "PostTypeId", "CreationDate", "Score", "Body", "Title", "Tags", ANSWERS, *_NESTED}
"""Keys that a document has whatever its dump, unless they were left out or not asked for."""

_OF_TIMES = {"ContentLicense"}
"""Attributes that dumps have only since some year."""

_KNOWN = {*QUESTION_ATTRIBUTES, *ANSWER_ATTRIBUTES, *_ALWAYS, "Owner", "LastEditor"}

Batch = list[dict[str, Any]]


def check_same_form(old: Collection, new: Collection, names: tuple[str, str]) -> None:
    """Refuse to compare what does not belong together.

    Args:
        old: The old output.
        new: The new one.
        names: What they are called in messages: a dump's output is temporary.

    Raises:
        OptionError: The conversions had other options, or the sites are not the same; the text
            says which and what to do.
        OutputError: A line is no document.
    """
    if others := other_options(old.path, new.path):
        raise OptionError(
            f"{' and '.join(names)} cannot be compared: by their manifests, they were "
            f"converted with other {', '.join(others)}; "
            "convert both dumps of one site with the same options"
        )
    before, after = _first(old), _first(new)
    if not before or not after:
        return
    for reason in _reasons(before, after):
        raise OptionError(
            f"{' and '.join(names)} cannot be compared: {reason}; "
            "convert both dumps of one site with the same options"
        )


def _first(output: Collection) -> Batch:
    """The first documents of an output."""
    lines: list[bytes] = []
    for entry in output.entries():
        lines += output.read(entry).split(b"\n")[:-1]
        if len(lines) >= _FEW:
            break
    try:
        found = [orjson.loads(line) for line in lines[:_MOST]]
    except orjson.JSONDecodeError as error:
        raise OutputError(f"{output.path}: a line is not JSON ({error})") from None
    if not all(isinstance(document, dict) for document in found):
        raise OutputError(f"{output.path}: a line is no document")
    return found


def _reasons(before: Batch, after: Batch) -> Iterator[str]:
    pairs = _pairs(before, after)
    dates = [(old.get("CreationDate"), new.get("CreationDate")) for old, new in pairs]
    if _most(dates, lambda old, new: None not in (old, new) and old != new):
        yield "questions of the same Id were created at other times, so the sites are not the same"
    yield from _keys(before, after, "", "questions")
    yield from _keys(_all_answers(before), _all_answers(after), f"{ANSWERS}.", "answers")
    for one, other, which in ((before, after, "new"), (after, before, "old")):
        has_owner = any("Owner" in post for post in one) and not any("Owner" in o for o in other)
        if has_owner and any(post.get("OwnerUserId", -1) > 0 for post in other):
            yield f"the {which} one has no Owner, which {flag('nest', 'users')} nests"
    bodies = [(old["Body"], new["Body"]) for old, new in pairs if "Body" in old and "Body" in new]
    if _most(bodies, lambda old, new: old != new and _words(old) == _words(new)):
        yield f"bodies have the same words in another markup, as with another {flag('body')}"
    if any(_is_reordered(old, new) for old, new in pairs):
        yield f"the same answers are in another order, as with another {flag('answers_by')}"


def _pairs(before: Batch, after: Batch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Both states of the questions that both have."""
    by_id = {document.get("Id"): document for document in before}
    return [
        (by_id[found["Id"]], found)
        for found in after
        if found.get("Id") in by_id and found.get("Id") is not None
    ]


def _most(pairs: list[tuple[Any, Any]], differ: Callable[[Any, Any], bool]) -> bool:
    """Whether more than half of the pairs differ."""
    return sum(differ(old, new) for old, new in pairs) * 2 > len(pairs)


def _words(body: str) -> str:
    """What is left of a body without its markup."""
    return _MARKUP.sub("", body)


def _all_answers(documents: Batch) -> Batch:
    return [answer for document in documents for answer in document.get(ANSWERS, ())]


def _keys(before: Batch, after: Batch, prefix: str, posts: str) -> Iterator[str]:
    """Keys that all posts of one output have, and none of the other."""
    are_many = min(len(before), len(after)) >= _FEW
    for one, other, which in ((before, after, "old"), (after, before, "new")):
        if not one or not other:
            continue
        in_all = set.intersection(*(set(post) for post in one))
        in_none = in_all - {key for post in other for key in post} - _OF_TIMES
        for key in sorted(in_none):
            only = f"only the {which} one has {prefix}{key}"
            if key in _NESTED:
                yield f"{only}, which {flag('nest', _NESTED[key])} nests"
            elif key in _ALWAYS or (key in _KNOWN and are_many):
                yield f"{only}, as with other {flag('fields')} or {flag('without')}"
            elif key not in _KNOWN and len({str(post[key]) for post in one}) == 1 < len(one):
                yield f"{only}, as with {flag('site_field', key)}"


def _is_reordered(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether the answers changed their order, and nothing by which they can be ordered."""
    if old.get("AcceptedAnswerId") != new.get("AcceptedAnswerId"):
        return False
    before, after = (
        [(answer.get("Id"), answer.get("Score")) for answer in document.get(ANSWERS, ())]
        for document in (old, new)
    )
    return before != after and sorted(before, key=str) == sorted(after, key=str)
