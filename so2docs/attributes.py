"""The attributes that rows of `Posts.xml` are known to have, in the order of the dumps."""

from __future__ import annotations

QUESTION_ATTRIBUTES = (
    "Id",
    "PostTypeId",
    "AcceptedAnswerId",
    "CreationDate",
    "Score",
    "ViewCount",
    "Body",
    "OwnerUserId",
    "OwnerDisplayName",
    "LastEditorUserId",
    "LastEditorDisplayName",
    "LastEditDate",
    "LastActivityDate",
    "Title",
    "Tags",
    "AnswerCount",
    "CommentCount",
    "FavoriteCount",
    "ClosedDate",
    "CommunityOwnedDate",
    "ContentLicense",
)
"""Of a question."""

ANSWER_ATTRIBUTES = (
    "Id",
    "PostTypeId",
    "ParentId",
    "CreationDate",
    "Score",
    "Body",
    "OwnerUserId",
    "OwnerDisplayName",
    "LastEditorUserId",
    "LastEditorDisplayName",
    "LastEditDate",
    "LastActivityDate",
    "CommentCount",
    "CommunityOwnedDate",
    "ContentLicense",
)
"""Of an answer."""

DATES = frozenset(
    {"CreationDate", "LastEditDate", "LastActivityDate", "ClosedDate", "CommunityOwnedDate"}
)
"""Of those, points in time: UTC, without a zone."""
