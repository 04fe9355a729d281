"""Walk over the rows of a dump to prove that a retrieval set contains nothing of a later date.

The rows are read from the files by the standard library, and a moment is compared with each date.
No code is shared with the package.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

Row = dict[str, str]

TITLES, BODIES, TAGS = {"1", "4", "7"}, {"2", "5", "8"}, {"3", "6", "9"}
SCORES = {"1": 1, "3": 2}
"""Grades of links with `links=both`, by `LinkTypeId`."""

_WORD, _TAG = re.compile(r"[^\W_]+"), re.compile(r"</?\w+>")


def read_rows(folder: Path, table: str) -> list[Row]:
    """Read a table of a dump."""
    return [dict(row.attrib) for row in ElementTree.parse(folder / f"{table}.xml").getroot()]


def words(text: str) -> set[str]:
    """Return the words of Markdown, HTML or plain text."""
    text = unescape(unescape(text)).casefold()
    # A text joins words between which the source has only an element, such as <sup>.
    return {*_WORD.findall(text), *_WORD.findall(_TAG.sub("", text))}


@dataclass
class Walk:
    """The rows of a dump, and the two moments of a set.

    Attributes:
        corpus_until: Last moment of the corpus.
        queries_until: Last moment of the queries.
    """

    folder: Path
    corpus_until: str
    queries_until: str

    def __post_init__(self) -> None:
        posts = read_rows(self.folder, "Posts")
        self.questions = {row["Id"]: row for row in posts if row["PostTypeId"] == "1"}
        self.links = read_rows(self.folder, "PostLinks")
        self.votes = read_rows(self.folder, "Votes")
        self._revisions: defaultdict[str, list[Row]] = defaultdict(list)
        for row in read_rows(self.folder, "PostHistory"):
            self._revisions[row["PostId"]].append(row)
        for rows in self._revisions.values():
            rows.sort(key=lambda row: (row["CreationDate"], int(row["Id"])))
        # Addresses of questions become their titles.
        titles = (self.text(id_, "Title", self.corpus_until) for id_ in self.questions)
        self._words_of_titles = {word for title in titles for word in words(title or "")}

    def find_later(self, kit: Path) -> Iterator[str]:
        """Describe each value in a set that is later than its date; none if the set is right."""
        corpus, queries, judged = (
            [json.loads(line) for line in (kit / name).read_text("utf-8").splitlines()]
            for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.jsonl")
        )
        for entry in corpus:
            yield from self._check_corpus(entry["_id"], entry["title"], entry["text"])
        corpus_ids = {entry["_id"] for entry in corpus}
        for query in queries:
            asked = self.questions[query["_id"]]["CreationDate"]
            if not self.corpus_until < asked <= self.queries_until:
                yield f"query {query['_id']} was asked on {asked}"
            if query["text"] != self.text(query["_id"], "Title", self.queries_until):
                yield f"query {query['_id']} has another title"
        expected = self._judge(corpus_ids)
        found = {(row["query-id"], row["corpus-id"]): row["score"] for row in judged}
        for pair in found.keys() | expected.keys():
            if found.get(pair) != expected.get(pair):
                yield f"judgement {pair} is {found.get(pair)}, not {expected.get(pair)}"
        if {query for query, _ in expected} != {query["_id"] for query in queries}:
            yield "queries have no judgement"

    def _check_corpus(self, id_: str, title: str, text: str) -> Iterator[str]:
        asked = self.questions[id_]["CreationDate"]
        if asked > self.corpus_until:
            yield f"question {id_} of the corpus was asked on {asked}"
            return
        if title != self.text(id_, "Title", self.corpus_until):
            yield f"question {id_} of the corpus has another title"
        then = self.text(id_, "Body", self.corpus_until)
        newer = [
            row.get("Text", "")
            for row in self._revisions[id_]
            if row["PostHistoryTypeId"] in BODIES and row["CreationDate"] > self.corpus_until
        ]
        later = words(" ".join(newer)) - words(then or "")
        if then is None or later & words(text):
            yield f"question {id_} of the corpus has later words: {later & words(text)}"
        if newer and (unknown := words(text) - words(then or "") - self._words_of_titles):
            yield f"question {id_} of the corpus has words of no text of then: {unknown}"

    def _judge(self, corpus_ids: set[str]) -> dict[tuple[str, str], int]:
        """Return the expected judgements: links from later questions to the corpus."""
        judgements: dict[tuple[str, str], int] = {}
        for link in self.links:
            pair = link["PostId"], link["RelatedPostId"]
            source = self.questions.get(pair[0])
            if source is None or link["CreationDate"] > self.queries_until:
                continue
            is_later = self.corpus_until < source["CreationDate"] <= self.queries_until
            if is_later and self.exists(pair[0], self.queries_until) and pair[1] in corpus_ids:
                judgements[pair] = max(SCORES[link["LinkTypeId"]], judgements.get(pair, 0))
        return judgements

    def text(self, id_: str, name: str, moment: str) -> str | None:
        """Return the text of a question at a moment; None if it is unknown."""
        types = {"Title": TITLES, "Body": BODIES, "Tags": TAGS}[name]
        revisions = [row for row in self._revisions[id_] if row["PostHistoryTypeId"] in types]
        if all(row["CreationDate"] <= moment for row in revisions):
            return self.questions[id_].get(name, "")
        then = [row.get("Text") for row in revisions if row["CreationDate"] <= moment]
        return then[-1] if then else None

    def exists(self, id_: str, moment: str) -> bool:
        """Whether a question was on the site at a moment, with a known title and body."""
        rows = self._revisions[id_]
        later = {row["PostHistoryTypeId"] for row in rows if row["CreationDate"] > moment}
        states = [row["PostHistoryTypeId"] for row in rows if row["CreationDate"] <= moment]
        states = [state for state in states if state in ("12", "13")]
        is_deleted = "13" in later and states[-1:] == ["12"]
        texts = [self.text(id_, name, moment) for name in ("Title", "Body", "Tags")]
        return not (is_deleted or "36" in later or None in texts)

    def list_corpus(self, tag: str = "", min_score: int | None = None) -> set[str]:
        """Return the expected ids of the corpus with these filters."""
        scores: Counter[str] = Counter()
        for vote in self.votes:
            if vote["CreationDate"] <= self.corpus_until:
                scores[vote["PostId"]] += {"2": 1, "3": -1}.get(vote["VoteTypeId"], 0)
        return {
            id_
            for id_, row in self.questions.items()
            if row["CreationDate"] <= self.corpus_until
            and self.exists(id_, self.corpus_until)
            and (not tag or tag in self._tags(id_))
            and (min_score is None or scores[id_] >= min_score)
        }

    def find_usual_tag(self) -> str:
        """Return the most frequent tag of the corpus."""
        tags = Counter(tag for id_ in sorted(self.list_corpus()) for tag in self._tags(id_))
        return tags.most_common(1)[0][0]

    def _tags(self, id_: str) -> list[str]:
        return re.findall(r"[^<>|]+", self.text(id_, "Tags", self.corpus_until) or "")
