"""The options that tell one output from another: what a spill and a manifest remember of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from so2docs.errors import flag
from so2docs.options.conversion import Options

_FACTS = {
    "has_dates": f"form of dates ({flag('format', 'mongodb')})",
    "has_all_keys": f"{flag('sample')} together with {flag('nest')}",
    "site_field_name": f"name of {flag('site_field')}",
    "user_ids": f"ids of users ({flag('nest', 'users')})",
}
"""What follows from several options, and what it is called."""


@dataclass(frozen=True, slots=True)
class SpillOptions:
    """What the first pass obeys: filters, and what a row becomes."""

    skip_malformed: bool
    body: str
    has_dates: bool
    has_all_keys: bool
    site_field_name: str | None
    user_ids: list[str]
    tags: list[str]
    all_tags: bool
    min_score: int | None
    min_answer_score: int | None
    min_answers: int | None
    max_body: int | None
    drop_fabricated: bool
    answered: bool
    accepted: bool
    since: str | None
    until: str | None
    sample: int | None
    fields: list[str] | None
    without: list[str]


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What an output depends on, besides the dump; in `spill`, what the first pass obeys."""

    answers_by: str
    level: int
    site_field: list[str] | None
    limit: int | None
    recipe: str | None
    attribution: bool
    site: str | None
    nest: list[str]
    format: str
    compression: str
    index: str
    split: int | str | None
    split_by: str | None
    spill: SpillOptions

    @classmethod
    def of(cls, options: Options) -> Fingerprint:
        """The fingerprint of some options."""
        form, recipe, site_field = options.form, options.recipe, options.site_field
        return cls(
            answers_by=options.answers_by,
            level=options.level,
            site_field=None if site_field is None else list(site_field),
            limit=options.filters.limit,
            recipe=None if recipe is None else recipe.fingerprint,
            attribution=options.is_attributed,
            site=options.host,
            nest=list(options.nest),
            format=form.format,
            compression=form.compression,
            index=form.index,
            split=form.split_files if form.split_bytes is None else f"{form.split_bytes}B",
            split_by=form.split_by,
            spill=_of_spill(options),
        )

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Fingerprint:
        """What `to_json` returned."""
        return cls(**{**values, "spill": SpillOptions(**values["spill"])})

    def by_option(self) -> dict[str, Any]:
        """The values of options by their names."""
        return {name: value for name, value in self._values().items() if name not in _FACTS}

    def _values(self) -> dict[str, Any]:
        values = asdict(self)
        spill = values.pop("spill")
        return {**values, **spill}

    def differences(self, asked: Fingerprint, *, of_spill_only: bool) -> list[str]:
        """Names of options that keep a conversion from resuming what another one began.

        Args:
            asked: The options of the conversion that is to resume.
            of_spill_only: Whether only what the first pass made is used again.
        """
        before, now = self._values(), asked._values()
        # Chunks without malformed rows are the same with and without it.
        if asked.spill.skip_malformed:
            before["skip_malformed"] = True
        of_spill = {field.name for field in fields(SpillOptions)}
        names = [name for name in now if name in of_spill or not of_spill_only]
        return [_FACTS.get(name, flag(name)) for name in names if before[name] != now[name]]


def _of_spill(options: Options) -> SpillOptions:
    filters, kept = options.filters, options.filters.fields.kept
    return SpillOptions(
        skip_malformed=options.skip_malformed,
        body=options.body,
        has_dates=options.form.has_dates,
        has_all_keys=options.needs_all_keys,
        site_field_name=options.site_field and options.site_field[0],
        user_ids=filters.fields.hidden(options.nest),
        tags=sorted(filters.tags),
        all_tags=filters.all_tags,
        min_score=filters.min_score,
        min_answer_score=filters.min_answer_score,
        min_answers=filters.min_answers,
        max_body=filters.max_body,
        drop_fabricated=filters.drop_fabricated,
        answered=filters.answered,
        accepted=filters.accepted,
        since=filters.since,
        until=filters.until,
        sample=filters.sample,
        fields=None if kept is None else sorted(kept),
        without=sorted(filters.fields.left_out),
    )
