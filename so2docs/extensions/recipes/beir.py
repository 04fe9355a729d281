"""`beir`: a retrieval set, made from questions that were closed as duplicates of other questions.

The output is the folder that BEIR's `GenericDataLoader` and MTEB load
(https://github.com/beir-cellar/beir, wiki "Load your custom dataset"): `corpus.jsonl` with `_id`,
`title` and `text`, `queries.jsonl` with `_id` and `text`, and `qrels/test.tsv` with a header. MTEB
loads Hugging Face datasets with the configurations `corpus`, `queries` and `default` (the
judgements): see `RetrievalDatasetLoader` in https://github.com/embeddings-benchmark/mteb. For MTEB,
the judgements are also in `qrels/test.jsonl`, and `README.md` names the configurations. The corpus
contains every question. The queries are the titles of questions with a duplicate link; the linked
questions are the relevant documents. BEIR removes the query's own question from the results
(`ignore_identical_ids`). With the setting `links`, questions that are linked in a text are relevant
too, or instead.

With the setting `queries_until`, no query's question is in the corpus: the corpus contains the
questions of the date of `as_of`, and the queries are the titles of questions asked after it.

With the option `accepted`, accepted answers are the relevant documents: the corpus contains the
answers to all questions, and the queries are the titles of questions whose accepted answer is in
the corpus.

A relevant document may follow its query in the dump, or may be filtered out. Therefore, the records
are reread once all ids of the corpus are known. The set of these ids takes one bit for each id
between the lowest and the highest id in each page of 32,768 ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, TypedDict

import orjson

from so2docs.extensions.recipes import posts
from so2docs.extensions.recipes.recipe import (
    QUERIES_UNTIL,
    Document,
    Recipe,
    Record,
    SetFile,
    Setting,
)
from so2docs.extensions.recipes.record_sets import README
from so2docs.parse.id_set import IdSetWriter
from so2docs.plugin import OptionError, Output, flag
from so2docs.schema import ASKED_LATER

CORPUS, QUERIES, QRELS = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
QRELS_AS_JSON = "qrels/test.jsonl"

_LINKED, _DUPLICATE = 1, 3
"""`LinkTypeId` of links: table LinkTypes of the Stack Exchange Data Explorer."""

_SCORES = {
    "duplicate": {_DUPLICATE: 1},
    "linked": {_LINKED: 1},
    "both": {_LINKED: 1, _DUPLICATE: 2},
}
"""Score of a judgement by `LinkTypeId`, for each value of the setting `links`."""


class Entry(TypedDict):
    """A text of the corpus."""

    _id: Annotated[str, "id of the post on its site"]
    title: Annotated[str, "title of the question; empty for an answer"]
    text: Annotated[str, "text of the document"]


class Query(TypedDict):
    """A query."""

    _id: Annotated[str, "id of the question on its site"]
    text: Annotated[str, "text of the query"]


Judgement = TypedDict(
    "Judgement",
    {
        "query-id": Annotated[str, "id of the query"],
        "corpus-id": Annotated[str, "id of the relevant document"],
        "score": Annotated[int, "1 for a relevant document; with links=both, 2 for a duplicate"],
    },
)


def beir(
    question: Document, links: str = "duplicate", queries_until: str | None = None
) -> Iterator[Record]:
    """Make a corpus entry from a question, and a query if the question has a link to another.

    With `queries_until`, a question makes only one of the two.
    """
    is_later = question.get(ASKED_LATER) is True
    if not is_later:
        question_id, title = str(question["Id"]), question.get("Title", "")
        yield {CORPUS: {"_id": question_id, "title": title, "text": posts.text(question)}}
        if queries_until is not None:
            return
    relevant: dict[int, int] = {}
    for link in question.get("Links", ()):
        target, score = link["RelatedPostId"], _SCORES[links].get(link.get("LinkTypeId"), 0)
        if target != question["Id"] and score > relevant.get(target, 0):
            relevant[target] = score
    yield from _query(question, dict(sorted(relevant.items())))


def accepted(question: Document) -> Iterator[Record]:
    """Make a corpus entry from each answer, and a query if one of the answers is accepted."""
    for answer in question["Answers"]:
        yield {CORPUS: {"_id": str(answer["Id"]), "title": "", "text": posts.text(answer)}}
    answer_ids = [a["Id"] for a in question["Answers"] if posts.is_accepted(a, question)]
    yield from _query(question, dict.fromkeys(answer_ids, 1))


def _refuse_links(**settings: str) -> None:
    for name, value in settings.items():
        raise OptionError(
            f"{flag('settings', f'{name}={value}')} contradicts {flag('accepted', True)}, which "
            "makes queries from accepted answers, not from links"
        )


def _query(question: Document, relevant: dict[int, int]) -> Iterator[Record]:
    query = str(question["Id"])
    if relevant:
        yield {QUERIES: {"_id": query, "text": question.get("Title", "")}}
    for document_id, score in relevant.items():
        yield {QRELS: {"query-id": query, "corpus-id": str(document_id), "score": score}}


_HEADER = b"query-id\tcorpus-id\tscore\n"
_CORPUS = b'{"%b":' % CORPUS.encode()
_ID = b'{"_id":"'


def write_files(part: str, outputs: Mapping[str, Output]) -> int:
    """Write the files of a retrieval set from its records; return the number of their records.

    Args:
        part: Path of the temporary file of records.
        outputs: The files to write, by name.
    """
    count = 0
    query: Record | None = None
    outputs[QRELS].write(_HEADER)
    with open(part, "rb") as lines, IdSetWriter(f"{part}.ids") as ids:
        for line in lines:
            if line.startswith(_CORPUS):
                entry = line[len(_CORPUS) : -2]
                ids.add_id(int(entry[len(_ID) : entry.index(b'"', len(_ID))]))
                outputs[CORPUS].write(entry + b"\n")
                count += 1
        lines.seek(0)
        for line in lines:
            if line.startswith(_CORPUS):
                continue
            ((file, row),) = orjson.loads(line).items()
            if file == QUERIES:
                query = row
            elif int(row["corpus-id"]) in ids:
                if query is not None:
                    outputs[QUERIES].write(orjson.dumps(query) + b"\n")
                    count, query = count + 1, None
                outputs[QRELS].write("\t".join(map(str, row.values())).encode() + b"\n")
                outputs[QRELS_AS_JSON].write(orjson.dumps(row) + b"\n")
                count += 1
    return count


_README_TEXT = """\
# A retrieval set

