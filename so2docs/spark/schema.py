"""Questions as typed columns: the attributes that published dumps have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from so2docs.posts import NUMBERS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

# In the order of the dumps (2008 to 2024); all may be absent.
_POST = (
    "Id PostTypeId {link} CreationDate Score ViewCount Body OwnerUserId OwnerDisplayName "
    "LastEditorUserId LastEditorDisplayName LastEditDate LastActivityDate Title Tags AnswerCount "
    "CommentCount FavoriteCount ClosedDate CommunityOwnedDate ContentLicense"
)
_OF_QUESTIONS_ONLY = {"ViewCount", "Title", "Tags", "AnswerCount", "FavoriteCount", "ClosedDate"}


def documents() -> str:
    """The columns of documents as JSON."""
    return "Site string NOT NULL, Id bigint NOT NULL, Document string NOT NULL"


def question() -> StructType:
    """A question with its answers. Dates are UTC, of a type without a zone, as in the dumps."""
    from pyspark.sql.types import ArrayType, StructType

    names = _POST.format(link="ParentId").split()
    answer = _struct([name for name in names if name not in _OF_QUESTIONS_ONLY])
    asked = _struct(_POST.format(link="AcceptedAnswerId").split())
    return StructType(asked.fields).add("Answers", ArrayType(answer))


def _struct(names: list[str]) -> StructType:
    from pyspark.sql import types

    struct = types.StructType()
    for name in names:
        if name in NUMBERS:
            struct.add(name, types.LongType())
        elif name == "Tags":
            struct.add(name, types.ArrayType(types.StringType()))
        elif name.endswith("Date"):
            struct.add(name, types.TimestampNTZType())
        else:
            struct.add(name, types.StringType())
    return struct


def typed(frame: DataFrame) -> DataFrame:
    """The columns of `question` in place of the JSON."""
    from pyspark.sql.functions import from_json

    parsed = frame.select("Site", from_json("Document", question()).alias("Question"))
    return parsed.select("Site", "Question.*")
