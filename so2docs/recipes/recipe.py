"""A recipe is a function from a document to records, and what has to be known of it.

A record is described in JSON Schema (https://json-schema.org/draft/2020-12/schema).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}


def array(items: Schema) -> Schema:
    """Any number of values."""
    return {"type": "array", "items": items}


def record(**properties: Schema) -> Schema:
    """An object that has just these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


Document = dict[str, Any]
Record = dict[str, Any]
JsonSchema = Mapping[str, Any]
Function = Callable[..., Iterable[Record]]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A function from a document to records.

    Attributes:
        name: What users ask for.
        function: Takes a document, as a dictionary that it may change, and returns its records, in
            order; for the same document always the same. A record has JSON types.
        schema: JSON Schema (2020-12) of a record; None if it is not known, which Parquet needs.
        tables: Tables that it cannot do without.
        optional_tables: Tables that it uses where they are next to the posts.
        fields: Fields of a document that it reads, such as `Title` or `Answers.Body`.
        body: Form of the bodies where the user asks for none.
        attributed: Whether documents need to say where they are from: see `attribution`.
        files: Names of the files that its records go to, where there are several: each record is
            `{file: record}`.
        needs_all_questions: Whether `accepted` chooses among its records only, and leaves no
            question out.
        reads_html: Whether it reads the HTML of the bodies, which no other form of them replaces.
        settings: Names of the options that its function takes as keywords.
        variants: The recipes that take its place where these options are given, by their names.
        check: Refuses values of these by `OptionError`, before anything is converted.
        is_by_site: Whether a record is a question, with its id as `Id`, and, in a folder of several
            outputs, each site is a folder with a file `train`.
    """

    name: str
    function: Function
    schema: JsonSchema | None = None
    tables: tuple[str, ...] = ()
    optional_tables: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    body: Literal["html", "text", "markdown"] = "html"
    attributed: bool = False
    files: tuple[str, ...] = ()
    needs_all_questions: bool = False
    reads_html: bool = False
    settings: tuple[str, ...] = ()
    variants: Mapping[str, Recipe] = field(default_factory=dict)
    check: Callable[..., None] | None = None
    is_by_site: bool = False
