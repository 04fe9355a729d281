"""Manifests: records of the inputs, options and files of an output, with their checksums.

A manifest is a file next to the output. The same conversion always writes the same bytes, whatever
the machine or date. A card describes all outputs of a folder that have a manifest.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from so2docs.escape import printable
from so2docs.extensions.json_schema import describe_documents, name_schema
from so2docs.options.choices import FORMATS
from so2docs.options.request import build_options, read_keywords
from so2docs.options.table import OF_CONVERT
from so2docs.options.transform import METADATA, RECORDS
from so2docs.output.new_files import write_file
from so2docs.output.part_files import MANIFEST, RECORD, side_file
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import parse_files
from so2docs.plugin import File, OptionError, OutputError, Provenance, flag, read_provenance

if TYPE_CHECKING:
    from so2docs.extensions.recipes.recipe import Recipe

FORMAT = 1
"""Version of manifests. Increase it with each change that breaks readers."""

TRAIN = "train"
"""Split of an output without shares, and stem of an output in the folder of its site."""

DESCRIBED = tuple(name for name, traits in FORMATS.items() if not traits.ids)
"""Formats whose documents a schema can describe."""


@dataclass(frozen=True, slots=True)
class Manifest(Provenance):
    """The record of an output, with the SHA-256 of its files.

    Attributes:
        output: Name of the output.
        documents: Number of documents or records in each file, by name; of lines in a record set.
        schema: JSON Schema of each document; None for recipes without a schema, and for formats of
            other programs.
        format: Version of the manifest.
    """

    output: str = ""
    documents: dict[str, int] = field(default_factory=dict)
    schema: dict[str, Any] | None = None
    format: int = FORMAT

    @classmethod
    def of_output(cls, output: str, read: Sequence[str | None] = ()) -> Manifest:
        """Make the manifest of an output from its provenance; this reads all its files.

        Args:
            output: Name of the output, or of the records file of a record set.
            read: The path of each input, which is read for its SHA-256; None if it is not a file.
        """
        advice = f"convert the dump again with {flag('card', True)}"
        if os.path.isdir(output):
            raise OutputError(f"{output}: is a folder; give the name of an output of convert in it")
        record = read_provenance(output)
        if record is None and not os.path.exists(output):
            raise OutputError(f"{output}: not found; {advice}")
        if record is None or "questions" not in record.counts:
            raise OutputError(f"{output}: has no record of how it was made; {advice}")
        names = [file.name for file in record.files] or [os.path.basename(output)]
        paths = {name: os.path.join(os.path.dirname(output), name) for name in names}
        is_set = os.path.basename(output) == RECORDS
        shown = os.path.dirname(os.path.abspath(output)) if is_set else output
        hashes = {
            path: File.of("", path, is_hashed=True).sha256
            for path in dict.fromkeys(read)
            if path and os.path.isfile(path)
        }
        values = {entry.name: getattr(record, entry.name) for entry in fields(record)}
        values["files"] = tuple(
            File.of("", path, name, is_hashed=True) for name, path in paths.items()
        )
        if read:
            values["input"] = tuple(
                file._replace(sha256=hashes.get(path or ""))
                for file, path in zip(record.input, read, strict=True)
            )
        return cls(
            **values,
            output=printable(os.path.basename(shown)),
            documents={
                name: _count_lines(path) if is_set else _count(path, record)
                for name, path in paths.items()
            },
            schema=_schema(record.options, record.counts["recipe"]),
        )

    def save(self, output: str) -> None:
        """Write the manifest next to its output, with the SHA-256 of its fields as `checksum`."""
        values = self.as_dict()
        text = json.dumps({**values, "checksum": _checksum(values)}, indent=2)
        write_file(manifest_path(output), text.encode() + b"\n")

    def is_in_place(self, folder: str) -> bool:
        """Whether all files of the manifest are in a folder, with the recorded sizes."""
        paths = [(os.path.join(folder, file.name), file.bytes) for file in self.files]
        return all(os.path.isfile(path) and os.path.getsize(path) == size for path, size in paths)


def _count(path: str, record: Provenance) -> int:
    """Return the number of documents or records in a file of an output, from its provenance."""
    of_file = read_provenance(path) if record.files else record
    counts = {} if of_file is None else of_file.counts
    names = ("documents", "records", "questions")
    return next((counts[name] for name in names if counts.get(name) is not None), 0)


def _count_lines(path: str) -> int:
    """Return the number of lines in a file of a record set."""
    with open(path, "rb") as lines:
        return sum(1 for _ in lines)


def locate(output: str) -> str:
    """Return the path after which side files are named: the output, or a set's records file."""
    records = os.path.join(output, RECORDS)
    is_set = any(os.path.exists(side_file(records, kind)) for kind in (RECORD, MANIFEST))
    return records if is_set else output


def manifest_path(output: str) -> str:
    """Return the path of the manifest of an output."""
    return side_file(locate(output), MANIFEST)


