"""Tables, attributes, types and names of a dump. Nothing but definitions."""

from __future__ import annotations

from dataclasses import dataclass

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

NUMBERS = frozenset(
    {
        "AcceptedAnswerId",
        "AnswerCount",
        "CommentCount",
        "FavoriteCount",
        "Id",
        "LastEditorUserId",
        "OwnerUserId",
        "ParentId",
        "PostTypeId",
        "Score",
        "ViewCount",
    }
)
"""Attributes that are JSON numbers in a document."""

TYPE_NAMES = {
    3: "Wiki",
    4: "TagWikiExcerpt",
    5: "TagWiki",
    6: "ModeratorNomination",
    7: "WikiPlaceholder",
    8: "PrivilegeWiki",
    9: "Article",
    10: "HelpArticle",
    12: "Collection",
    13: "ModeratorQuestionnaireResponse",
    14: "Announcement",
    15: "CollectiveDiscussion",
    17: "CollectiveCollection",
}
"""Post types besides questions and answers: table PostTypes of the Stack Exchange Data Explorer."""

COMMENT_USER = "User"
USER_IDS = {"OwnerUserId": "Owner", "LastEditorUserId": "LastEditor"}
"""Attributes of a post by which users are found, and where those go; in a comment it is `User`."""

COMMENT, LINK, VOTE = 5, 6, 7
"""Kinds of records, beside those of posts."""

LINK_TYPES = {1: "linked", 3: "duplicate"}
"""Types of links: table LinkTypes of the Stack Exchange Data Explorer."""

VOTE_TYPES = {
    0: "UndoMod",
    1: "AcceptedByOriginator",
    2: "UpMod",
    3: "DownMod",
    4: "Offensive",
    5: "Favorite",
    6: "Close",
    7: "Reopen",
    8: "BountyStart",
    9: "BountyClose",
    10: "Deletion",
    11: "Undeletion",
    12: "Spam",
    13: "InformModerator",
    14: "NominateModerator",
    15: "ModeratorReview",
    16: "ApproveEditSuggestion",
    17: "Reaction1",
    18: "Helpful",
    19: "ThankYou",
    20: "WellWritten",
    21: "Follow",
    22: "Reaction2",
    23: "Reaction3",
    24: "Reaction4",
    25: "Reaction5",
    26: "Reaction6",
    27: "Reaction7",
    28: "Reaction8",
    29: "Outdated",
    30: "NotOutdated",
    31: "PreVote",
    32: "CollectiveDiscussionUpvote",
    33: "CollectiveDiscussionDownvote",
    35: "privateAiAnswerCorrect",
    36: "privateAiAnswerIncorrect",
    37: "privateAiAnswerPartiallyCorrect",
}
"""Types of votes: table VoteTypes of the Stack Exchange Data Explorer."""

VOTE_COLUMNS = tuple(VOTE_TYPES[number] for number in range(1, 17))
"""Those that dumps are published with, for formats that need to know beforehand."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a dump.

    Attributes:
        name: What users ask for.
        file: Its file in a dump.
        row: What one row of it is called.
        numbers: Attributes that are JSON numbers.
        required: Those among them without which a row has no place.
        sequence: Where its chunks come in the spill, after those of the posts.
        kind: Kind of its records; 0 if it has none.
        key: Under which a post holds them.
        reserved: Key that documents give such a row, which no attribute may have.
    """

    name: str
    file: str
    row: str
    numbers: frozenset[str]
    required: tuple[str, ...]
    sequence: int
    kind: int = 0
    key: str = ""
    reserved: str = ""

    @property
    def stem(self) -> str:
        """The name of its file without `.xml`."""
        return self.file.removesuffix(".xml")

    @property
    def root(self) -> str:
        """The name of its root element, which tells one table from another."""
        return self.stem.lower()


POSTS = Table("posts", "Posts.xml", "post", NUMBERS, (), 0)
"""The table that every other one belongs to."""

TABLES = {
    table.name: table
    for table in (
        Table(
            "comments",
            "Comments.xml",
            "comment",
            frozenset({"Id", "PostId", "Score", "UserId"}),
            ("Id", "PostId"),
            1,
            COMMENT,
            "Comments",
            COMMENT_USER,
        ),
        Table(
            "links",
            "PostLinks.xml",
            "link",
            frozenset({"Id", "PostId", "RelatedPostId", "LinkTypeId"}),
            ("Id", "PostId"),
            2,
            LINK,
            "Links",
            "LinkType",
        ),
        Table(
            "votes",
            "Votes.xml",
            "vote",
            frozenset({"Id", "PostId", "VoteTypeId", "UserId", "BountyAmount"}),
            ("PostId", "VoteTypeId"),
            3,
            VOTE,
            "Votes",
        ),
        Table("users", "Users.xml", "user", frozenset({"Id", "Reputation"}), ("Id",), 4),
    )
}
"""The others, which can be nested, by name, in the order in which they are read and nested."""

ALL_NUMBERS = NUMBERS.union(*(table.numbers for table in TABLES.values()))
"""Attributes that are JSON numbers, in whatever table."""

OF_KIND = {table.kind: table for table in TABLES.values() if table.kind}

NESTED = {
    "Comments": COMMENT_ATTRIBUTES,
    "Links": LINK_ATTRIBUTES,
    "Votes": tuple(VOTE_TYPES.values()),
    **dict.fromkeys(USER_IDS.values(), USER_ATTRIBUTES),
}
"""What is nested in a post, in the order in which it stands there: its key, its attributes."""

ANSWERS = "Answers"
RESERVED = frozenset({ANSWERS, *NESTED})
"""Keys that documents give a post, nested or not: no attribute may have these names."""
