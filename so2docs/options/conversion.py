"""The options of a conversion, checked once."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import get_args

from so2docs.errors import OptionError, flag
from so2docs.options.choices import AnswersBy, BodyAs, Core
from so2docs.options.filters import Filters
from so2docs.options.output_form import OutputForm
from so2docs.recipes.attribution import FIELDS
from so2docs.recipes.finding import RecipeChoice
from so2docs.schema import ANSWER_ATTRIBUTES, ANSWERS, NESTED, QUESTION_ATTRIBUTES, RESERVED

KNOWN_NAMES = {*QUESTION_ATTRIBUTES, *ANSWER_ATTRIBUTES, ANSWERS}
"""Names that documents have already."""

_GZIP_LEVELS, _ZSTD_LEVELS = 9, 19


@dataclass(frozen=True, slots=True)
class Options:
    """How a dump is converted; `convert` says what each means.

    Travels to the workers whole, so that an option touches only who offers it and who obeys it.
    Whoever makes them says which core it is: `auto` may mean another one in a worker.
    """

    jobs: int | None = None
    answers_by: AnswersBy = "id"
    level: int = 2
    skip_malformed: bool = False
    chunk_bytes: int | None = None
    progress: bool = False
    core: Core = "auto"
    site_field: tuple[str, str] | None = None
    strict: bool = False
    form: OutputForm = field(default_factory=OutputForm)
    filters: Filters = field(default_factory=Filters)
    body: BodyAs = "html"
    nest: tuple[str, ...] = ()
    spill_budget: int | None = None
    recipe: RecipeChoice | None = None
    attribution: bool = False
    host: str | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise OptionError(f"{flag('jobs')} is {self.jobs}; it must be 1 or more")
        if self.answers_by not in ("id", "votes"):
            raise OptionError(
                f"{flag('answers_by')} is {self.answers_by!r}; it must be 'id' or 'votes'"
            )
        most = _GZIP_LEVELS if self.form.compression == "gzip" else _ZSTD_LEVELS
        if not 0 <= self.level <= most:
            of = "gzip" if most == _GZIP_LEVELS else "zstd"
            raise OptionError(f"{flag('level')} is {self.level}; it must be 0 to {most} for {of}")
        if self.chunk_bytes is not None and self.chunk_bytes < 1:
            raise OptionError(f"{flag('chunk_bytes')} is {self.chunk_bytes}; it must be 1 or more")
        if self.strict and self.skip_malformed:
            raise OptionError(
                f"{flag('strict', True)} and {flag('skip_malformed', True)} contradict each other; "
                "give one"
            )
        known = ("", *KNOWN_NAMES, *(NESTED if self.nest else ()))
        if self.site_field is not None and self.site_field[0] in known:
            raise OptionError(
                f"{flag('site_field')} is {self.site_field[0]!r}; it must be a name that posts do "
                "not have"
            )
        self._check_recipe()
        self._check_body()
        fields = self.filters.fields
        if self.form.split_by is not None and not fields.has_whole("CreationDate"):
            raise OptionError(
                f"{flag('split_by', self.form.split_by)} needs CreationDate, which "
                f"{flag('fields')} or {flag('without')} leaves out"
            )
        fields.check_nested(self.nest)
        if self.filters.limit is not None and self.form.split_files is not None:
            raise OptionError(
                f"{flag('split')} by number of files contradicts {flag('limit')}; split by size, "
                f"as in {flag('split', '1GB')}"
            )

    def _check_body(self) -> None:
        if self.body not in get_args(BodyAs):
            raise OptionError(
                f"{flag('body')} is {self.body!r}; it must be one of: {', '.join(get_args(BodyAs))}"
            )
        if self.body == "markdown" and find_spec("html_to_markdown") is None:
            raise OptionError(
                f"{flag('body', 'markdown')} needs html-to-markdown: pip install html-to-markdown"
            )
        fields = self.filters.fields
        has_body = fields.has_question("Body") or (fields.has_answers and fields.has_answer("Body"))
        if self.body != "html" and not has_body:
            raise OptionError(f"{flag('body', self.body)} contradicts leaving out the bodies")

    def _check_recipe(self) -> None:
        fields = self.filters.fields
        needed = [*FIELDS, *(f"Answers.{name}" for name in FIELDS if fields.has_answers)]
        needed = needed if self.is_attributed else []
        what = flag("attribution", True)
        if self.recipe is not None:
            recipe, name = self.recipe.recipe, self.form.format
            what = flag("recipe", recipe.name)
            needed += recipe.fields
            if name not in ("jsonl", "json", "parquet"):
                raise OptionError(f"{what} is written as jsonl, json or parquet, not as {name}")
            if name == "parquet" and recipe.schema is None:
                raise OptionError(
                    f"{what}: {flag('format', 'parquet')} needs to know its columns: give a Recipe "
                    "with a schema, in place of the function alone"
                )
        missing = [path for path in needed if not fields.has_whole(path)]
        if missing:
            raise OptionError(
                f"{what} needs {missing[0]}, which {flag('fields')} or {flag('without')} leaves out"
            )

    @property
    def is_attributed(self) -> bool:
        """Whether documents say where they are from."""
        return self.attribution or (self.recipe is not None and self.recipe.recipe.attributed)

    @property
    def threads(self) -> int:
        """How many threads may decompress."""
        return self.jobs or os.cpu_count() or 1

    @property
    def needs_rows(self) -> bool:
        """Whether the first pass must look into rows, beyond keys and types."""
        return (
            self.filters.select
            or not self.filters.fields.has_whole_posts
            or self.body != "html"
            or self.form.has_dates
        )

    @property
    def reserved(self) -> frozenset[str]:
        """Names that no attribute of a post may have, since documents have them as keys."""
        return RESERVED if self.site_field is None else RESERVED | {self.site_field[0]}

    @property
    def needs_all_keys(self) -> bool:
        """Whether the keys of posts that are not sampled must stand with those of the others.

        The rows of tables that belong to such posts are filtered too, and no strays.
        """
        return bool(self.nest) and self.filters.sample is not None
