"""The `TypedDict`s that cog writes to `so2docs/types.py`, made from the schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from so2docs.schema import (
    ANSWER_ATTRIBUTES,
    ANSWERS,
    POST_PARTS,
    POSTS,
    QUESTION_ATTRIBUTES,
    TABLES,
    Attributes,
    Part,
    paths,
)

_TYPES = {
    "integer": "int",
    "text": "str",
    "date": "str",
    "boolean": "bool",
    "texts": "list[str]",
    "integers": "list[int]",
}
_CLASSES = {
    "Comments": "Comment",
    "Links": "Link",
    "Bounties": "Bounty",
    "Badges": "Badges",
    "User": "User",
    "History": "Revision",
    "Voters": "Voter",
    "Closed": "Closing",
    "Editors": "Editor",
} | dict.fromkeys(POSTS.users.values(), "User")
_ABOUT = {
    "Badges": "Number of badges that a user has, by class.",
    "Comment": "A comment on a post.",
    "Link": "A link from a post to a question.",
    "Bounty": "A bounty offered on a question, or awarded to an answer.",
    "Voter": "A voter, such as one who voted to close a question.",
    "Revision": "One action of a user in the history of a post.",
    "Closing": "The reason for closing a post.",
    "Editor": "An editor of a post.",
}
_EVERYWHERE = {
    "Question": {"Id", "PostTypeId", "CreationDate", "Score", "Body", "Title", "Tags"},
    "Answer": {"Id", "PostTypeId", "ParentId", "CreationDate", "Score", "Body"},
    "Comment": {"Id", "PostId", "Score", "Text", "CreationDate"},
    "Link": {"Id", "CreationDate", "PostId", "RelatedPostId", "LinkTypeId", "LinkType"},
    "User": {"Id", "Reputation", "CreationDate", "DisplayName"},
    "Author": {"DisplayName"},
    "Revision": {"Id", "CreationDate", "Events"},
    "Closing": {"Date"},
    "Bounty": {"Amount", "CreationDate"},
    "Badges": {"Gold", "Silver", "Bronze"},
    "Voter": set[str](),
    "Editor": set[str](),
}
"""Attributes in every row of every published dump."""

_ASKED_FOR = {"Comments", "Links", "Votes"}
"""Keys in every post if the table is nested."""

Member = tuple[str, str, bool]
"""Name, type, and whether every such object has it."""


def text() -> str:
    """Write all classes."""
    by_key = {part.key: part for _, part in paths()}
    parts = list({part.key: part for part in POST_PARTS}.values())
    answer = [*_attributes("Answer", _of_posts(ANSWER_ATTRIBUTES)), *_parts(parts), _URL]
    question = _attributes("Question", _of_posts(QUESTION_ATTRIBUTES))
    question += [*_parts(parts), _URL]
    post = [member for member in question if member in answer]
    answer, question = ([m for m in own if m not in post] for own in (answer, question))
    question += [("Licenses", "list[str]", False), ("Authors", "list[Author]", False)]
    return "\n\n\n".join(
        [
            _class(
                "User",
                "A user, with the attributes that documents contain.",
                [
                    *_attributes("User", TABLES["users"].documented),
                    *_parts(by_key["Owner"].parts),
                    _URL,
                ],
            ),
            _class(
                "Author",
                "An author of a question, its answers and comments.",
                [("DisplayName", "str", True), _URL],
            ),
            *(_of_part(name, by_key) for name in _ABOUT),
            _class("Post", "The keys that questions and answers share.", post),
            _class("Answer", "An answer.", answer, "Post"),
            _class(
                "Question",
                "A document: a question with its answers.",
                [*question, (ANSWERS, "list[Answer]", True)],
                "Post",
            ),
        ]
    )


def _of_part(name: str, by_key: Mapping[str, Part]) -> str:
    """Return the class of the records of a part."""
    [part] = [by_key[key] for key, of_key in _CLASSES.items() if of_key == name]
    return _class(name, _ABOUT[name], [*_attributes(name, part.attributes), *_parts(part.parts)])


_URL: Member = ("Url", "str", False)


def _of_posts(names: Iterable[str]) -> Attributes:
    return {name: POSTS.attributes[name] for name in names}


def _attributes(name: str, attributes: Attributes) -> list[Member]:
    return [
        (attribute, _TYPES[kind], attribute in _EVERYWHERE[name])
        for attribute, kind in attributes.items()
    ]


def _parts(parts: Iterable[Part]) -> list[Member]:
    return [(part.key, _part_type(part), part.key in _ASKED_FOR) for part in parts]


def _part_type(part: Part) -> str:
    if part.shape == "counts":
        return "dict[str, int]"
    if part.shape == "value":
        return _TYPES[part.attributes[part.key]]
    inner = _CLASSES[part.key]
    return f"list[{inner}]" if part.shape == "list" else inner


def _class(name: str, about: str, members: list[Member], base: str = "TypedDict") -> str:
    lines = [f"class {name}({base}):", f'    """{about}"""', ""]
    for member, kind, is_everywhere in members:
        lines.append(f"    {member}: {kind if is_everywhere else f'NotRequired[{kind}]'}")
    return "\n".join(lines)
