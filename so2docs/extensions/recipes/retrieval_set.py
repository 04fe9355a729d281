"""Convert the records of a recipe to the files of a retrieval set.

A relevant document may follow its query in the dump, or may be filtered out. Therefore, the records
are reread once all ids of the corpus are known. The set of these ids takes one bit for each id
between the lowest and the highest id in each page of 32,768 ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from so2docs.extensions.recipes.record_sets import README
from so2docs.options.recipe import Record
from so2docs.output.file import Output
from so2docs.parse.repeats import SeenIds

CORPUS, QUERIES, QRELS = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
QRELS_AS_JSON = "qrels/test.jsonl"
FILES = (CORPUS, QUERIES, QRELS, QRELS_AS_JSON, README)

_HEADER = b"query-id\tcorpus-id\tscore\n"
_CORPUS = b'{"%b":' % CORPUS.encode()
_ID = b'{"_id":"'


def write_files(part: str, outputs: dict[str, Output], readme_text: str) -> int:
    """Write the files of a retrieval set from its records; return the number of their records.

    Args:
        part: Path of the temporary file of records.
        outputs: The files to write, by name.
        readme_text: Text of the `README.md`.
    """
    counts = dict.fromkeys((CORPUS, QUERIES, QRELS), 0)
    ids = SeenIds()
    corpus, queries, qrels, judgements, readme = (outputs[name] for name in FILES)
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
    return sum(counts.values())


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
