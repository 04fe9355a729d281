"""The options of recipes: which recipe, its settings, attribution, and questions in two shares."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from so2docs.domain import last_moment
from so2docs.errors import did_you_mean
from so2docs.extensions.recipes.catalog import ALIASES, NAMES, load_recipe
from so2docs.extensions.recipes.recipe import BEST, QUERIES_UNTIL, Recipe
from so2docs.options.choices import FORMATS, formats_from_name
from so2docs.options.option import assignments, lacks_field
from so2docs.options.transform import METADATA, RECORDS, TransformOptions
from so2docs.plugin import OptionError, flag, option

if TYPE_CHECKING:
    from so2docs.counts import RowCounts
    from so2docs.merge import Document
    from so2docs.options.table import Options
    from so2docs.output.paths import OutputPaths
    from so2docs.plugin import NewFiles, Provenance, Report

_CREDITED = ("Id", "CreationDate", "OwnerUserId", "OwnerDisplayName", "ContentLicense")
"""Attributes of a post that are needed for the attribution."""

_document = partial(option, "Documents")


@dataclass(frozen=True, slots=True)
class RecipeChoice:
    """A choice of a recipe by name, so that every worker can find it.

    Attributes:
        spec: Name of a recipe, or `package.module:name` for a recipe of the user.
        settings: Settings that differ from the defaults, by name.
        accepted: Whether the option `accepted` is given.
        has_metadata: Whether records have the column with source and attribution.
    """

    spec: str
    settings: tuple[tuple[str, Any], ...] = ()
    accepted: bool = False
    has_metadata: bool = True

    @property
    @cache  # noqa: B019
    def recipe(self) -> Recipe:
        """The chosen recipe, with the settings and the changes to its columns applied."""
        recipe = find_recipe(self.spec)
        settings = dict(self.settings)
        given = {f"{name}={value}" for name, value in settings.items()}
        if self.accepted:
            given.add("accepted")
        for key, changes in recipe.variants.items():
            if key in given:
                settings.pop(key.partition("=")[0], None)
                recipe = replace(recipe, **changes)
        if BEST in recipe.settings and settings.pop(BEST.name, False):
            recipe = replace(recipe, answers="best")
        return replace(
            recipe,
            function=partial(recipe.function, **settings) if settings else recipe.function,
            later_until=settings.get(QUERIES_UNTIL.name),
            has_metadata=self.has_metadata,
        )

    @property
    def fingerprint(self) -> str:
        """The recipe's name; for recipes outside this package, also a hash of the module."""
        name = self.spec
        if self.recipe.needs_all_questions:
            name += ", accepted"
        if self.spec in NAMES:
            return name
        module = importlib.import_module(self.spec.partition(":")[0])
        path = inspect.getsourcefile(module)
        source = Path(path).read_bytes() if path else b""
        return f"{name} {hashlib.sha256(source).hexdigest()[:12]}"


def choose_recipe(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    accepted: bool = False,
) -> RecipeChoice:
    """Find a recipe, and check its settings.

    Args:
        name: Name of a recipe, or `package.module:name`.
        settings: Values of settings by name, as text or with their type.
        accepted: Whether the option `accepted` is given.

    Raises:
        OptionError: The recipe is unknown, or it does not have one of the settings or does not
            allow its value.
    """
    if not isinstance(name, str):
        raise OptionError(
            f"{flag('recipe')} is {name!r}; it must be a name, or 'package.module:name' of your own"
        )
    spec = ALIASES.get(name, name)
    recipe = find_recipe(spec)
    values = recipe.read_settings(settings or {})
    choice = RecipeChoice(spec, tuple(values.items()), accepted)
    if accepted and values.get(BEST.name):
        raise OptionError(
            f"{flag('settings', 'best=true')} and {flag('accepted', True)} contradict each other; "
            "give one of them"
        )
    if (check := choice.recipe.check) is not None:
        check(**{name: value for name, value in values.items() if name != BEST.name})
    return choice


