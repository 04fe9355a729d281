"""Make the folder of a recipe that writes several files from the records of its documents.

The records first go to one temporary file, in ascending order of the questions. A set is made from
this file at the end, when all of its records are known.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from so2docs.escape import to_yaml
from so2docs.extensions.recipes.recipe import Recipe
from so2docs.output.paths import OutputPaths
from so2docs.plugin import NewFiles, Output, Provenance, Report

README = "README.md"


class LinesOutput(Output):
    """A file of a set, which counts the bytes and the lines that are written to it."""

    def __init__(self, files: NewFiles, path: str) -> None:
        super().__init__(files, path, "none")
        self.bytes = self.lines = 0

    def write(self, data: bytes) -> None:
        """Append whole lines."""
        self.bytes += len(data)
        self.lines += data.count(b"\n")
        super().write(data)


def finish_set(
    recipe: Recipe,
    names: OutputPaths,
    files: NewFiles,
    provenance: Provenance,
    report: Report,
) -> None:
    """Make the files of a set from its records.

    Args:
        recipe: The recipe.
        names: Paths of the output.
        files: The new files, which get the files of the set.
        provenance: Provenance of the set, without counts.
        report: Report of the conversion, which gets the counts of records, files and bytes.
    """
    outputs = {name: LinesOutput(files, names.file(name)) for name in recipe.files}
    assert recipe.write is not None
    report.records = recipe.write(files.unfinished(names.output), outputs)
    sizes = {name: (output.bytes, output.lines) for name, output in outputs.items()}
    outputs[README].write(_readme_text(recipe, report, sizes).encode())
    record = provenance.with_counts(report).to_json()
    sizes_of_files = {name: output.seal(record) for name, output in outputs.items()}
    del sizes_of_files[README]  # Leave out the README, because a card may replace it.
    report.output = os.path.dirname(names.output)
    report.files, report.output_bytes = len(sizes_of_files), sum(sizes_of_files.values())


def _readme_text(recipe: Recipe, report: Report, sizes: Mapping[str, tuple[int, int]]) -> str:
    """Return the text of the `README.md` of a set, whose front matter names the configurations."""
    configurations, infos = describe_files(recipe, sizes)
    front_matter = {
        "license": ["cc-by-sa-4.0", "cc-by-sa-3.0", "cc-by-sa-2.5"],
        "configs": configurations,
        "task_categories": list(recipe.tasks),
        "dataset_info": infos,
    }
    lines = ["---", f"# Written by so2docs --recipe {recipe.name}.", *to_yaml(front_matter), "---"]
    dates = ""
    if report.as_of is not None:
        dates = _DATE if report.later_until is None else _DATES
        dates = dates.format(as_of=report.as_of, until=report.later_until)
    return "\n".join([*lines, recipe.about + _LICENSE + dates])


def describe_files(
    recipe: Recipe, sizes: Mapping[str, tuple[int, int]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the configurations of a set and their sizes, as the front matter of a card has them.

    The default configuration is first. `datasets` loads its copy of another set at the same path
    unless the front matter differs.

    Args:
        recipe: The recipe of the set.
        sizes: Number of bytes and of records of each file, by name.
    """
    configurations: list[dict[str, Any]] = []
    infos: list[dict[str, Any]] = []
    files = [(name, file) for name, file in recipe.files.items() if file is not None]
    for name, file in sorted(files, key=lambda entry: entry[1].configuration != "default"):
        size, count = sizes[name]
        default = {"default": True} if file.configuration == "default" else {}
        data_files = [{"split": file.split, "path": name}]
        splits = [{"name": file.split, "num_bytes": size, "num_examples": count}]
        configurations.append(
            {"config_name": file.configuration, **default, "data_files": data_files}
        )
        infos.append(
            {
                "config_name": file.configuration,
                "splits": splits,
                "download_size": size,
                "dataset_size": size,
            }
        )
    return configurations, infos


_LICENSE = """
The content was written by the users of the site. Its licence is CC BY-SA 2.5, 3.0 or 4.0,
depending on its date.
"""
_DATE = """
The texts and links are those of {as_of}, restored from a later dump, so posts deleted since are
missing.
"""
_DATES = """
The corpus consists of the questions asked until {as_of}, as they were on that date. The queries are
the titles of questions asked later, until {until}, as they were on {until}. The relevant
documents are those that links made until {until} lead to. All are restored from a later dump, so
posts deleted since are missing.
"""
