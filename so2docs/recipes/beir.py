"""`beir`: a retrieval set, made of questions that were closed as duplicates of others.

The folder that BEIR's `GenericDataLoader` and MTEB load (https://github.com/beir-cellar/beir, wiki
"Load your custom dataset"): `corpus.jsonl` with `_id`, `title` and `text`, `queries.jsonl` with
`_id` and `text`, and `qrels/test.tsv` with a header. Every question is in the corpus; queries are
the titles of questions with a duplicate link, relevant is what they link to and the corpus has.
BEIR leaves a query's own question out of what it finds (`ignore_identical_ids`).

With accepted answers as what is relevant, the corpus is the answers of all questions, and queries
are the titles of questions whose accepted answer is in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from so2docs.recipes import posts
from so2docs.recipes.recipe import INTEGER, TEXT, Document, Recipe, Record, record

CORPUS, QUERIES, QRELS = FILES = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")
DUPLICATE = 3
"""`LinkTypeId` of a duplicate: table LinkTypes of the Stack Exchange Data Explorer."""

SCHEMA = {
    "oneOf": [
        record(**{CORPUS: record(_id=TEXT, title=TEXT, text=TEXT)}),
        record(**{QUERIES: record(_id=TEXT, text=TEXT)}),
        record(**{QRELS: record(**{"query-id": TEXT, "corpus-id": TEXT, "score": INTEGER})}),
    ]
}


def beir(question: Document) -> Iterator[Record]:
    """A question as an entry of the corpus, and as a query if it links to a duplicate."""
    question_id, title = str(question["Id"]), question.get("Title", "")
    yield {CORPUS: {"_id": question_id, "title": title, "text": posts.text(question)}}
    links = question.get("Links", ())
    duplicates = {link["RelatedPostId"] for link in links if link.get("LinkTypeId") == DUPLICATE}
    yield from _query(question, sorted(duplicates - {question["Id"]}))


def accepted(question: Document) -> Iterator[Record]:
    """The answers as entries of the corpus, and the question as a query for the accepted one."""
    for answer in question["Answers"]:
        yield {CORPUS: {"_id": str(answer["Id"]), "title": "", "text": posts.text(answer)}}
    answer_ids = [a["Id"] for a in question["Answers"] if posts.is_accepted(a, question)]
    yield from _query(question, answer_ids)


def _query(question: Document, relevant: list[int]) -> Iterator[Record]:
    query = str(question["Id"])
    if relevant:
        yield {QUERIES: {"_id": query, "text": question.get("Title", "")}}
    for document_id in relevant:
        yield {QRELS: {"query-id": query, "corpus-id": str(document_id), "score": 1}}


BEIR = Recipe(
    "beir",
    beir,
    SCHEMA,
    tables=("links",),
    fields=("Id", "Title", "Body", "Links.LinkTypeId", "Links.RelatedPostId"),
    body="text",
    files=FILES,
    variants={
        "accepted": Recipe(
            "beir",
            accepted,
            SCHEMA,
            fields=("Id", "Title", "AcceptedAnswerId", "Answers.Id", "Answers.Body"),
            body="text",
            files=FILES,
            needs_all_questions=True,
        )
    },
)
