"""Documents on their way into the output: as they are, with attribution, or as records.

A document that stays as it is is not parsed: its bytes are joined only when they are written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from so2docs.merge import Document, Nesting
from so2docs.options.conversion import Options
from so2docs.recipes.records import RecordMaker


def recorded(nested: Nesting, options: Options) -> Iterable[Document]:
    """What is written of nested documents, counted in their tally.

    Raises:
        RecipeError: The recipe fails.
    """
    if options.recipe is None and not options.is_attributed:
        return nested
    return _records(nested, options)


def _records(nested: Nesting, options: Options) -> Iterator[Document]:
    recipe = None if options.recipe is None else options.recipe.recipe
    maker = RecordMaker(recipe, options.host if options.is_attributed else None)
    for document in nested:
        number = document.question_id
        records = maker.records(number, b"".join((*document.parts, b"}")))
        nested.tally.records += len(records)
        nested.tally.without_record += not records
        for json in records:
            yield Document(number, [memoryview(json)[:-1]], len(json))
