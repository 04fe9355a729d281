"""What users of the conversion on Spark may ask for: the keywords, and the `Options` they make."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, get_type_hints

from so2docs.merge import AnswersBy
from so2docs.options.conversion import Options
from so2docs.options.filters import filters_of
from so2docs.options.output_form import FormatName, ending, form_of
from so2docs.output.compression import Compression
from so2docs.posts.bodies import BodyAs
from so2docs.posts.core import Core
from so2docs.sources.tables import asked


class DocumentKeywords(TypedDict, total=False):
    """Keywords of `so2docs.documents`, which say what each means."""

    tags: str | Sequence[str]
    all_tags: bool
    min_score: int | None
    min_answer_score: int | None
    answered: bool
    accepted: bool
    since: str | None
    until: str | None
    sample: str | float | None
    limit: int | None
    fields: str | Sequence[str] | None
    without: str | Sequence[str] | None
    body: BodyAs
    answers_by: AnswersBy
    skip_malformed: bool
    core: Core
    strict: bool
    nest: Iterable[str]
    chunk_bytes: int | None


class FileKeywords(DocumentKeywords, total=False):
    """Those of `so2docs.convert` that say in what form the files are, too."""

    format: FormatName | None
    compression: Compression | None
    index: str | None
    level: int


_FILTERS = set(inspect.signature(filters_of).parameters)
_FORM = {"format", "compression", "index"}


def options_of(given: Mapping[str, Any], allowed: type) -> Options:
    """The options that keywords ask for.

    Args:
        given: The keywords.
        allowed: The class that has them.

    Raises:
        OptionError: A value is not allowed, or two contradict each other.
        TypeError: There is no such keyword.
    """
    for name in sorted(given.keys() - get_type_hints(allowed).keys()):
        raise TypeError(f"got an unexpected keyword argument {name!r}")
    of_form = {name: given.get(name) for name in _FORM}
    form = form_of(f"part{ending(of_form['format'], of_form['compression'])}", **of_form)
    rest = {name: value for name, value in given.items() if name not in _FILTERS | _FORM}
    rest["nest"] = asked(given.get("nest", ()), {})
    return Options(
        # Part files are found by their place among the others; an index of each is no use.
        form=replace(form, is_looked_up=False),
        filters=filters_of(**{name: given[name] for name in _FILTERS & given.keys()}),
        **rest,
    )
