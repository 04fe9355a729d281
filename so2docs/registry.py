"""Registry of what plugs into the core, by group and name: extensions of this and other packages.

Both are references in the form of entry points, `module:attribute`, and are imported and checked
by the same code when they are first used. Those of this package are listed here, not as entry
points in its metadata: reading metadata takes 20 ms, and a source tree has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from so2docs.errors import OptionError

Thing = TypeVar("Thing")

EXTENSIONS: dict[str, dict[str, str]] = {
    "so2docs.additions": {"card": "so2docs.extensions.cards.card:ADDITION"},
    "so2docs.bodies": {"markdown": "so2docs.extensions.markdown.bodies:make_converter"},
    "so2docs.frames": {"frame": "so2docs.extensions.parquet.frames:Frame"},
    "so2docs.formats": {"parquet": "so2docs.extensions.parquet.format:Parquet"},
    "so2docs.members": {"History": "so2docs.extensions.history.revisions:members"},
    "so2docs.recipes": {
        "preferences": "so2docs.extensions.recipes.answers:PREFERENCES",
        "pairs": "so2docs.extensions.recipes.answers:PAIRS",
        "triplets": "so2docs.extensions.recipes.answers:TRIPLETS",
        "texts": "so2docs.extensions.recipes.embeddings:TEXTS",
        "qa": "so2docs.extensions.recipes.answers:QA",
        "messages": "so2docs.extensions.recipes.answers:MESSAGES",
        "thread": "so2docs.extensions.recipes.threads:THREAD",
        "chunks": "so2docs.extensions.recipes.threads:CHUNKS",
        "blocks": "so2docs.extensions.recipes.parts:BLOCKS",
        "edits": "so2docs.extensions.recipes.parts:EDITS",
        "hub": "so2docs.extensions.recipes.hub:HUB",
        "beir": "so2docs.extensions.recipes.beir:BEIR",
        "duplicates": "so2docs.extensions.recipes.duplicates:DUPLICATES",
    },
    "so2docs.stores": {
        "http": "so2docs.extensions.remote.files:WEB_SERVERS",
        "fsspec": "so2docs.extensions.remote.stores:STORES",
    },
    "so2docs.records": {"parquet": "so2docs.extensions.parquet.footer:read_record"},
    "so2docs.steps": {"as_of": "so2docs.extensions.as_of.step:AS_OF"},
}
"""References to the extensions of this package by group and name. The core imports no others."""


class Registry(Mapping[str, Thing], Generic[Thing]):
    """A mapping of names to objects, to which other packages add objects through entry points.

    Reading entry points takes a few milliseconds, so they are read only to look up a name that this
    package does not have, or to list all names. Other packages cannot replace the objects of this
    package.

    Args:
        group: Group of the entry points, such as `so2docs.recipes`.
        check: Function that converts the name and the object of a reference to an object of the
            registry; raises `TypeError` if the object does not have the right type.
        core: Objects of the core, by name.
    """

    def __init__(
        self,
        group: str,
        check: Callable[[str, Any], Thing],
        core: Mapping[str, Thing] | None = None,
    ) -> None:
        self.group = group
        self._check = check
        self._loaded: dict[str, Thing] = dict(core or {})
        self._references = EXTENSIONS.get(group, {})
        self.own = tuple(dict.fromkeys((*self._loaded, *self._references)))
        """Names of the objects of this package."""

    def __getitem__(self, name: str) -> Thing:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self.own or name in self._entry_points()

    def __iter__(self) -> Iterator[str]:
        yield from self.own
        yield from (name for name in self._entry_points() if name not in self.own)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def others(self) -> Iterator[Thing]:
        """Yield the objects that other packages registered."""
        return (self[name] for name in self if name not in self.own)

    def _entry_points(self) -> dict[str, str]:
        from importlib.metadata import entry_points

        return {entry.name: entry.value for entry in entry_points(group=self.group)}

    def _load(self, name: str) -> Thing:
        if name in self._references:
            return self._check(name, _resolve(self._references[name]))
        reference = self._entry_points()[name]
        try:
            return self._check(name, _resolve(reference))
        except (ImportError, AttributeError, TypeError) as error:
            raise OptionError(
                f"{name}, which another package registers in {self.group} ({reference}), cannot be "
                f"used: {error}"
            ) from error


def check_function(name: str, item: Any) -> Any:
    """Return a function of a reference; raise `TypeError` if it is not callable."""
    if not callable(item):
        raise TypeError("it is not a function")
    return item


def _resolve(reference: str) -> Any:
    """Import the object of a reference such as `package.module:name`."""
    module, _, names = reference.partition(":")
    item: Any = import_module(module)
    for name in filter(None, names.split(".")):
        item = getattr(item, name)
    return item
