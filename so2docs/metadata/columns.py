"""Describe the columns of documents and records in Markdown tables: name, type and meaning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from so2docs.escape import for_html
from so2docs.recipes import beir
from so2docs.recipes.finding import RECIPES
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
    "Url": "URL on the site",
    "Licenses": "licences of all texts in the document",
    "Authors": "authors of all texts in the document",
    "DisplayName": "name of the user",
    "Reputation": "reputation of the user at the time of the dump",
    "Badges": "number of badges of the user by class",
    "Answers": "answers to the question",
    "IsAccepted": "whether the asker accepted the answer",
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
    "id": "id, unique across sites",
    "qid": "id of the question on its site",
    "answer_id": "id of the answer on its site; absent for a question",
    "post_id": "id of the post on its site",
    "url": "URL of the post",
    "site": "host name of the site",
    "title": "title of the question",
    "tags": "tags of the question",
    "score": "votes for the post minus votes against it",
    "accepted": "whether the asker accepted the answer",
    "license": "licence of the post",
    "licenses": "licences of all texts in the record",
    "authors": "authors with name and URL",
    "name": "name of the author",
    "authors.url": "URL of the author's profile",
    "authors_name": "names of the authors",
    "authors_url": "URLs of the authors' profiles, in the order of the names",
    "created": "date of creation, in UTC",
    "metadata": "source and attribution of the record",
    "metadata.answer_id": "id of the answer on its site",
    "metadata.answer": "id, URL, score, licence and authors of the answer",
    "metadata.chosen": "id, URL, score, licence and authors of the better answer",
    "metadata.rejected": "id, URL, score, licence and authors of the worse answer",
    "metadata.comments": "licence, authors and date of each comment in the conversation",
    "prompt": "question: title and body",
    "completion": "answer to the question",
    "label": "true for an answer with a positive score, false for a negative one",
    "messages": "conversation that starts with the question and an answer",
    "role": "`system`, `user` or `assistant`",
    "content": "text of the message",
    "chosen": "better answer; preceded by the question if there is no `prompt`",
    "rejected": "worse answer; preceded by the question if there is no `prompt`",
    "anchor": "question: title and body",
    "positive": "better answer",
    "negative": "worse answer",
    "score_chosen": "score of the better answer, like `pm_score` of `preferences`",
    "score_rejected": "score of the worse answer, like `pm_score` of `preferences`",
    "text": "text of the question with its answers",
    "source": "host name of the site",
    "start": "position of the passage in the text of the post",
    "text_before": "paragraph, heading or list item before the code",
    "language": "language of the code; empty if unknown",
    "language_from": "source of the language: `author` or `tags`; empty if unknown",
    "code": "text of the code block",
    "field": "edited field: `title`, `body` or `tags`",
    "before": "text before the edit",
    "after": "text after the edit",
    "comment": "comment of the editor",
    "event": "type of the event, such as `EditBody`",
    "question": "body of the question",
    "answers": "answers to the question",
    "pm_score": "log2(1 + votes), rounded, plus 1 if accepted; -1 for negative votes",
    "selected": "whether the asker accepted the answer",
    "author": "name of the author",
    "author_id": "id of the author; -1 if unknown",
    "author_profile": "URL of the author's profile",
    "date": "date of the question",
    "_id": "id of the post on its site",
    "query-id": "id of the query",
    "corpus-id": "id of the relevant document",
}
"""Meanings of columns by name or path; a path takes precedence."""

_BY_RECIPE = {
    "hub": {"Tags": "tags of the question, such as `|taste|bottling|`"},
    "chunks": {"text": "passage of the post"},
    "preferences": {
        "text": "body of the answer",
        "metadata": "URLs of the question, the site and the author",
    },
    "edits": {"license": "licence of the edit", "authors": "editor with name and URL"},
    "beir": {
        "title": "title of the question; empty for an answer",
        "text": "text of the document or the query",
        "score": "1 for a relevant document",
    },
}
_SIDES = {
    "answer": "answer",
    "chosen": "better answer",
    "rejected": "worse answer",
    "comments": "comments",
}
"""Meanings of the first part of a column name such as `chosen_url`, for flat metadata."""

_TYPES = {"string": "text", "number": "number", "integer": "integer", "boolean": "boolean"}


def describe_columns(
    recipe: str | None, schema: Mapping[str, Any], *, has_dates: bool = False
) -> Iterator[str]:
    """Yield Markdown tables that describe the columns of an output and the members of objects.

    For a user's own recipe, the meanings are the `description`s in its schema.

    Args:
        recipe: Name of the recipe, if any.
        schema: JSON Schema of a document or record.
        has_dates: Whether dates have their own type instead of text.
    """
    if recipe == beir.BEIR.name:
        for configuration, (_, file) in beir.CONFIGURATIONS.items():
            yield f"Configuration `{configuration}`:\n\n{_table(recipe, beir.SCHEMAS[file], False)}"
    else:
        yield _table(recipe, schema, has_dates)


def _table(recipe: str | None, schema: Mapping[str, Any], has_dates: bool) -> str:
    return "\n".join(
        ["| column | type | meaning |", "|---|---|---|", *_rows(recipe, schema, has_dates)]
    )


def _rows(
    recipe: str | None, schema: Mapping[str, Any], has_dates: bool, prefix: str = ""
) -> Iterator[str]:
    for name, kind in schema["properties"].items():
        path = prefix + name
        type_ = "date" if has_dates and name in DATES else _type(kind)
        meaning = _meaning(recipe, path, name, kind).replace("|", r"\|")
        yield f"| `{path}` | {type_} | {meaning} |"
        members = kind.get("items", kind)
        # Votes have 36 types, which are not listed.
        if "properties" in members and not prefix and name != "Votes":
            yield from _rows(recipe, members, has_dates, f"{path}.")


def _meaning(recipe: str | None, path: str, name: str, schema: Mapping[str, Any]) -> str:
    if recipe is not None and recipe not in RECIPES.own:
        return for_html(" ".join(str(schema.get("description", "")).split()))
    if "const" in schema:
        return "name of the site, from `--site-field`"
    meanings = {**MEANINGS, **_BY_RECIPE.get(recipe or "", {})}
    side, _, member = name.partition("_")
    if path in meanings or name in meanings or side not in _SIDES:
        return meanings.get(path) or meanings.get(name, "")
    return f"{_SIDES[side]}: {'id on the site' if member == 'id' else meanings[member]}"


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "string")
    # The second type is a string, for numbers beyond 64 bits.
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return _TYPES.get(kind, kind)
