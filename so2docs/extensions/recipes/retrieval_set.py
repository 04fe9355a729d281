"""Convert the records of a recipe to the folder of a retrieval set.

A relevant document may follow its query in the dump, or may be filtered out. Therefore, the
records first go to one temporary file, and are reread once all ids of the corpus are known. The set
of these ids takes one bit for each id between the lowest and the highest id in each page of 32,768
ids.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson

from so2docs.options.recipe import Record
from so2docs.output.file import Output
from so2docs.output.index import Index
from so2docs.output.part_files import FileState, LostFileError, part_path
from so2docs.output.paths import OutputPaths
from so2docs.output.product import write_record
from so2docs.output.provenance import load
from so2docs.parse.repeats import SeenIds
from so2docs.report import Report

CORPUS, QUERIES, QRELS = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
QRELS_AS_JSON, README = "qrels/test.jsonl", "README.md"
FILES = (CORPUS, QUERIES, QRELS, QRELS_AS_JSON, README)

_HEADER = b"query-id\tcorpus-id\tscore\n"
_CORPUS = b'{"%b":' % CORPUS.encode()
_ID = b'{"_id":"'


def make_set(
    names: OutputPaths, records: FileState, report: Report, readme_text: str
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
        readme.write(readme_text.encode())
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