Made from a Stack Exchange data dump by so2docs, for BEIR (`GenericDataLoader`) and MTEB, which
loads the configurations `corpus`, `queries` and `default`, the relevant documents of each query.
"""
BEIR = Recipe(
    "beir",
    beir,
    tables=("links",),
    fields=("Id", "Title", "Body", "Links.LinkTypeId", "Links.RelatedPostId"),
    body="text",
    files={
        CORPUS: SetFile(Entry, "corpus", "corpus"),
        QUERIES: SetFile(Query, "queries", "queries"),
        QRELS: None,
        QRELS_AS_JSON: SetFile(Judgement, "default", "test"),
        README: None,
    },
    write=write_files,
    about=_README_TEXT,
    without_banner=True,
    answers="none",
    settings=(
        Setting(
            "links",
            "Links to relevant questions: of duplicates, those in texts, or both, with the "
            "scores 2 and 1.",
            str,
            "duplicate",
            choices=tuple(_SCORES),
        ),
        QUERIES_UNTIL,
    ),
    variants={
        "accepted": {
            "function": accepted,
            "tables": (),
            "fields": ("Id", "Title", "AcceptedAnswerId", "Answers.Id", "Answers.Body"),
            "without_banner": False,
            "answers": "all",
            "needs_all_questions": True,
            "check": _refuse_links,
        },
    },
    summary="an entry of the corpus, a query or a judgement of a benchmark for retrieval",
    tasks=("text-retrieval",),
)
"""The recipe; MTEB loads its configurations."""
