"""Registry of formats, recipes and sources by name, from this and other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from so2docs.errors import OptionError

Thing = TypeVar("Thing")


class Registry(Mapping[str, Thing], Generic[Thing]):
    """A mapping of names to objects, to which other packages add objects through entry points.

    Reading entry points takes a few milliseconds, so they are read only to look up a name that this
    package does not have, or to list all names. Other packages cannot replace the objects of this
    package.

    Args:
        group: Group of the entry points, such as `so2docs.recipes`.
        own: Objects of this package, by name.
        read: Function that converts the name and the object of an entry point to an object of the
            registry; raises `TypeError` if the object does not have the right type.
    """

    def __init__(
        self, group: str, own: Mapping[str, Thing], read: Callable[[str, Any], Thing]
    ) -> None:
        self.group, self.own = group, own
        self._read = read
        self._loaded: dict[str, Thing] = {}

    def __getitem__(self, name: str) -> Thing:
        if name in self.own:
            return self.own[name]
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

    def _entry_points(self) -> dict[str, Any]:
        from importlib.metadata import entry_points

        return {entry.name: entry for entry in entry_points(group=self.group)}

    def _load(self, name: str) -> Thing:
        entry = self._entry_points()[name]
        try:
            return self._read(name, entry.load())
        except (ImportError, AttributeError, TypeError) as error:
            raise OptionError(
                f"{name}, which another package registers in {self.group} ({entry.value}), cannot "
                f"be "
                f"used: {error}"
            ) from error
