"""Describe the columns of documents and records in Markdown tables: name, type and meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from so2docs.escape import for_html
from so2docs.schema import DATES

MEANINGS = {
    "Id": "id on the site",
    "PostTypeId": "1 for a question, 2 for an answer",
    "AcceptedAnswerId": "id of the answer that the asker accepted",
    "ParentId": "id of the question",
    "CreationDate": "date of creation, in UTC",
    "Score": "votes for the post minus votes against it",
    "ViewCount": "number of views of the question",
    "Body": "text of the post",
    "OwnerUserId": "id of the author",
    "OwnerDisplayName": "name of an author without an account",
    "LastEditorUserId": "id of the last editor",
    "LastEditorDisplayName": "name of a last editor without an account",
    "LastEditDate": "date of the last edit, in UTC",
    "LastActivityDate": "date of the last activity on the post, in UTC",
    "Title": "title of the question",
    "Tags": "tags of the question",
    "AnswerCount": "number of answers, according to the site",
    "CommentCount": "number of comments, according to the site",
    "FavoriteCount": "number of users who saved the question",
    "ClosedDate": "date when the question was closed, in UTC",
    "CommunityOwnedDate": "date when the post became a community wiki, in UTC",
    "ContentLicense": "licence of the text",
    "BodyFrom": "source of the body: `dump` or `history`",
    "Url": "URL on the site",
    "Licenses": "licences of all texts in the document",
    "Authors": "authors of all texts in the document",
    "DisplayName": "name of the user",
    "Reputation": "reputation of the user at the time of the dump",
    "Badges": "number of badges of the user by class",
    "Answers": "answers to the question",
    "Comments": "comments on the post",
    "Comments.Score": "number of votes for the comment",
    "PostId": "id of the post",
    "Text": "text of the comment, or of the revision",
    "UserDisplayName": "name of a user without an account",
    "UserId": "id of the user",
    "User": "the user, from Users.xml",
    "Owner": "the author, from Users.xml",
    "LastEditor": "the last editor, from Users.xml",
    "Links": "links to other questions",
    "RelatedPostId": "id of the question that the link leads to",
    "LinkTypeId": "1 for a link, 3 for a duplicate",
    "LinkType": "`linked` or `duplicate`",
    "Votes": "number of votes by type",
    "Bounties": "bounties offered on the question, or awarded to the answer",
    "Amount": "reputation offered or awarded",
    "History": "events and revisions of the post",
    "RevisionGUID": "id shared by the events of a revision",
    "Events": "types of the events of the revision",
    "Comment": "comment of the editor",
    "History.Title": "title in this revision",
    "History.Body": "Markdown of the body in this revision",
    "History.Tags": "tags in this revision",
    "CloseReason": "reason to close the question",
    "CloseReasonId": "number of the reason to close the question",
    "OriginalQuestionIds": "ids of the questions that the question duplicates",
    "ProposedBy": "id of the user who suggested the edit",
    "ApprovedBy": "ids of the users who approved the suggested edit",
    "RollbackTo": "revision that the rollback restored",
    "Voters": "users who voted for the event",
    "Closed": "reason and date, if the question is closed",
    "Reason": "reason to close the question",
    "Date": "date in UTC",
    "Revisions": "number of revisions of the post",
    "Editors": "users who edited the post",
    "BodyMarkdown": "Markdown of the body, from the last revision",
}
"""Meanings of columns by name or path; a path takes precedence."""


def describe_columns(
    recipe: str | None,
    schema: Mapping[str, Any],
    *,
    has_dates: bool = False,
) -> str:
    """Return a Markdown table of the columns of an output and the members of objects.

    A column without a `description` in the schema has the meaning of its name, unless the recipe is
    one of the user.

    Args:
        recipe: Name of the recipe, if any.
        schema: JSON Schema of a document or record.
        has_dates: Whether dates have their own type instead of text.
    """
    is_own = recipe is not None and ":" in recipe
    rows = ["| column | type | meaning |", "|---|---|---|"]
    for path, name, kind in _list_columns(schema):
        type_ = "date" if has_dates and name in DATES else _type(kind)
        meaning = "" if is_own else MEANINGS.get(path) or MEANINGS.get(name, "")
        if "const" in kind:
            meaning = "name of the site, from `--site-field`"
        elif "description" in kind:
            meaning = for_html(" ".join(str(kind["description"]).split()))
        meaning = meaning.replace("|", r"\|")
        rows.append(f"| `{path}` | {type_} | {meaning} |")
    return "\n".join(rows)


def _list_columns(
    schema: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield path, name and schema of each column, and of the members of objects in columns."""
    for name, kind in schema.get("properties", {}).items():
        yield prefix + name, name, kind
        # Votes have 36 types, which are not listed.
        if not prefix and name != "Votes":
            yield from _list_columns(kind.get("items", kind), f"{name}.")


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "string")
    # The second type is a string, for numbers beyond 64 bits.
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return "text" if kind == "string" else str(kind)
