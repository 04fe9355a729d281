"""The outputs that a card describes: all outputs of a folder that have a manifest."""

from __future__ import annotations

import os
import re
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from so2docs.extensions.cards.manifest import Manifest, load, recipe_of
from so2docs.output.part_files import MANIFEST
from so2docs.output.paths import OutputPaths

if TYPE_CHECKING:
    from so2docs.extensions.recipes.recipe import Recipe

TRAIN = "train"
"""Split of an output without shares, and stem of an output in the folder of its site."""


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
