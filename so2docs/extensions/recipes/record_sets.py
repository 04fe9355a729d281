"""Make the folder of a recipe that writes several files from the records of its documents.

The records first go to one temporary file, in ascending order of the questions. A set is made from
this file at the end, when all of its records are known.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from so2docs.escape import to_yaml
from so2docs.options.recipe import Description
from so2docs.output.file import Output
from so2docs.output.index import Index
from so2docs.output.part_files import FileState, LostFileError, part_path
from so2docs.output.paths import OutputPaths
from so2docs.output.product import write_record
from so2docs.output.provenance import load
from so2docs.report import Report

README = "README.md"

Finished = tuple[list[FileState], FileState | None]
"""The states of the files of a set, and of the record of the set, if its provenance is known."""


def finish_set(
    names: OutputPaths,
    records: FileState,
    report: Report,
    files: Sequence[str],
    write: Callable[[str, dict[str, Output]], int],
) -> Finished:
    """Make the files of a set from its records, without renaming them.

    This also sets the counts of records, files and bytes in the report.

    Args:
        names: Paths of the output.
        records: State of the temporary file of records.
        report: Report of the conversion.
        files: Names of the files of the set.
        write: Writes the files, given the path of the temporary file and the outputs by name;
            returns the number of records.
    """
    for path, file in records.all_files(names.output):
        if file.find(path) != part_path(path):
            raise LostFileError(path)
    record = b""
    if records.index is not None:
        record = Index(Path(part_path(names.index)).read_bytes()).record
    with ExitStack() as stack:
        outputs = {
            name: stack.enter_context(Output(names.file(name), "none", label=name))
            for name in files
        }
        report.records = write(part_path(names.output), outputs)
        if (provenance := load(record)) is not None:
            provenance = provenance.with_counts(report)
            record = provenance.to_json()
        complete = [output.seal(record) for output in outputs.values()]
    # Leave out the README, because a card may replace it.
    data = [file for file in complete if file.label != README]
    report.output = os.path.dirname(names.output)
    report.files, report.output_bytes = len(data), sum(file.size for file in data)
    if provenance is None:
        return complete, None
    named = ((names.file(file.label), file) for file in data)
    return complete, write_record(names.output, provenance, named)


def readme_text(recipe: str, description: Description, text: str) -> str:
    """Return the text of the `README.md` of a set, whose front matter names the configurations."""
    front_matter = {
        "license": ["cc-by-sa-4.0", "cc-by-sa-3.0", "cc-by-sa-2.5"],
        "configs": description.hub_configurations,
        "task_categories": list(description.tasks),
    }
    lines = to_yaml(front_matter)
    return "\n".join(["---", f"# Written by so2docs --recipe {recipe}.", *lines, "---", text])
