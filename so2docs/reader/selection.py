"""A selection of documents, filtered while reading."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from so2docs.errors import OutputError
from so2docs.options.table import QuestionFilters
from so2docs.parse.filters import question_conditions

if TYPE_CHECKING:
    from so2docs.types import Question


class Selection:
    """A selection of documents, which can be iterated over any number of times.

    Args:
        documents: Returns the documents to select from.
        path: Name of the output, for messages.
        filters: The filters.
    """

    def __init__(
        self, documents: Callable[[], Iterable[Question]], path: str, filters: QuestionFilters
    ) -> None:
        self._documents, self._path = documents, path
        self._conditions = question_conditions(filters)

    def __iter__(self) -> Iterator[Question]:
        return filter(self._passes, self._documents())

    def _passes(self, document: Any) -> bool:
        try:
            if not isinstance(document.get("CreationDate", ""), str):
                raise TypeError
            return all(condition.holds(document) for condition in self._conditions)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            number = document.get("Id") if isinstance(document, dict) else None
            raise OutputError(
                f"{self._path}: question {number}: a value has an unexpected type; `where` needs "
                "JSON lines, and does not support the format mongodb"
            ) from error
