"""Convert the records of a recipe to the folder of a retrieval set.

A relevant document may follow its query in the dump, or may be filtered out. Therefore, the
records first go to one temporary file, and are reread once all ids of the corpus are known. The set
of these ids takes one bit for each id between the lowest and the highest id in each page of 32,768
ids.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import orjson

from so2docs.errors import OptionError, flag
from so2docs.extensions.recipes.beir import CORPUS, FILES, QRELS, QUERIES, README, readme_text
from so2docs.extensions.recipes.recipe import Record
from so2docs.options.choices import formats_from_name
from so2docs.options.request import find_recipe
from so2docs.output.file import Output
from so2docs.output.index import Index
from so2docs.output.part_files import FileState, LostFileError, part_path
from so2docs.output.paths import OutputPaths
from so2docs.output.product import write_record
from so2docs.output.provenance import load
from so2docs.parse.repeats import SeenIds
from so2docs.report import Report

RECORDS = "records.jsonl"
_HEADER = b"query-id\tcorpus-id\tscore\n"
_CORPUS = b'{"%b":' % CORPUS.encode()
_ID = b'{"_id":"'


def records_path(output: str | os.PathLike[str] | None, kwargs: Mapping[str, Any]) -> str | None:
    """Return the path of the records in the folder of a retrieval set; None for other recipes."""
    choice = find_recipe(kwargs)
    if choice is None or not choice.recipe.files:
        return None
    subject = flag("recipe", choice.spec)
    for name in ("format", "compression", "split"):
        if kwargs.get(name) is not None:
            raise OptionError(f"{subject} cannot be used with {flag(name)}; leave {flag(name)} out")
    folder = choice.spec if output is None else os.fspath(output)
    if folder == "-" or formats_from_name(folder) or os.path.isfile(folder):
        raise OptionError(
            f"{subject} writes a folder, but {folder} is the name of a file; choose another output"
        )
    return os.path.join(folder, RECORDS)


def finish(
    names: OutputPaths, records: FileState, report: Report
) -> tuple[list[FileState], FileState | None]:
    """Make the files of a retrieval set from its records, without renaming them.

    This also sets the counts of records, files and bytes in the report.

    Returns:
        The states of the files, and of the record of the set, if its provenance is known.
    """
    for path, file in records.all_files(names.output):
        if file.find(path) != part_path(path):
            raise LostFileError(path)
    part, record = part_path(names.output), b""
    if records.index is not None:
        record = Index(Path(part_path(names.index)).read_bytes()).record
    counts = dict.fromkeys((CORPUS, QUERIES, QRELS), 0)
    ids = SeenIds()
    with ExitStack() as files:
        outputs = [
            files.enter_context(Output(names.file(name), "none", label=name)) for name in FILES
        ]
        corpus, queries, qrels, judgements, readme = outputs
        with open(part, "rb") as lines:
            for line in lines:
                if line.startswith(_CORPUS):
                    entry = line[len(_CORPUS) : -2]
                    ids.add_one(int(entry[len(_ID) : entry.index(b'"', len(_ID))]))
                    corpus.write(entry + b"\n")
                    counts[CORPUS] += 1
        qrels.write(_HEADER)
        with open(part, "rb") as lines:
            for query, relevant in _queries(lines):
                judged = [row for row in relevant if int(row["corpus-id"]) in ids]
                if judged:
                    queries.write(orjson.dumps(query) + b"\n")
                    for row in judged:
                        qrels.write("\t".join(map(str, row.values())).encode() + b"\n")
                        judgements.write(orjson.dumps(row) + b"\n")
                    counts[QUERIES] += 1
                    counts[QRELS] += len(judged)
        readme.write(readme_text().encode())
        report.records = sum(counts.values())
        if (provenance := load(record)) is not None:
            provenance = provenance.with_counts(report)
            record = provenance.to_json()
        complete = [file.seal(record) for file in outputs]
    # Leave out the README, because a card may replace it.
    data = [file for file in complete if file.label != README]
    report.output = os.path.dirname(names.output)
    report.files, report.output_bytes = len(data), sum(file.size for file in data)
    if provenance is None:
        return complete, None
    named = ((names.file(file.label), file) for file in data)
    return complete, write_record(names.output, provenance, named)


def _queries(lines: Iterable[bytes]) -> Iterator[tuple[Record, list[Record]]]:
    """Yield each query with its judgements."""
    query: Record = {}
    relevant: list[Record] = []
    for line in lines:
        if line.startswith(_CORPUS):
            continue
        ((file, record),) = orjson.loads(line).items()
        if file == QUERIES:
            if query:
                yield query, relevant
            query, relevant = record, []
        else:
            relevant.append(record)
    if query:
        yield query, relevant
