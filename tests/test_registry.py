"""The registry names what is there: commands, public names and hooks of the capabilities."""

from __future__ import annotations

from pathlib import Path

import pytest

import so2docs
from so2docs import registry
from so2docs.cli import COMMANDS
from so2docs.registry import CAPABILITIES

EXTENSIONS = Path(so2docs.__file__).parent / "extensions"


def test_has_each_folder() -> None:
    assert CAPABILITIES.keys() == {path.parent.name for path in EXTENSIONS.glob("*/__init__.py")}


@pytest.mark.parametrize("folder", CAPABILITIES)
def test_names_what_is_in_the_folder(folder: str) -> None:
    capability = CAPABILITIES[folder]
    for name in capability.hooks:
        assert registry.find_hook(name) is not None
    commands = {
        path.stem.removesuffix("_command") for path in (EXTENSIONS / folder).glob("*_command.py")
    }
    assert capability.commands.keys() == commands <= COMMANDS.keys()


def test_without_a_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_PLACES", {})
    with pytest.raises(so2docs.OptionError, match="has no format parquet; install so2docs again"):
        registry.find_hook("format parquet")
