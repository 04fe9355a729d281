"""The attributes that rows of a dump are known to have, in the order of the dumps."""

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

COMMENT_ATTRIBUTES = (
    "Id",
    "PostId",
    "Score",
    "Text",
    "CreationDate",
    "UserDisplayName",
    "UserId",
    "ContentLicense",
)
"""Of a comment."""

LINK_ATTRIBUTES = ("Id", "CreationDate", "PostId", "RelatedPostId", "LinkTypeId", "LinkType")
"""Of a link; the last one is not of the dumps."""

USER_ATTRIBUTES = ("Id", "Reputation", "CreationDate", "DisplayName")
"""Of a user, those that documents tell: who it is, for the credit that the licence asks for, and
their standing and time on the site. The rest is rare, long, or of the site's own business."""

DATES = frozenset(
    {"CreationDate", "LastEditDate", "LastActivityDate", "ClosedDate", "CommunityOwnedDate"}
)
"""Of those, points in time: UTC, without a zone."""
