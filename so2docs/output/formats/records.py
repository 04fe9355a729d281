"""Parquet of the records of a recipe: columns from the JSON Schema of a record."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from so2docs.errors import OptionError, RecipeError, flag
from so2docs.output.formats.columns import Row
from so2docs.output.formats.parquet import Parquet


class RecordParquet(Parquet):
    """One Parquet file: a row a record.

    Attributes:
        record_schema: JSON Schema of a record.
        is_one_a_question: Whether a record is a question, with its id as `Id`.
    """

    record_schema: Mapping[str, Any]
    is_one_a_question: bool = False

    @property
    def sorted_by(self) -> str:
        """The column by which the rows of the file ascend; empty if none is known to."""
        return "Id" if self.is_one_a_question else ""

    @cached_property
    def schema(self) -> Any:
        """The Arrow schema."""
        import pyarrow as pa

        return pa.schema(_fields(self.record_schema))

    def table(self, rows: list[Row]) -> Any:
        """The Arrow table of some records."""
        import pyarrow as pa

        try:
            return pa.Table.from_pylist(rows, schema=self.schema)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise RecipeError(f"a record does not fit the schema of its recipe: {error}") from error


def _fields(schema: Mapping[str, Any]) -> list[Any]:
    import pyarrow as pa

    required = schema.get("required", ())
    return [
        pa.field(name, _type(kind), nullable=name not in required)
        for name, kind in schema["properties"].items()
    ]


def _type(schema: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    kind = schema.get("type")
    if kind == "object" and "properties" in schema:
        return pa.struct(_fields(schema))
    if kind == "array" and "items" in schema:
        return pa.list_(pa.field("element", _type(schema["items"])))
    plain = {
        "string": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "boolean": pa.bool_(),
    }
    if not isinstance(kind, str) or kind not in plain:
        raise OptionError(f"{flag('format', 'parquet')}: no column type for {dict(schema)!r}")
    return plain[kind]
