"""Questions as typed columns: the attributes that published dumps have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from so2docs.options.conversion import Options
from so2docs.schema import NUMBERS, TABLES

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

_COMMENT = "Id PostId Score Text CreationDate UserDisplayName UserId ContentLicense"
_LINK = "Id CreationDate PostId RelatedPostId LinkTypeId LinkType"
_USER = "Id Reputation CreationDate DisplayName"
_NUMBERS = NUMBERS.union(*(table.numbers for table in TABLES.values()))


def documents() -> str:
    """The columns of documents as JSON."""
    return "Site string NOT NULL, Id bigint NOT NULL, Document string NOT NULL"


def question(options: Options | None = None) -> StructType:
    """A question with its answers. Dates are UTC, of a type without a zone, as in the dumps.

    Args:
        options: For which options; those that nobody changed if None.
    """
    from pyspark.sql.types import ArrayType

    options = options or Options()
    fields = options.filters.fields
    names = _POST.format(link="ParentId").split()
    of_answer = [name for name in names if name not in _OF_QUESTIONS_ONLY]
    of_question = _POST.format(link="AcceptedAnswerId").split()
    asked = _struct([name for name in of_question if fields.has_question(name)])
    _add_tables(asked, options.nest)
    if fields.has_answers:
        answer = _struct([name for name in of_answer if fields.has_answer(name)])
        _add_tables(answer, options.nest)
        asked.add("Answers", ArrayType(answer))
    return asked


def _add_tables(post: StructType, nest: tuple[str, ...]) -> None:
    """What the tables that are nested add to a post."""
    from pyspark.sql.types import ArrayType, LongType, MapType, StringType

    user = _struct(_USER.split())
    if "comments" in nest:
        comment = _struct(_COMMENT.split())
        post.add("Comments", ArrayType(comment.add("User", user) if "users" in nest else comment))
    if "links" in nest:
        post.add("Links", ArrayType(_struct(_LINK.split())))
    if "votes" in nest:
        post.add("Votes", MapType(StringType(), LongType()))
    if "users" in nest:
        post.add("Owner", user).add("LastEditor", user)


def _struct(names: list[str]) -> StructType:
    from pyspark.sql import types

    struct = types.StructType()
    for name in names:
        if name in _NUMBERS:
            struct.add(name, types.LongType())
        elif name == "Tags":
            struct.add(name, types.ArrayType(types.StringType()))
        elif name.endswith("Date"):
            struct.add(name, types.TimestampNTZType())
        else:
            struct.add(name, types.StringType())
    return struct


def typed(frame: DataFrame, options: Options) -> DataFrame:
    """The columns of `question` in place of the JSON."""
    from pyspark.sql.functions import from_json

    parsed = frame.select("Site", from_json("Document", question(options)).alias("Question"))
    return parsed.select("Site", "Question.*")