def _checksum(values: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest's fields."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


_OF_SCHEMA = ("fields", "drop_fields", "as_of", "nest", "attribution")
"""Options that change the schema."""


def _schema(options: Mapping[str, Any], recipe: str | None) -> dict[str, Any] | None:
    """Build the JSON Schema of a conversion from its recorded options; None if unknown."""
    if options["format"] not in DESCRIBED:
        return None
    if recipe is not None:
        found = _find_recipe(options, recipe)
        if found is None or found.schema is None:
            return None
        return name_schema(recipe, f"A record of recipe {recipe}", found.schema)
    kwargs = {name: options[name] for name in _OF_SCHEMA if options.get(name)}
    built = build_options(read_keywords(kwargs, OF_CONVERT), core="python")
    site = options["site_field"] and tuple(options["site_field"])
    schema = describe_documents(
        built.filters.selected, built.shown, site, is_attributed=built.is_attributed
    )
    return name_schema("questions", "A question with its answers", schema)


def _find_recipe(options: Mapping[str, Any], name: str) -> Recipe | None:
    """Return the recipe of an output with these options; None if it is not installed here."""
    from so2docs.extensions.recipes.options import RecipeChoice  # Documents need no recipes.

    settings = tuple((options.get("settings") or {}).items())
    has_metadata = METADATA not in (options.get("drop_fields") or ())
    try:
        return RecipeChoice(name, settings, has_metadata=has_metadata).recipe
    except OptionError:
        return None


def recipe_of(manifest: Manifest) -> Recipe | None:
    """Return the recipe of an output; None for documents and a user's own recipe."""
    name = manifest.counts["recipe"]
    return None if name is None or ":" in str(name) else _find_recipe(manifest.options, name)


def load(path: str) -> Manifest:
    """Read and check the manifest at `path`; raise `OutputError` if it is not intact."""
    try:
        values = json.loads(Path(path).read_bytes())
        if values.pop("checksum") == _checksum(values) and values["format"] == FORMAT:
            return Manifest(**parse_files(values))
        reason = "it is damaged, or from another version of so2docs"
    except FileNotFoundError:
        raise OutputError(
            f"{path}: not found; write the manifest with the command card, or convert with "
            f"{flag('card', True)}"
        ) from None
    except OSError as error:
        reason = str(error.strerror)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        reason = "it is damaged, or not a manifest"
    raise OutputError(
        f"{path}: the manifest cannot be read ({reason}); convert the dump again with "
        f"{flag('card', True)} and {flag('force', True)}, or remove it"
    )


@dataclass(frozen=True, slots=True)
class DescribedOutput:
    """An output described by a card.

    Attributes:
        folder: Folder of the output, relative to the card: the folder of the site, or empty.
        manifest: Manifest of the output.
    """

    folder: str
    manifest: Manifest

    @property
    def recipe(self) -> Recipe | None:
        """The recipe, if it is one of this package."""
        return recipe_of(self.manifest)

    @property
    def name(self) -> str:
        """The path of the output, relative to the card."""
        return self.path(self.manifest.output)

    @property
    def documents(self) -> int:
        """The number of documents or records."""
        records: int | None = self.manifest.counts["records"]
        questions: int = self.manifest.counts["questions"]
        return questions if records is None else records

    @property
    def is_record_set(self) -> bool:
        """Whether the output is a record set: a whole folder with its own configurations."""
        return self.recipe is not None and bool(self.recipe.files)

    @property
    def builder(self) -> str:
        """The name of the `datasets` builder that reads the files."""
        is_parquet = all(file.name.endswith(".parquet") for file in self.manifest.files)
        return "parquet" if is_parquet else "json"

    @property
    def has_dates(self) -> bool:
        """Whether columns of dates have their own type: in documents as Parquet."""
        return self.builder == "parquet" and self.manifest.counts["recipe"] is None

    def path(self, name: str) -> str:
        """Return the path of a file of the output, relative to the card."""
        return f"{self.folder}/{name}" if self.folder else name

    @property
    def splits(self) -> dict[str, list[str]]:
        """The names of the files by split: one split for each share, or `train` alone."""
        names = re.findall(r"(\w+)=", self.manifest.options.get("split") or "")
        splits: dict[str, list[str]] = {name: [] for name in names}
        for file in self.manifest.files:
            ends = (name for name in names if re.search(rf"-{re.escape(name)}\.[^/]*$", file.name))
            splits.setdefault(next(ends, TRAIN), []).append(file.name)
        return {name: files for name, files in splits.items() if files}

    def count(self, files: list[str]) -> int:
        """Return the number of documents or records in some files."""
        return sum(self.manifest.documents.get(name, 0) for name in files)


def folder_of_card(names: OutputPaths) -> str:
    """Return the folder for the card: the output's folder, or the parent of a site's folder."""
    folder = os.path.dirname(names.output)
    is_by_site = names.is_by_site and os.path.basename(names.stem) == TRAIN and folder != ""
    return os.path.dirname(folder) if is_by_site else folder


def find_outputs(folder: str, but: Container[Path] = ()) -> list[DescribedOutput]:
    """List the outputs of a folder, including outputs in a folder for each site.

    Manifests in `but`, and outputs whose files do not match their manifests, are left out.
    """
    top = Path(folder or ".")
    outputs = []
    paths = (*sorted(top.glob(f".*.{MANIFEST}")), *sorted(top.glob(f"*/.{TRAIN}.*.{MANIFEST}")))
    for path in paths:
        if path in but:
            continue
        manifest, is_by_site = load(str(path)), path.parent != top
        recipe = recipe_of(manifest)
        if is_by_site and (recipe is None or not recipe.is_by_site):
            continue
        if manifest.is_in_place(str(path.parent)):
            outputs.append(DescribedOutput(path.parent.name if is_by_site else "", manifest))
    return outputs
