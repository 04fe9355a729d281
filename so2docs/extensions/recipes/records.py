"""Add the attribution to documents, or convert them to the records of a recipe."""

from __future__ import annotations

import inspect
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import orjson

from so2docs.counts import RowCounts
from so2docs.domain import rank, score, share_of
from so2docs.errors import RecipeError
from so2docs.extensions.json_schema import find_mismatch
from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.attribution import attribute, locate
from so2docs.extensions.recipes.catalog import NAMES
from so2docs.extensions.recipes.recipe import Recipe
from so2docs.merge import Document
from so2docs.options.table import Options
from so2docs.options.transform import METADATA
from so2docs.parse import bodies
from so2docs.parse.core import contains


class RecordMaker:
    """Converts the JSON of documents to records."""

    def __init__(
        self,
        recipe: Recipe,
        host: str | None,
        convert_body: Callable[[str], str] | None = None,
        site: str | None = None,
        *,
        has_default_alts: bool = True,
    ) -> None:
        """Take the recipe and the form of its bodies.

        Args:
            recipe: The recipe.
            host: Host for the attribution; None for none.
            convert_body: Function that converts the HTML of a body; None to keep it.
            site: Host of the site, for links within it; None to keep them.
            has_default_alts: Whether pictures keep the text that editors of the sites suggest.
        """
        is_checked = recipe.name and recipe.name not in NAMES
        self._recipe = recipe
        self._host = host
        self._convert_body = convert_body
        self._has_default_alts = has_default_alts
        self._schema = recipe.schema if is_checked else None
        self._attribute = locate if recipe.attributed == "posts" else attribute
        self._site = f"https://{site}/" if recipe.name and site is not None else None

    def records(self, question_id: int, json: bytes) -> Iterator[bytes]:
        """Yield the records of a document one by one; together, they can be many times its size."""
        recipe = self._recipe
        if recipe.min_answers and json.endswith(_UNANSWERED):
            return
        document = orjson.loads(json)
        if recipe.min_answers > 1 and len(document["Answers"]) < recipe.min_answers:
            return
        _choose_answers(document, recipe.answers)
        if recipe.without_banner and "Body" in document:
            document["Body"] = _BANNER.sub("", document["Body"], count=1)
        for change in self._body_changes(json):
            for post in (document, *document.get("Answers", ())):
                if (body := post.get("Body")) is not None:
                    post["Body"] = change(body)
        if self._host is not None:
            document = self._attribute(document, self._host)
        try:
            result = recipe.function(document)
            if not isinstance(result, Iterable) or isinstance(result, _NO_RECORDS):
                raise TypeError(
                    f"it returned a {type(result).__name__}; yield each record, or return a list "
                    "of them"
                )
            for record in result:
                yield self._json(record)
        except Exception as error:
            raise RecipeError(
                f"recipe {recipe.name}: failed at question {question_id}"
                f"{_line_of(error, recipe)}: {type(error).__name__}: {error}"
            ) from error

    def _body_changes(self, json: bytes) -> Iterator[Callable[[str], str]]:
        """Yield the functions that change the bodies of a document.

        Few documents have markup to change. The compiled core finds it in a whole document much
        faster than Python finds it in each body.
        """
        if self._site is not None and contains(json, b'=\\"/'):
            yield partial(_RELATIVE.sub, self._complete_link)
        if not self._has_default_alts and contains(json, b"<img"):
            yield partial(_DEFAULT_ALT.sub, "")
        if self._recipe.lower_headings and contains(json, b"<h"):
            yield partial(_HEADING.sub, self._lower_heading)
        if self._convert_body is not None:
            yield self._convert_body

    def _lower_heading(self, tag: re.Match[str]) -> str:
        return f"{tag[1]}{min(6, int(tag[2]) + self._recipe.lower_headings)}"

    def _complete_link(self, link: re.Match[str]) -> str:
        return f"{link[1]}{'https://' if link[2] == '//' else self._site}"

    def _json(self, record: object) -> bytes:
        recipe = self._recipe
        if type(record) is not dict and not isinstance(record, Mapping):
            raise TypeError(f"a record must be a dictionary, not {type(record).__name__}")
        if not recipe.has_metadata:
            record = {name: record[name] for name in record if name != METADATA}
        if self._schema is not None and (mismatch := find_mismatch(record, self._schema)):
            raise TypeError(mismatch)
        return orjson.dumps(record)


