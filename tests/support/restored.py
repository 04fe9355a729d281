"""Dumps of which the state of a date is restored, and that state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import so2docs
from support.dumps import row, write_dump
from support.packed import seven_zip

Row = dict[str, Any]


def event(number: int, post_id: int, kind: int, date: str, **more: Any) -> bytes:
    """Make a row of the history."""
    ids = {"Id": number, "PostHistoryTypeId": kind, "PostId": post_id}
    return row(**{**ids, "RevisionGUID": f"g{number}", "CreationDate": date, **more})


def write_site(
    folder: Path, posts: list[bytes], history: Iterable[bytes] = (), **tables: list[bytes]
) -> Path:
    """Write a dump with posts, history, votes and other tables."""
    files = {"Posts": posts, "PostHistory": history, "Votes": [], **tables}
    for stem, rows in files.items():
        write_dump(folder / f"{stem}.xml", *rows)
    return folder


def split_posts(documents: Iterable[Any]) -> dict[int, Row]:
    """Return questions and answers by id."""
    posts: dict[int, Row] = {}
    for document in map(dict[str, Any], documents):
        posts |= {post["Id"]: post for post in (document, *document.pop("Answers"))}
    return posts


def restore(dump: Path, **options: Any) -> dict[int, Row]:
    """Return the restored questions and answers by id."""
    with so2docs.documents(dump, jobs=1, **options) as documents:
        return split_posts(documents)


def check_any_way(
    dump: Path,
    folder: Path,
    convert: Callable[..., tuple[so2docs.Report, Any]],
    chunk_bytes: tuple[int, int],
) -> None:
    """Check that either core, any chunks and an archive whose posts come last give the same."""
    tables = sorted(dump.glob("*.xml"), key=lambda path: path.name == "Posts.xml")
    archive = seven_zip(folder / "dump.7z", tables)
    ways: list[tuple[Path, Row]] = [
        (dump, {"core": "python"}),
        (dump, {"core": "compiled", "chunk_bytes": chunk_bytes[0]}),
        (dump, {"core": "compiled", "chunk_bytes": chunk_bytes[1], "jobs": 2}),
        (archive, {"core": "python"}),
        (archive, {"core": "compiled"}),
    ]
    outputs = []
    for number, (source, way) in enumerate(ways):
        report, content = convert(source, folder / str(number), **way)
        rows = {name: (table.nested, table.filtered) for name, table in report.tables.items()}
        outputs.append((content, report.filtered, rows))
    assert outputs[1:] == outputs[:-1]
