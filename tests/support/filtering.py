"""The expected result of filters, computed from complete documents in plain Python."""

import hashlib
import re
from typing import Any

Document = dict[str, Any]


def filtered(documents: list[Document], **options: Any) -> list[Document]:
    """Filter complete documents, and select their fields."""
    passed = [document for document in documents if _passes(document, options)]
    passed = passed[: options.get("limit")]
    if "sample_size" in options:
        places = sorted(place_of(document["Id"]) for document in passed)[: options["sample_size"]]
        passed = [document for document in passed if place_of(document["Id"]) in places]
    dropped = options.get("drop_users", ())
    passed = [_without_people(_with_answers(document, options), dropped) for document in passed]
    for document in passed:
        if document.get("AcceptedAnswerId") in options.get("drop_posts", ()):
            del document["AcceptedAnswerId"]
    return [_chosen(document, options) for document in passed]


def _without_people(document: Document, dropped: Any) -> Document:
    """Remove comments by some users, and their names as editors."""
    remaining = dict(document)
    if "Comments" in remaining:
        remaining["Comments"] = [
            one for one in remaining["Comments"] if one.get("UserId") not in dropped
        ]
    if "Answers" in remaining:
        remaining["Answers"] = [_without_people(one, dropped) for one in remaining["Answers"]]
    if remaining.get("LastEditorUserId") in dropped:
        remaining = {name: value for name, value in remaining.items() if name not in EDITOR}
    return remaining


EDITOR = ("LastEditorUserId", "LastEditorDisplayName", "LastEditor")


def _passes(document: Document, options: dict[str, Any]) -> bool:
    tags = {tag.lower() for tag in document.get("Tags", [])}
    expected = {tag.lower() for tag in options.get("tags", ())}
    date = document.get("CreationDate")
    share = options.get("sample")
    return all(
        [
            not expected
            or (all if options.get("all_tags") else any)(
                any(re.fullmatch(pattern_of(name), tag) for tag in tags) for name in expected
            ),
            _is_at_least(document.get("Score"), options.get("min_score")),
            _is_at_least(document.get("AnswerCount"), 1 if options.get("answered") else None),
            _is_at_least(document.get("AnswerCount"), options.get("min_answers")),
            _is_at_most(document.get("AnswerCount"), options.get("max_answers")),
            _is_kept(document, options),
            isinstance(document.get("AcceptedAnswerId"), int) or not options.get("accepted"),
            _is_listed(document, "OwnerUserId", options.get("keep_users")),
            _is_listed(document, "Id", options.get("keep_posts")),
            options.get("since") is None or (bool(date) and date >= options["since"]),
            options.get("until") is None or (bool(date) and date < options["until"]),
            share is None or place_of(document["Id"]) < float(share.rstrip("%")) / 100,
        ]
    )


def pattern_of(tag: str) -> str:
    return re.escape(tag).replace(r"\*", ".*").replace(r"\?", ".")


def _is_listed(question: Document, name: str, ids: Any) -> bool:
    posts = (question, *question["Answers"])
    return ids is None or any(post.get(name) in ids for post in posts)


def _is_kept(post: Document, options: dict[str, Any]) -> bool:
    size = len(post.get("Body", "").encode())
    return size <= options.get("max_body", size) and not (
        (options.get("drop_fabricated") and post["Id"] > 10**9)
        or {post["Id"], post.get("ParentId")} & {*options.get("drop_posts", ())}
        or post.get("OwnerUserId") in options.get("drop_users", ())
    )


def _is_at_least(value: Any, least: int | None) -> bool:
    return least is None or (isinstance(value, int) and value >= least)


def _is_at_most(value: Any, most: int | None) -> bool:
    return most is None or (isinstance(value, int) and value <= most)


def place_of(question_id: int) -> float:
    digest = hashlib.blake2b(str(question_id).encode(), digest_size=8).hexdigest()
    return int(digest, 16) / 2**64


def _with_answers(document: Document, options: dict[str, Any]) -> Document:
    least = options.get("min_answer_score")
    answers = [
        answer
        for answer in document["Answers"]
        if _is_at_least(answer.get("Score"), least) and _is_kept(answer, options)
    ]
    return document | {"Answers": answers}


def _chosen(document: Document, options: dict[str, Any]) -> Document:
    kept, left_out = options.get("fields"), options.get("drop_fields")
    if kept is None and left_out is None:
        return document
    names = set((kept or left_out or "").split(","))
    parts = _parts(document, "", names, keeps=kept is not None)
    assert isinstance(parts, dict)
    return parts


def _parts(value: Any, path: str, names: set[str], *, keeps: bool) -> Any:
    """Select the fields of a value, at any depth; `path` is the start of their names."""
    if isinstance(value, list):
        return [_parts(part, path, names, keeps=keeps) for part in value]
    if not isinstance(value, dict):
        return value
    chosen: Document = {}
    for key, part in value.items():
        name = f"{path}{key}"
        if name in names:
            if keeps:
                chosen[key] = part
        elif not keeps or any(other.startswith(f"{name}.") for other in names):
            chosen[key] = _parts(part, f"{name}.", names, keeps=keeps)
    return chosen
