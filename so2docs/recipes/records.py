"""Documents -> records, as JSON. What a worker of the second pass does with a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import orjson

from so2docs.errors import RecipeError
from so2docs.recipes.attribution import attribute
from so2docs.recipes.recipe import Recipe


class RecordMaker:
    """Makes the records of one document after the other.

    Args:
        recipe: What to make of a document; None to leave it one.
        host: Host name of the site, where documents say where they are from.
        convert_body: Makes of the HTML of a body what is asked for; None if it stays HTML.
    """

    def __init__(
        self,
        recipe: Recipe | None,
        host: str | None,
        convert_body: Callable[[str], str] | None = None,
    ) -> None:
        self._recipe = recipe
        self._host = host
        self._convert_body = convert_body

    def records(self, question_id: int, json: bytes) -> list[bytes]:
        """The records of a document.

        Args:
            question_id: Its id, for the message of an error.
            json: The document.

        Raises:
            RecipeError: The recipe fails, or returns what is no record.
        """
        document = orjson.loads(json)
        if self._convert_body is not None:
            for post in (document, *document.get("Answers", ())):
                if (body := post.get("Body")) is not None:
                    post["Body"] = self._convert_body(body)
        if self._host is not None:
            document = attribute(document, self._host)
        if self._recipe is None:
            return [orjson.dumps(document)]
        try:
            return [self._json(record) for record in self._recipe.function(document)]
        except Exception as error:
            raise RecipeError(
                f"recipe {self._recipe.name}: failed at question {question_id}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _json(self, record: object) -> bytes:
        if not isinstance(record, Mapping):
            raise TypeError(f"a record must be a dictionary, not {type(record).__name__}")
        return orjson.dumps(record)
