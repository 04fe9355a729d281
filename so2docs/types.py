"""Types of documents, for type checkers and editors.

Keys that are not required, such as `ClosedDate`, are missing from some rows: use `get`. Posts have
`Comments`, `Links` and `Votes` only if these tables are nested (`nest="all"`). The options `fields`
and `drop_fields` can leave out any key. Dates are strings, as in the dump.

Examples:
    >>> from so2docs.types import Question
    >>> def words(question: Question) -> int:
    ...     return len(question["Body"].split())
"""

from __future__ import annotations

from typing import NotRequired, TypedDict


class User(TypedDict):
    """A user, with the attributes that documents contain."""

    Id: int
    Reputation: int
    CreationDate: str
    DisplayName: str
    Badges: NotRequired[Badges]
    Url: NotRequired[str]


class Author(TypedDict):
    """An author of a question, its answers and comments."""

    DisplayName: str
    Url: NotRequired[str]


class Badges(TypedDict):
    """Number of badges that a user has, by class."""

    Gold: int
    Silver: int
    Bronze: int


class Comment(TypedDict):
    """A comment on a post."""

    Id: int
    PostId: int
    Score: int
    Text: str
    CreationDate: str
    UserDisplayName: NotRequired[str]
    UserId: NotRequired[int]
    ContentLicense: NotRequired[str]
    User: NotRequired[User]


class Link(TypedDict):
    """A link from a post to a question."""

    Id: int
    CreationDate: str
    PostId: int
    RelatedPostId: int
    LinkTypeId: int
    LinkType: str


class Bounty(TypedDict):
    """A bounty offered on a question, or awarded to an answer."""

    Amount: int
    CreationDate: str
    UserId: NotRequired[int]
    User: NotRequired[User]


class Voter(TypedDict):
    """A voter, such as one who voted to close a question."""

    Id: NotRequired[int]
    DisplayName: NotRequired[str]


class Revision(TypedDict):
    """One action of a user in the history of a post."""

    Id: int
    RevisionGUID: NotRequired[str]
    CreationDate: str
    UserId: NotRequired[int]
    UserDisplayName: NotRequired[str]
    Events: list[str]
    Comment: NotRequired[str]
    Text: NotRequired[str]
    Title: NotRequired[str]
    Body: NotRequired[str]
    Tags: NotRequired[list[str]]
    CloseReason: NotRequired[str]
    CloseReasonId: NotRequired[int]
    OriginalQuestionIds: NotRequired[list[int]]
    ProposedBy: NotRequired[int]
    ApprovedBy: NotRequired[list[int]]
    RollbackTo: NotRequired[str]
    Url: NotRequired[str]
    ContentLicense: NotRequired[str]
    Voters: NotRequired[list[Voter]]
    User: NotRequired[User]


class Closing(TypedDict):
    """The reason for closing a post."""

    Reason: NotRequired[str]
    Date: str
    OriginalQuestionIds: NotRequired[list[int]]


class Editor(TypedDict):
    """An editor of a post."""

    UserId: NotRequired[int]
    UserDisplayName: NotRequired[str]
    User: NotRequired[User]


class Post(TypedDict):
    """The keys that questions and answers share."""

    Id: int
    PostTypeId: int
    CreationDate: str
    Score: int
    Body: str
    OwnerUserId: NotRequired[int]
    OwnerDisplayName: NotRequired[str]
    LastEditorUserId: NotRequired[int]
    LastEditorDisplayName: NotRequired[str]
    LastEditDate: NotRequired[str]
    LastActivityDate: NotRequired[str]
    CommentCount: NotRequired[int]
    CommunityOwnedDate: NotRequired[str]
    ContentLicense: NotRequired[str]
    BodyFrom: NotRequired[str]
    Comments: list[Comment]
    Links: list[Link]
    Votes: dict[str, int]
    Bounties: NotRequired[list[Bounty]]
    History: NotRequired[list[Revision]]
    Closed: NotRequired[Closing]
    Revisions: NotRequired[int]
    Editors: NotRequired[list[Editor]]
    BodyMarkdown: NotRequired[str]
    Owner: NotRequired[User]
    LastEditor: NotRequired[User]
    Url: NotRequired[str]


class Answer(Post):
    """An answer."""

    ParentId: int


class Question(Post):
    """A document: a question with its answers."""

    AcceptedAnswerId: NotRequired[int]
    ViewCount: NotRequired[int]
    Title: str
    Tags: list[str]
    AnswerCount: NotRequired[int]
    FavoriteCount: NotRequired[int]
    ClosedDate: NotRequired[str]
    Licenses: NotRequired[list[str]]
    Authors: NotRequired[list[Author]]
    Answers: list[Answer]