@cache
def find_recipe(spec: str) -> Recipe:
    """Return a recipe of this package by name, or import one of the user.

    Raises:
        OptionError: There is no such recipe.
    """
    if spec in NAMES:
        return load_recipe(spec)
    module_name, _, name = spec.partition(":")
    if not (module_name and name):
        raise OptionError(
            f"{flag('recipe')} is {spec!r}; it must be one of: {', '.join(NAMES)}, "
            "or package.module:function of your own" + did_you_mean(spec, [*NAMES, *ALIASES])
        )
    try:
        item: Any = attrgetter(name)(importlib.import_module(module_name))
    except ImportError as error:
        raise OptionError(
            f"recipe {spec}: {module_name} cannot be imported: {error}; check its name, and "
            "install it or put it into the current folder"
        ) from error
    except AttributeError as error:
        raise OptionError(f"recipe {spec}: {error}; check the name after the colon") from error
    if isinstance(item, Recipe):
        return replace(item, name=spec)
    if not callable(item):
        kind = type(item).__name__
        raise OptionError(f"recipe {spec}: is not a function but {kind}; give one by name")
    return Recipe(spec, item)


def _with_aliases(recipe: str) -> str:
    aliases = [alias for alias, name in ALIASES.items() if name == recipe]
    return f"{recipe} (or {', '.join(aliases)})" if aliases else recipe


