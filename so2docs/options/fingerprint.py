"""The options that tell one output from another: what a spill and a manifest remember of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from so2docs.errors import flag
from so2docs.options.option import Decides, entries
from so2docs.options.table import Options

_FACTS = {
    "has_dates": f"form of dates ({flag('format', 'mongodb')})",
    "has_all_keys": f"{flag('sample')} together with {flag('nest')}",
    "site_field_name": f"name of {flag('site_field')}",
    "user_ids": f"ids of users ({flag('nest', 'users')})",
}
"""What follows from several options, and what it is called."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What an output depends on, besides the dump.

    Attributes:
        spill: What the first pass obeys, by the names of options.
        output: What else changes the output.
        facts: What follows from several options, of what the first pass obeys.
    """

    spill: dict[str, Any]
    output: dict[str, Any]
    facts: dict[str, Any]

    @classmethod
    def of(cls, options: Options) -> Fingerprint:
        """The fingerprint of some options."""
        facts = {
            "has_dates": options.form.has_dates,
            "has_all_keys": options.needs_all_keys,
            "site_field_name": options.site_field and options.site_field[0],
            "user_ids": options.filters.fields.hidden(options.nest),
        }
        return cls(
            _values_that_decide(options, "spill"), _values_that_decide(options, "output"), facts
        )

    def to_json(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Fingerprint:
        """What `to_json` returned."""
        return cls(**values)

    def by_option(self) -> dict[str, Any]:
        """The values of options by their names."""
        return self.output | self.spill

    def differences(self, requested: Fingerprint, *, of_spill_only: bool) -> list[str]:
        """Names of options that keep a conversion from resuming what another one began.

        Args:
            requested: The options of the conversion that is to resume.
            of_spill_only: Whether only what the first pass made is used again.
        """
        before, now = self.spill | self.facts, requested.spill | requested.facts
        if not of_spill_only:
            before, now = self.output | before, requested.output | now
        # Chunks without malformed rows are the same with and without it.
        if requested.spill["skip_malformed"]:
            before["skip_malformed"] = True
        names = before.keys() | now.keys()
        return [
            _FACTS.get(name, flag(name))
            for name in sorted(names)
            if before.get(name) != now.get(name)
        ]


def _values_that_decide(options: Options, decides: Decides) -> dict[str, Any]:
    remembered = {}
    for part in (options, options.form, options.filters):
        for entry in entries(type(part)):
            if entry.decides == decides:
                value = getattr(part, entry.attribute)
                value = list(value) if isinstance(value, tuple) else value
                remembered[entry.name] = entry.remember(value) if entry.remember else value
    return remembered
