"""The capabilities beyond the conversion itself, each declared here and nowhere else.

A capability is a folder of `extensions/`. Delete the folder together with its entry to remove it.
The core imports no extension: it imports the objects below by name, when they are first used.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from so2docs.errors import OptionError

LINES = (".jsonl", ".ndjson")
"""Extensions of files with a JSON object on each line."""


@dataclass(frozen=True, slots=True)
class FormatTraits:
    """Properties of a format of documents, known without importing its writer.

    Attributes:
        help: Description for the help, after the name.
        extensions: File name extensions that select the format; the first is the default.
        writer: Class that writes the format, as `module:attribute`; empty for those of the core.
        compressed: Whether files are compressed as a whole. If not, the format has a compression of
            its own.
        ids: Whether documents get an id for the target database.
        magic: First bytes of the files, if they contain their record.
        needs: Package that must be installed; None if no package is needed.
        work: Approximate cost of writing a byte, relative to reading one from a plain file.
    """

    help: str
    extensions: tuple[str, ...]
    writer: str = ""
    compressed: bool = True
    ids: bool = False
    magic: bytes = b""
    needs: str | None = None
    work: float = 1.0


@dataclass(frozen=True, slots=True)
class Capability:
    """The contents of a folder of `extensions/` that others use.

    Attributes:
        commands: Line in the help for each command by name. The module `NAME_command` of the folder
            has a function of this name.
        formats: Properties of each format of documents, by name.
        hooks: Modules that the core calls, or objects of modules as `module:attribute`, by name of
            the hook.
        endings: Ends of the names of outputs, after the site, by name of a function that
            `for_each_site` calls for each dump.
    """

    commands: Mapping[str, str] = field(default_factory=dict)
    formats: Mapping[str, FormatTraits] = field(default_factory=dict)
    hooks: Mapping[str, str] = field(default_factory=dict)
    endings: Mapping[str, str] = field(default_factory=dict)


CAPABILITIES = {
    "inspection": Capability(
        commands={"inspect": "Describe a dump without converting it, or an output."},
        hooks={"each site inspect": "sites:plan_inspections"},
    ),
    "recipes": Capability(
        commands={"recipes": "List the recipes for data sets, with their settings."},
        hooks={"transform": "options:RecipeOptions"},
    ),
    "tables": Capability(
        commands={
            "tables": "Write the tables of a dump as Parquet, CSV or a database.",
        },
        endings={"tables": ""},
    ),
    "sites": Capability(
        hooks={"work on several sites": "printing:show_sites"},
    ),
    "show": Capability(commands={"show": "Show questions of an output by their ids."}),
    "changes": Capability(
        commands={"diff": "Write the changes between two outputs."},
        hooks={"each site diff": "sites:plan_changes"},
    ),
    "sqlite": Capability(
        commands={"sqlite": "Make an SQLite database with full-text search."},
        endings={"to_sqlite": ".db"},
    ),
    "serve": Capability(
        commands={
            "serve": "Read a database or a dump in a browser.",
            "mcp": "Let a language model search and read a database.",
        }
    ),
    "cards": Capability(
        commands={"card": "Write a card for an output: Markdown for Hugging Face."},
        hooks={"card": "card"},
    ),
    "completion": Capability(commands={"completion": "Print a completion script for a shell."}),
    "spark": Capability(commands={"spark": "Convert many dumps on Spark."}),
    "as_of": Capability(hooks={"step as_of": "step:AS_OF"}),
    "history": Capability(hooks={"members of History": "revisions:members"}),
    "markdown": Capability(hooks={"body markdown": "bodies:make_converter"}),
    "formats": Capability(
        formats={
            "elasticsearch": FormatTraits(
                "lines for the bulk API", LINES, "bulk:Elasticsearch", ids=True
            ),
            "mongodb": FormatTraits("lines for mongoimport", LINES, "bulk:MongoDB", ids=True),
            "ravendb": FormatTraits(
                "RavenDB's import file", (".ravendbdump", ".json"), "bulk:RavenDB", ids=True
            ),
        },
    ),
    "parquet": Capability(
        formats={
            "parquet": FormatTraits(
                "typed columns",
                (".parquet",),
                "format:Parquet",
                compressed=False,
                magic=b"PAR1",
                needs="pyarrow",
                work=8.0,
            )
        },
        hooks={"record in parquet": "footer:read_record"},
    ),
    "remote": Capability(hooks={"remote files": "stores"}),
}
"""The capabilities by the name of their folder, those with commands in the order of the help."""

_PLACES = {
    name: (folder, reference)
    for folder, capability in CAPABILITIES.items()
    for name, reference in (
        *capability.hooks.items(),
        *((f"format {name}", traits.writer) for name, traits in capability.formats.items()),
    )
}


def module_of_command(name: str) -> str | None:
    """Return the module of a command; None for a command of the core."""
    for folder, capability in CAPABILITIES.items():
        if name in capability.commands:
            return f"so2docs.extensions.{folder}.{name}_command"
    return None


def explain_missing(error: ModuleNotFoundError) -> str:
    """Explain that an extension or a module of Python is missing; others are raised again."""
    name = error.name or ""
    if name in sys.stdlib_module_names:
        problem = f"this needs the module {name.lstrip('_')}, which this Python was built without"
        return f"{problem}; use a Python that has it"
    if not name.startswith("so2docs.extensions."):
        raise error
    return (
        f"this needs the extension {name.split('.')[2]}, which was removed; install so2docs again"
    )


def has_hook(name: str) -> bool:
    """Whether a capability has a hook of this name."""
    return name in _PLACES


def find_hook(name: str) -> Any:
    """Import the module or the object of a hook.

    Raises:
        OptionError: The capability with this hook was removed.
    """
    if name not in _PLACES:
        raise OptionError(f"this installation has no {name}; install so2docs again")
    folder, reference = _PLACES[name]
    module, _, attribute = reference.partition(":")
    item = import_module(f"so2docs.extensions.{folder}.{module}")
    return getattr(item, attribute) if attribute else item
