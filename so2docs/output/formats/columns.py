"""The columns of documents in formats with fixed columns, as a tree.

The columns of questions, answers and nested rows depend on the options alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from so2docs.options.field_paths import Fields
from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    POSTS,
    QUESTION_ATTRIBUTES,
    TEXT,
    TEXTS,
    Attributes,
    Part,
    Shape,
    select_parts,
)


@dataclass(frozen=True)
class ObjectColumns:
    """The columns of a document, or of the objects under one of its keys.

    The column `OTHER` is between attributes and parts.

    Attributes:
        attributes: Attributes of the object.
        parts: Nested parts after the attributes.
        is_post: Whether the object is a post, whose `Id` and `Answers` are never null.
        key: The key; empty for a document.
        shape: Shape of the value under the key.
    """

    attributes: Attributes
    parts: tuple[ObjectColumns, ...] = ()
    is_post: bool = False
    key: str = ""
    shape: Shape = "record"

    def is_required(self, name: str) -> bool:
        """Return whether a column is never null."""
        return self.is_post and name in ("Id", ANSWERS)


def question_columns(
    fields: Fields,
    tables: Sequence[str],
    site: tuple[str, str] | None,
    *,
    is_attributed: bool,
) -> ObjectColumns:
    """Return the columns of a document; the site follows the attributes, as in the JSON object."""
    added: Attributes = {"Url": TEXT} if is_attributed else {}
    question = _post(fields, tables, "", QUESTION_ATTRIBUTES, added)
    attributes, parts = dict(question.attributes), question.parts
    if site is not None:
        attributes[site[0]] = TEXT
    if is_attributed:
        attributes["Licenses"] = TEXTS
        author: Attributes = {"DisplayName": TEXT, "Url": TEXT}
        parts = (*parts, ObjectColumns(author, key="Authors", shape="list"))
    if fields.has_answers:
        answers = _post(fields, tables, f"{ANSWERS}.", ANSWER_ATTRIBUTES, added)
        parts = (*parts, replace(answers, key=ANSWERS, shape="list"))
    return replace(question, attributes=attributes, parts=parts)


def _post(
    fields: Fields, tables: Sequence[str], prefix: str, names: Sequence[str], added: Attributes
) -> ObjectColumns:
    """Return the columns of a post (attributes, nested parts) in the order of the JSON object."""
    attributes = {name: POSTS.attributes[name] for name in names if fields.has(prefix + name)}
    return _object_columns(
        attributes, select_parts(tables, fields.has, prefix), added, is_post=True
    )


def _object_columns(
    attributes: Attributes,
    parts: Iterable[Part],
    added: Attributes,
    *,
    is_post: bool = False,
    key: str = "",
    shape: Shape = "record",
) -> ObjectColumns:
    values = {part.key: part.attributes[part.key] for part in parts if part.shape == "value"}
    inner = tuple(_part_columns(part, added) for part in parts if part.shape != "value")
    all_attributes = {**attributes, **values, **(added if is_post else {})}
    return ObjectColumns(all_attributes, inner, is_post, key, shape)


def _part_columns(part: Part, added: Attributes) -> ObjectColumns:
    names = part.attributes if part.columns is None else part.columns
    attributes = {name: kind for name, kind in part.attributes.items() if name in names}
    attributes |= added if part.by else {}
    return _object_columns(attributes, part.parts, added, key=part.key, shape=part.shape)
