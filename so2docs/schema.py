"""Declarations of the dump and of documents: tables, attributes, types and nesting.

Everything that depends on the shape of a document is derived from this module: Parquet columns, the
JSON Schema, database tables and documents restored from them, the paths of `--fields`, dates for
MongoDB, and reserved names. Tests compare this module with the constants of the compiled core.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

Row = dict[str, Any]
"""A row of a dump or a part of a document: typed values by name."""

Type = Literal["integer", "text", "date", "boolean", "texts", "integers"]
"""Type of an attribute. Integers have 64 bits. Dates are UTC, without a time zone. `texts` and
`integers` are lists."""

Shape = Literal["list", "record", "counts", "value"]
"""Shape of the value of a key: a list of records, an optional record, counts by name, or a single
value."""

Attributes = Mapping[str, Type]
"""Names and types of attributes, in the order of the dump."""

INTEGER: Type = "integer"
TEXT: Type = "text"
DATE: Type = "date"
BOOLEAN: Type = "boolean"
TEXTS: Type = "texts"
INTEGERS: Type = "integers"

_TYPE_BY_ENDING: dict[str, Type] = {"Id": INTEGER, "Count": INTEGER, "Date": DATE}
_TYPE_BY_NAME: dict[str, Type] = {
    **dict.fromkeys(("Age", "Amount", "BountyAmount", "Class", "ProposedBy"), INTEGER),
    **dict.fromkeys(("Reputation", "Revisions", "Score", "Views", "UpVotes", "DownVotes"), INTEGER),
    **dict.fromkeys(("IsModeratorOnly", "IsRequired", "TagBased"), BOOLEAN),
    **dict.fromkeys(("Events", "Tags"), TEXTS),
    **dict.fromkeys(("ApprovedBy", "OriginalQuestionIds"), INTEGERS),
}


def _attributes(names: str) -> Attributes:
    """Return attributes with their types, which follow from the names; most are texts."""
    return {name: _TYPE_BY_NAME.get(name) or _type_by_ending(name) for name in names.split()}


def _type_by_ending(name: str) -> Type:
    return next((kind for end, kind in _TYPE_BY_ENDING.items() if name.endswith(end)), TEXT)


@dataclass(frozen=True, slots=True)
class Part:
    """The value of one key of a post, or of a row inside a post.

    Attributes:
        key: The key.
        shape: The shape of the value.
        attributes: Attributes of each record, or the counted names; for a single value, the key
            and its type.
        table: Name of the table that the value comes from.
        parts: Parts nested in each record, after its attributes.
        by: For a nested user, the attribute with the user's id; otherwise empty.
        is_optional: Whether the key is left out if there is no value.
        is_open: Whether the records may have members that are not in `attributes`.
    """

    key: str
    shape: Shape
    attributes: Attributes
    table: str = ""
    parts: tuple[Part, ...] = ()
    by: str = ""
    is_optional: bool = False
    is_open: bool = False


@dataclass(frozen=True)
class Table:
    """A table of a dump, and its form in documents.

    Attributes:
        name: Name of the table in options and messages.
        file: Name of the file in a dump.
        row: Word for a row in messages, such as `comment`.
        attributes: All attributes ever published, in the order of the dump.
        required: Required attributes; rows without them are strays.
        sequence: Place of the table's chunks in the spill, after those of the posts; 0 for posts
            and for tables that cannot be nested.
        key: Key of the rows in a post; empty if posts contain no rows of the table.
        shown: Attributes in documents; None for all.
        given: Attributes that so2docs adds to each row.
        users: Attributes with user ids, each with the key under which the user is nested.
        holds: Parts nested in each row, in addition to users.
        entry: Attributes of the entries that replace rows in documents; None if rows are kept.
        adds: Additional parts of a post, next to `key`, that come from this table.
        option: The option that names the file; the name of the table if empty.
        is_in_all: Whether `nest="all"` includes the table.
        needs: Name of the table whose rows contain the rows of this one, and which is nested too.
        counted: Counted names, if posts contain counts instead of rows.
    """

    name: str
    file: str
    row: str
    attributes: Attributes
    required: tuple[str, ...] = ()
    sequence: int = 0
    key: str = ""
    shown: tuple[str, ...] | None = None
    given: Attributes = field(default_factory=dict)
    users: Mapping[str, str] = field(default_factory=dict)
    holds: tuple[Part, ...] = ()
    entry: Attributes | None = None
    adds: tuple[Part, ...] = ()
    option: str = ""
    is_in_all: bool = True
    needs: str = ""
    counted: Attributes = field(default_factory=dict)

    @property
    def dated_by(self) -> str:
        """The attribute with the date when a row was created."""
        return "Date" if "Date" in self.attributes else "CreationDate"

    @property
    def file_option(self) -> str:
        """The option that names the file."""
        return self.option or self.name

    @property
    def stem(self) -> str:
        """The name of the file without `.xml`."""
        return self.file.removesuffix(".xml")

    @property
    def root(self) -> str:
        """The name of the root element, which identifies the table."""
        return self.stem.lower()

    @cached_property
    def kind(self) -> int:
        """Number that identifies the table's records in sort keys; 0 if the rows are not nested."""
        return _FIRST_KIND + self.sequence if self.key else 0

    @cached_property
    def documented(self) -> Attributes:
        """Attributes that a row of the table has in documents, with their types."""
        if self.entry is not None:
            return self.entry
        names = self.attributes if self.shown is None else self.shown
        return {**{name: self.attributes[name] for name in names}, **self.given}

    @cached_property
    def numbers(self) -> frozenset[str]:
        """Attributes of rows in documents that are numbers in JSON."""
        names = self.attributes if self.shown is None else self.shown
        return frozenset(name for name in names if self.attributes[name] == INTEGER)

    @cached_property
    def references(self) -> Mapping[str, str]:
        """Attributes that hold the `Id` of a row, each with the name of the table of that row."""
        ends = {"UserId": "users", "PostId": "posts", "ParentId": "posts", "AnswerId": "posts"}
        return {
            name: table
            for name in self.attributes
            for end, table in ends.items()
            if name.endswith(end)
        }

    @cached_property
    def reserved(self) -> frozenset[str]:
        """Keys that so2docs adds to a row; no attribute may have these names."""
        return frozenset({*self.given, *self.users.values()})

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts of a post that come from the table; empty if posts contain none of its rows."""
        if not self.key:
            return ()
        users = tuple(_user(key, by) for by, key in self.users.items())
        shape: Shape = "counts" if self.counted else "list"
        attributes = self.counted or self.documented
        return Part(self.key, shape, attributes, self.name, (*self.holds, *users)), *self.adds


_FIRST_KIND = 4

BOUNTY = 8
"""Kind of the records of bounties, which are made from votes."""


_OF_USERS: Attributes = _attributes("Id Reputation CreationDate DisplayName")
"""Attributes of users in documents: those that the licence requires for attribution, and the
reputation. The other attributes are rare, long, or internal to the site."""


BADGE_CLASSES = {1: "Gold", 2: "Silver", 3: "Bronze"}
"""Names of badge classes, by number in the dump."""

BADGES = Part("Badges", "record", dict.fromkeys(BADGE_CLASSES.values(), INTEGER), "badges")
"""The part of a user with the number of badges of each class."""


def _user(key: str, by: str) -> Part:
    return Part(key, "record", _OF_USERS, "users", parts=(BADGES,), by=by)


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

LINK_TYPES = {1: "linked", 3: "duplicate"}
"""Names of link types: table LinkTypes of the Stack Exchange Data Explorer."""

VOTE_TYPES = {
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
}
"""Names of the vote types in published dumps, from the table VoteTypes of the Stack Exchange Data
Explorer. The key of any other type is its number."""

BOUNTY_TYPES = frozenset({8, 9})
"""Types of votes for bounties: offered on a question, or awarded to an answer."""

TITLES, BODIES, TAGS = frozenset({1, 4, 7}), frozenset({2, 5, 8}), frozenset({3, 6, 9})
CONTENT = TITLES | BODIES | TAGS
"""Types of events that contain a text of the post."""

STATES = frozenset({*range(10, 23), *range(33, 39)})
"""Types of events that change the state of a post: closed, deleted, locked, protected,
community-owned, with a notice, migrated, merged, and the reverse of each."""

POSTS = Table(
    "posts",
    "Posts.xml",
    "post",
    _attributes(
        "Id PostTypeId ParentId AcceptedAnswerId CreationDate Score ViewCount Body OwnerUserId "
        "OwnerDisplayName LastEditorUserId LastEditorDisplayName LastEditDate LastActivityDate "
        "Title Tags AnswerCount CommentCount FavoriteCount ClosedDate CommunityOwnedDate "
        "ContentLicense"
    ),
    users={"OwnerUserId": "Owner", "LastEditorUserId": "LastEditor"},
)
"""The posts table, to whose rows the rows of other tables belong."""

_OF_QUESTIONS = frozenset(
    ("AcceptedAnswerId", "ViewCount", "Title", "Tags", "AnswerCount", "FavoriteCount", "ClosedDate")
)
_OF_ANSWERS = frozenset({"ParentId"})
QUESTION_ATTRIBUTES = tuple(name for name in POSTS.attributes if name not in _OF_ANSWERS)
"""Attributes of a question."""
ANSWER_ATTRIBUTES = tuple(name for name in POSTS.attributes if name not in _OF_QUESTIONS)
"""Attributes of an answer."""

_EDITORS = (
    Part("Revisions", "value", _attributes("Revisions")),
    Part(
        "Editors",
        "list",
        _attributes("UserId UserDisplayName"),
        parts=(_user("User", "UserId"),),
    ),
)
_MARKDOWN = Part("BodyMarkdown", "value", _attributes("BodyMarkdown"), is_optional=True)


def _history(name: str, sequence: int, texts: str, adds: tuple[Part, ...]) -> Table:
    """Declare the history table at one level of detail, with one entry per revision."""
    return Table(
        name,
        "PostHistory.xml",
        "event",
        _attributes(
            "Id PostHistoryTypeId PostId RevisionGUID CreationDate UserId UserDisplayName Comment "
            "Text ContentLicense"
        ),
        required=("Id", "PostId", "PostHistoryTypeId"),
        sequence=sequence,
        key="History",
        entry=_attributes(
            "Id RevisionGUID CreationDate UserId UserDisplayName Events Comment Text "
            f"{texts} CloseReason CloseReasonId OriginalQuestionIds ProposedBy ApprovedBy "
            "RollbackTo Url ContentLicense"
        ),
        holds=(
            Part(
                "Voters",
                "list",
                _attributes("Id DisplayName"),
                name,
                is_optional=True,
                is_open=True,
            ),
        ),
        users={"UserId": "User"},
        adds=(
            Part(
                "Closed",
                "record",
                _attributes("Reason Date OriginalQuestionIds"),
                name,
                is_optional=True,
            ),
            *(replace(part, table=name) for part in adds),
        ),
        option="history",
        is_in_all=False,
    )


BOUNTIES = Part(
    "Bounties",
    "list",
    _attributes("Amount CreationDate UserId"),
    "votes",
    parts=(_user("User", "UserId"),),
    is_optional=True,
)
"""The part of a post with the bounties offered on a question or awarded to an answer."""


_NESTED = (
    Table(
        "comments",
        "Comments.xml",
        "comment",
        _attributes("Id PostId Score Text CreationDate UserDisplayName UserId ContentLicense"),
        required=("Id", "PostId"),
        sequence=1,
        key="Comments",
        users={"UserId": "User"},
    ),
    Table(
        "links",
        "PostLinks.xml",
        "link",
        _attributes("Id CreationDate PostId RelatedPostId LinkTypeId"),
        required=("Id", "PostId"),
        sequence=2,
        key="Links",
        given=_attributes("LinkType"),
    ),
    Table(
        "votes",
        "Votes.xml",
        "vote",
        _attributes("Id PostId VoteTypeId UserId CreationDate BountyAmount"),
        required=("PostId", "VoteTypeId"),
        sequence=3,
        key="Votes",
        counted=dict.fromkeys(VOTE_TYPES.values(), INTEGER),
        adds=(BOUNTIES,),
    ),
    _history("closings", 5, "", ()),
    _history("history", 6, "", _EDITORS),
    _history("history-text", 7, "Title Body Tags", (*_EDITORS, _MARKDOWN)),
    Table(
        "users",
        "Users.xml",
        "user",
        {
            **_OF_USERS,
            **_attributes(
                "EmailHash LastAccessDate WebsiteUrl Location Age AboutMe Views UpVotes DownVotes "
                "ProfileImageUrl AccountId"
            ),
        },
        required=("Id",),
        sequence=4,
        shown=tuple(_OF_USERS),
    ),
    Table(
        "badges",
        "Badges.xml",
        "badge",
        _attributes("Id UserId Name Date Class TagBased"),
        required=("UserId", "Class"),
        sequence=8,
        is_in_all=False,
        needs="users",
    ),
)

TABLES = {table.name: table for table in _NESTED}
"""The tables that can be nested, by name, in the order of nesting."""

DUMP = {
    table.name: table
    for table in (
        POSTS,
        *(table for table in _NESTED if table.name == table.file_option),
        Table(
            "tags",
            "Tags.xml",
            "tag",
            _attributes("Id TagName Count ExcerptPostId WikiPostId IsModeratorOnly IsRequired"),
        ),
    )
}
"""All tables of a dump, nested or not, by name."""

NUMBERS = POSTS.numbers
"""Attributes of posts that are numbers in JSON."""

OF_KIND = {table.kind: table for table in TABLES.values() if table.kind}
"""The tables whose rows are nested in posts, by the kind of their records."""

MEMBERS = {
    **{kind: (table.name, table.key) for kind, table in OF_KIND.items()},
    BOUNTY: ("votes", BOUNTIES.key),
}
"""Table and key of the rows in posts, by the kind of their records."""

COMMENT, LINK, VOTE = (TABLES[name].kind for name in ("comments", "links", "votes"))
USER_ATTRIBUTES = tuple(TABLES["users"].documented)

AS_OF = "as-of"
"""Stands for a table in the parts of a post that exist only in the state of a date."""

BODY_FROM = Part("BodyFrom", "value", _attributes("BodyFrom"), AS_OF)
"""The part of a post that tells where its body comes from: `dump` or `history`."""

ASKED_LATER = "AskedLater"
"""Member of later questions, with the value `True`; only recipes get such questions."""

POST_PARTS = (
    BODY_FROM,
    *(part for table in TABLES.values() for part in table.parts),
    *(_user(key, by) for by, key in POSTS.users.items()),
)
"""The parts of a post, in the order of the JSON object."""


def paths(parts: Iterable[Part] = POST_PARTS, prefix: str = "") -> Iterator[tuple[str, Part]]:
    """Yield the parts of a post at any depth, each with its path, such as `Comments.User`."""
    for part in parts:
        yield prefix + part.key, part
        yield from paths(part.parts, f"{prefix}{part.key}.")


def select_parts(
    tables: Collection[str],
    has: Callable[[str], bool] = bool,
    prefix: str = "",
    parts: Iterable[Part] = POST_PARTS,
) -> tuple[Part, ...]:
    """Select the parts and attributes that documents have, in the order of the JSON object."""
    selected = []
    for part in parts:
        path = prefix + part.key
        if part.table in tables and has(path):
            is_value = part.shape == "value"
            inside = {
                n: kind for n, kind in part.attributes.items() if is_value or has(f"{path}.{n}")
            }
            inner = select_parts(tables, has, f"{path}.", part.parts)
            selected.append(replace(part, attributes=inside, parts=inner))
    return tuple(selected)


OTHER = "Other"
"""Column for attributes without a column, and for values that do not fit their column's type.

It holds a JSON object as text, because not all readers support maps: data set hubs do not."""

ANSWERS = "Answers"
RESERVED = frozenset({ANSWERS, *(part.key for part in POST_PARTS)})
"""Keys that so2docs may add to a post; no attribute may have these names."""

TYPES: Attributes = {
    **{name: kind for _, part in paths() for name, kind in part.attributes.items()},
    **POSTS.attributes,
}
"""Type of every attribute in documents; each name has a single type."""

DATES = frozenset(name for name, kind in TYPES.items() if kind == DATE)
"""Attributes in documents whose values are dates."""