def _choose_answers(question: dict[str, Any], which: str) -> None:
    """Remove the answers that a recipe does not read.

    Among best answers with equal scores, an accepted answer is kept, or else the one with the
    lowest id.
    """
    if which == "none":
        question["Answers"] = []
    elif which == "accepted":
        question["Answers"] = [a for a in question["Answers"] if posts.is_accepted(a, question)]
    elif which == "best" and (answers := rank(question)):
        question["Answers"] = [max(answers, key=score)]


_UNANSWERED = b'"Answers":[]}'
"""End of a document without answers, which are its last member."""
_NO_RECORDS = (Mapping, str, bytes)


def _line_of(error: Exception, recipe: Recipe) -> str:
    """Name the line of the recipe's module that led to an error; empty if unknown."""
    function = inspect.unwrap(getattr(recipe.function, "func", recipe.function))
    file = inspect.getsourcefile(function)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f" ({file}, line {frames[-1].lineno})" if frames else ""


_BANNER = re.compile(
    r"\A\s*<blockquote>\s*<p><strong>Possible Duplicates?:</strong>\s*<br\s*/?>"
    r"(?:(?!</blockquote>).)*</blockquote>\s*",
    re.DOTALL,
)
_HEADING = re.compile(r"(</?h)([1-6])(?=[\s>])")
"""Pattern for a heading tag; in HTML text, `<` is always written as a character reference."""

_DEFAULT_ALT = re.compile(r'\salt="(?:enter image description here|alt text)"')
"""Pattern for the text of a picture whose author wrote none: that of the sites' editors."""

_RELATIVE = re.compile(r"""(<(?:a|img)\s(?:[^<>]*\s)?(?:href|src)=")(//?)""", re.IGNORECASE)
"""Pattern for the start of an address without a scheme, or without a scheme and host."""


def _is_linked_elsewhere(json: bytes, label: str, ends: list[tuple[str, int]]) -> bool:
    """Whether a question or one of its answers links to a post in a share other than `label`."""
    if b'"Links":[{' not in json:
        return False
    question = orjson.loads(json)
    ids = (
        link.get("RelatedPostId")
        for post in (question, *question.get("Answers", ()))
        for link in post.get("Links", ())
    )
    return any(share_of(id_, ends) != label for id_ in ids if isinstance(id_, int))


def make_records(
    recipe: Recipe, nested: Iterable[Document], counts: RowCounts, options: Options, *, apart: bool
) -> Iterator[Document]:
    """Yield the records of a recipe, or documents with an attribution: see `RecipeOptions.apply`.

    If `apart`, questions with a link to a question in another share are left out.
    """
    host = options.site if recipe.attributed else None
    convert_body = bodies.converter(options.later_body, options.core, options.site)
    is_text = bool(recipe.name) and options.later_body == "text"
    maker = RecordMaker(recipe, host, convert_body, options.site, has_default_alts=not is_text)
    ends = options.form.split.ends if apart else []
    for document in nested:
        number, count, whole = document.question_id, 0, b"".join((*document.parts, b"}"))
        is_left_out = ends and _is_linked_elsewhere(whole, document.label, ends)
        for json in () if is_left_out else maker.records(number, whole):
            count += 1
            yield Document(number, [memoryview(json)[:-1]], len(json), document.label)
        if apart:
            counts.linked_elsewhere = (counts.linked_elsewhere or 0) + bool(is_left_out)
        if recipe.name:
            counts.records = (counts.records or 0) + count
            counts.without_record = (counts.without_record or 0) + (not count)