@dataclass(frozen=True, slots=True)
class RecipeOptions(TransformOptions):
    """The options of recipes in a conversion."""

    recipe: RecipeChoice | None = _document(
        "Write the records of a data set instead of the documents: "
        f"{', '.join(map(_with_aliases, NAMES))}, or your own package.module:function.",
        accepts=str | None,
        choices=(*NAMES, *ALIASES),
        metavar="NAME",
        parse=lambda _, name: name,
        remember=lambda value: value and value.fingerprint,
    )
    settings: tuple[tuple[str, Any], ...] = _document(
        "A setting of {recipe}; see so2docs recipes NAME.",
        (),
        accepts=str | Mapping[str, Any] | Iterable[str] | None,
        default_keyword=None,
        parse=assignments,
        flags=("--set",),
        metavar="NAME=VALUE",
        more="The value is a dictionary, such as `{'min_margin': 2}`, or texts such as "
        "`min_margin=2`.",
        remember=dict,
    )
    without_linked: bool = _document(
        "Leave out questions that a link joins to another share.",
        False,
        more="With a recipe and shares in {split}: no record of a question with a link, such as a "
        "duplicate, to a question in another file.",
    )
    attribution: bool = _document("Add URLs, licences and authors.", False)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> RecipeOptions:
        """Find the recipe, and check its settings.

        Raises:
            OptionError: The recipe is unknown, a setting is not allowed, or an option needs a
                recipe.
        """
        settings = values.get("settings")
        without_linked = bool(values.get("without_linked"))
        attribution = bool(values.get("attribution"))
        if values.get("recipe") is None:
            if settings:
                raise OptionError(f"{flag('settings')} needs {flag('recipe', 'NAME')}")
            return cls(without_linked=without_linked, attribution=attribution)
        choice = choose_recipe(values["recipe"], settings, accepted=bool(values.get("accepted")))
        choice = replace(choice, has_metadata=METADATA not in values.get("drop_fields", ()))
        known = choice.recipe.settings_by_name
        recorded = tuple((name, known[name].identify(value)) for name, value in choice.settings)
        return cls(choice, recorded, without_linked, attribution)

    @property
    def transform(self) -> Recipe:
        """The chosen recipe, or the attribution of documents."""
        if self.recipe is None:
            return Recipe("", lambda document: [document], attributed=self.attribution)
        recipe = self.recipe.recipe
        return recipe if recipe.attributed else replace(recipe, attributed=self.attribution)

    def check(self, options: Options) -> None:
        """Check that documents have what the recipe reads, and that the output can hold records.

        Raises:
            OptionError: Two options contradict each other.
        """
        recipe, fields = self.transform, options.filters.selected
        shares = options.form.split.shares
        if self.without_linked and not (recipe.name and shares):
            missing = flag("recipe") if shares else flag("split", "train=0.9,test=0.1")
            raise OptionError(f"{flag('without_linked', True)} needs {missing}")
        has_no_metadata = recipe.record and METADATA not in recipe.record.__annotations__
        if METADATA in options.filters.drop_fields and (
            not recipe.name or recipe.files or has_no_metadata
        ):
            raise OptionError(
                f"{flag('drop_fields', METADATA)} needs a recipe whose records have this column"
            )
        subject = flag("recipe", recipe.name) if recipe.name else flag("attribution", True)
        needed = list(recipe.fields)
        if recipe.attributed:
            needed += (*_CREDITED, *(f"Answers.{name}" for name in _CREDITED if fields.has_answers))
        for path in needed:
            if not fields.has_whole(path):
                raise lacks_field(subject, path)
        if recipe.name:
            _check_form(recipe, options, subject)

    def prepare(self, report: Report) -> None:
        """Name the recipe in a report, and set the counts of its records to zero."""
        if self.recipe is not None:
            report.recipe = self.recipe.spec
            report.records = report.without_record = 0
        if self.without_linked:
            report.linked_elsewhere = 0

    def apply(
        self, documents: Iterable[Document], counts: RowCounts, options: Options
    ) -> Iterable[Document]:
        """Make the records of documents, and count them."""
        from so2docs.extensions.recipes.records import make_records  # Only needed in workers.

        apart = self.without_linked
        return make_records(self.transform, documents, counts, options, apart=apart)

    def finish(
        self, names: OutputPaths, files: NewFiles, provenance: Provenance, report: Report
    ) -> None:
        """Make the files of a recipe that writes several."""
        from so2docs.extensions.recipes.record_sets import finish_set

        finish_set(self.transform, names, files, provenance, report)

    @staticmethod
    def find_output(output: str | None, values: Mapping[str, Any]) -> str | None:
        """Return the path of the records of a recipe that writes several files.

        Raises:
            OptionError: An option does not apply to several files, or the output is a file.
        """
        recipe = RecipeOptions.of(values).transform
        if not recipe.files:
            return None
        subject = flag("recipe", recipe.name)
        for name in ("format", "compression", "split"):
            if values.get(name) is not None:
                raise OptionError(
                    f"{subject} cannot be used with {flag(name)}; leave {flag(name)} out"
                )
        folder = recipe.name if output is None else output
        if folder == "-" or formats_from_name(folder) or os.path.isfile(folder):
            raise OptionError(
                f"{subject} writes a folder, but {folder} is the name of a file; choose another "
                "output"
            )
        return os.path.join(folder, RECORDS)


def _check_form(recipe: Recipe, options: Options, subject: str) -> None:
    """Check that the output can hold the records of a recipe."""
    name, as_of = options.form.format, options.filters.as_of
    if FORMATS[name].ids:
        raise OptionError(f"{subject} does not support {flag('format', name)}; use jsonl")
    if not FORMATS[name].compressed and recipe.schema is None:
        raise OptionError(
            f"{subject}: {flag('format', name)} needs columns; give a Recipe with the TypedDict "
            "of its records instead of a function"
        )
    if options.site_field is not None and recipe.name in NAMES:
        raise OptionError(
            f"{flag('site_field', options.site_field[0])} applies only to documents, and the "
            f"records of {subject} have columns of their own; leave it out"
        )
    if recipe.later_until is not None:
        setting = flag("settings", f"{QUERIES_UNTIL.name}={recipe.later_until}")
        if as_of is None:
            raise OptionError(f"{setting} needs {flag('as_of', 'DATE')}, the date of the corpus")
        if last_moment(recipe.later_until) <= last_moment(as_of):
            raise OptionError(f"{setting} must be after {flag('as_of', as_of)}")
