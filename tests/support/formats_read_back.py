"""Readers of the output formats for the tests, without code of the package."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from support.dumps import unpacked

Document = dict[str, Any]

DATES = {"CreationDate", "LastEditDate", "LastActivityDate", "ClosedDate", "CommunityOwnedDate"}
LISTS = {"Answers", "Comments", "Links", "History", "Editors", "Voters"}


def jsonl(path: Path) -> list[Document]:
    return [json.loads(line) for line in unpacked(path).decode().split("\n")[:-1]]


def json_array(path: Path) -> list[Document]:
    documents = json.loads(unpacked(path))
    assert isinstance(documents, list)
    return documents


def elasticsearch(path: Path) -> list[Document]:
    pairs = jsonl(path)
    for action, document in zip(pairs[::2], pairs[1::2], strict=True):
        assert action == {"index": {"_index": "questions", "_id": str(document["Id"])}}
    return pairs[1::2]


def ravendb(path: Path) -> list[Document]:
    export = json.loads(unpacked(path))
    assert list(export) == ["BuildVersion", "Docs"]
    assert isinstance(export["BuildVersion"], int)
    for document in export["Docs"]:
        name = f"questions/{document['Id']}"
        assert document.pop("@metadata") == {"@id": name, "@collection": "Questions"}
    documents: list[Document] = export["Docs"]
    return documents


def mongodb(path: Path) -> list[Document]:
    documents = []
    for document in jsonl(path):
        assert next(iter(document)) == "_id"
        assert document.pop("_id") == document["Id"]
        documents.append(_without_dates(document))
    return documents


def _without_dates(value: Any) -> Any:
    """Convert dates to text as in the dump, at any depth."""
    if isinstance(value, list):
        return [_without_dates(part) for part in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["$date"]:
        text = str(value["$date"])
        assert datetime.fromisoformat(text).tzinfo is not None
        return text.removesuffix("Z")
    for name in DATES & value.keys():
        assert not isinstance(value[name], str) or not value[name][:4].isdigit(), value[name]
    return {name: _without_dates(part) for name, part in value.items()}


def parquet(path: Path) -> list[Document]:
    """Read the columns as documents; keys may have another order than in JSON lines."""
    return [_post(row) for row in pq.read_table(path).to_pylist()]


def without_nulls(value: Any) -> Any:
    """Remove nulls of columns, which are missing keys in JSON."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


def _post(row: Document) -> Document:
    post: Document = {}
    for name, value in row.items():
        if value is None or (name in ("Bounties", "Voters") and not value):
            continue
        if name == "Other":
            post |= json.loads(value)
        elif name in LISTS or name == "Bounties":
            post[name] = [_post(part) for part in value]
        elif name == "Votes":
            post[name] = {kind: count for kind, count in _post(value).items() if count}
        elif isinstance(value, dict):
            post[name] = _post(value)
        elif isinstance(value, datetime):
            assert value.tzinfo is not None
            post[name] = value.astimezone(UTC).isoformat(timespec="milliseconds")[:-6]
        else:
            post[name] = value
    return post


def without_second_fractions(documents: list[Document]) -> list[Document]:
    """Write milliseconds in all dates, as documents from columns have them."""
    for document in documents:
        for post in (document, *document["Answers"]):
            for name in DATES & post.keys():
                if len(post[name]) == len("2008-07-31T21:42:52"):
                    post[name] += ".000"
    return documents


READERS: dict[str, tuple[str, Callable[[Path], list[Document]]]] = {
    "jsonl": ("questions.jsonl.zst", jsonl),
    "json": ("questions.json.gz", json_array),
    "elasticsearch": ("questions.jsonl.gz", elasticsearch),
    "mongodb": ("questions.jsonl", mongodb),
    "ravendb": ("questions.ravendbdump", ravendb),
    "parquet": ("questions.parquet", parquet),
}
"""The name of an output and its reader, by format."""
