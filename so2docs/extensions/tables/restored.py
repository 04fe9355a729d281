"""Restore the posts of a date for flat tables, as a temporary `Posts.xml`.

The rows of other tables need no restoration: those created later are left out, and columns whose
former values no dump records become null.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

from so2docs.api.documents import documents
from so2docs.options.products import TableOptions
from so2docs.schema import ANSWERS, POSTS

_ESCAPED = {'"': "&quot;", "\n": "&#xA;", "\r": "&#xD;", "\t": "&#x9;"}


def write_restored(source: str, options: TableOptions, folder: str) -> tuple[str, int]:
    """Write the questions and answers of a date as `Posts.xml`.

    Args:
        source: The dump.
        options: The options, with a date.
        folder: Folder for the file.

    Returns:
        Path of the file, and the number of rows of the dump that are not in it.
    """
    path, count = os.path.join(folder, POSTS.file), 0
    kwargs: dict[str, Any] = {"as_of": options.as_of, "errors": options.errors}
    with (
        documents(source, jobs=options.jobs, work_dir=folder, **kwargs) as questions,
        open(path, "w", encoding="utf-8", newline="") as file,
    ):
        file.write('<?xml version="1.0" encoding="utf-8"?>\r\n<posts>\r\n')
        for question in map(dict[str, Any], questions):
            for post in (question, *question.pop(ANSWERS)):
                file.write(f"  <row{_attributes(post)} />\r\n")
                count += 1
        file.write("</posts>")
    return path, questions.report.rows - count


def _attributes(post: Mapping[str, Any]) -> str:
    return "".join(f' {name}="{_escape(value)}"' for name, value in post.items())


def _escape(value: Any) -> str:
    text = "".join(f"<{tag}>" for tag in value) if isinstance(value, list) else str(value)
    return escape(text, _ESCAPED)
