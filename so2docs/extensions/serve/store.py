"""Run the database queries of the pages: lists, tags, users, search, documents. Thread-safe."""

from __future__ import annotations

import os
import queue
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from math import log
from typing import Any

import orjson

from so2docs.extensions.formulas import formula_sign
from so2docs.extensions.serve.query import (
    COMMON,
    Query,
    fold,
    make_matcher,
    mark,
    quote_phrase,
    snippet,
)
from so2docs.extensions.sqlite.about import About, connect
from so2docs.extensions.sqlite.texts import html_to_text
from so2docs.plugin import DUMP, OutputError

SEARCH = "posts_fts"
"""The full-text index of a database; its row ids are those of the posts."""
PAGE = 20
TAGS_PAGE = 60
USERS_PAGE = 40
ANSWERS_PAGE = 50
_RANKED = 20_000
"""Maximum number of posts ranked in a search; ranking takes microseconds for each post with any of
the words, so only the rarest words are used."""
_STEMMERS = {"en": "porter", "es": "spanish", "pt": "portuguese", "ru": "russian"}
MOST_RESULTS = 10_000
"""Maximum number of results that can be shown; more are only counted."""
_EXCERPT = 6_000
"""Number of characters at the start of a body that are searched for a snippet."""
_LIST_EXCERPT = 700
_SEARCHES = 16
"""Number of searches whose results are cached for later pages, at most a megabyte each."""
_SECONDS = 10.0
"""CPU seconds that a query may take, or that all queries of a search may take together."""
_DEADLINE: ContextVar[float | None] = ContextVar("deadline", default=None)
_STEPS = 50_000
"""Steps of SQLite's virtual machine between two checks of the deadline."""
_CACHE_KIB = 4 * 1024
_MOST_TAGS = 10
"""Maximum number of tags in a URL."""
_BETWEEN_TAGS = re.compile(r"\s+|\+(?=[^+\s])")
"""Separates tags in a URL. A name may end in plus signs, such as `c++`."""

SORTS = {
    "newest": ("{p}.CreationDate", "DESC"),
    "score": ("{p}.Score", "DESC"),
    "active": ("{p}.LastActivityDate", "DESC"),
    "oldest": ("{p}.CreationDate", "ASC"),
    "relevance": ("s.Rank", "ASC"),
}
"""Orders of posts, each with its key in SQL and its direction."""
_POSTS = {
    "question": ("Posts q", "q.PostTypeId = 1"),
    "answer": ("Posts a JOIN Posts q ON q.Id = a.ParentId", "a.PostTypeId = 2"),
}
"""Tables and a condition of each kind of post."""
_BADGES = ("Gold", "Silver", "Bronze")
_BOUNTIES = (8, 9)
"""Types of votes with the start and the end of a bounty."""
LIST_SORTS = ("newest", "score", "active", "oldest")
ANSWER_SORTS = {
    "votes": "Id IS :accepted DESC, coalesce(Score, 0) DESC, Id",
    "newest": "Id DESC",
    "oldest": "Id",
}
SEARCH_SORTS = ("relevance", "newest", "score")
USER_SORTS = {"reputation": "Reputation DESC, Id", "name": "DisplayName, Id", "newest": "Id DESC"}

Row = dict[str, Any]
Page = tuple[list[Row], int]
"""The rows of a page of a list, and the number of rows on all pages."""
Hit = tuple[Any, int]
"""A search result: the value by which it is sorted, and the id of the post."""
Weights = tuple[tuple[str, float], ...]
"""Terms of a query, in their form for the index, with the factors of their ranks."""


@dataclass(frozen=True, slots=True)
class Found:
    """The results of a search on one site.

    Attributes:
        hits: The first results, in order.
        total: Number of all results.
        is_cut: Whether more posts match than were ranked.
    """

    hits: list[Hit]
    total: int
    is_cut: bool = False


class Store:
    r"""A database of a site.

    Attributes:
        about: The description of the database.
        hits: Finds the posts that match a query in an order of `SORTS`; caches the latest results.
        count_terms: Counts the texts with each term of a query; caches the latest results.
        sign: The delimiter of formulas, `$` or `\$`; None if the host is not known to have them.
    """

    def __init__(self, about: About) -> None:
        self.about = about
        self.hits = lru_cache(_SEARCHES)(self._find)
        self.count_terms = lru_cache(_SEARCHES)(self._count_terms)
        self._is_closed = False
        self._free: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        self._file = _identify(about.path)
        self.sign = formula_sign(about.host or "")
        # Report a damaged database before it is served.
        self._value("SELECT Body FROM Posts ORDER BY Id LIMIT 1")

    def has(self, table: str) -> bool:
        """Whether the database has a table of the dump, by its name in options."""
        return table in self.about.rows

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Borrow a connection.

        Raises:
            OutputError: The database was removed or replaced.
        """
        if _identify(self.about.path) != self._file:
            raise OutputError(f"{self.about.path}: was replaced; restart the server")
        try:
            connection = self._free.get_nowait()
        except queue.Empty:
            connection = self._connect()
        deadline = _DEADLINE.get() or time.thread_time() + _SECONDS
        connection.set_progress_handler(
            lambda: self._is_closed or time.thread_time() > deadline, _STEPS
        )
        try:
            if time.thread_time() > deadline:
                raise sqlite3.OperationalError("interrupted")
            yield connection
        finally:
            self._free.put(connection)
            if self._is_closed:
                self.close()

    def _connect(self) -> sqlite3.Connection:
        """Open the database; a table that it lacks is empty."""
        connection = connect(self.about.path)
        connection.row_factory = sqlite3.Row
        try:
            # Do not map files into memory: truncating one would kill the server.
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}").fetchall()
            for table in DUMP.values():
                if not self.has(table.name):
                    columns = ", ".join(f"NULL AS {name}" for name in table.attributes)
                    sql = f"CREATE TEMP VIEW {table.stem} AS SELECT {columns} WHERE 0"
                    connection.execute(sql)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Interrupt all queries and close the database."""
        self._is_closed = True
        with suppress(queue.Empty):
            while True:
                self._free.get_nowait().close()

    def _rows(self, sql: str, **values: Any) -> list[Row]:
        with self._connection() as connection:
            return [dict(row) for row in connection.execute(sql, values)]

    def _page(self, sql: str, page: int, size: int, counted: str, **values: Any) -> Page:
        """Read a page of the rows of a statement, and count the rows of `counted`."""
        rows = self._rows(f"{sql} LIMIT {size} OFFSET {size * (page - 1)}", **values)
        return rows, self._value(f"SELECT count(*) FROM {counted}", **values)

    def _value(self, sql: str, **values: Any) -> Any:
        with self._connection() as connection:
            row = connection.execute(sql, values).fetchone()
        return None if row is None else row[0]

    # Documents.

    def document(self, question_id: int, answer_ids: list[int]) -> Row | None:
        """Read a question with some of its answers, in this order, their comments and bounties.

        Returns:
            The document; None if the question does not exist.
        """
        within = f"IN ({_comma_separated([question_id, *answer_ids])})"
        rows = self._rows(
            "SELECT p.*, o.DisplayName AS Owner, o.Reputation, e.DisplayName AS LastEditor "
            "FROM Posts p LEFT JOIN Users o ON o.Id = p.OwnerUserId "
            f"LEFT JOIN Users e ON e.Id = p.LastEditorUserId WHERE p.Id {within}"
        )
        comments = self._by_post("Comments", within)
        is_bounty = f"VoteTypeId IN ({_comma_separated(_BOUNTIES)}) AND BountyAmount > 0"
        bounties = self._by_post("Votes", f"{within} AND {is_bounty}")
        posts: dict[int, Row] = {
            row["Id"]: {name: value for name, value in row.items() if value is not None}
            | {"Comments": comments.get(row["Id"], []), "Bounties": bounties.get(row["Id"], [])}
            for row in rows
        }
        document = posts.pop(question_id, None)
        if document is None or document["PostTypeId"] != 1:
            return None
        document["Tags"] = orjson.loads(document.get("Tags") or "[]")
        document["Answers"] = [posts[key] for key in answer_ids if key in posts]
        return document

    def _by_post(self, table: str, condition: str) -> dict[int, list[Row]]:
        """Read the rows of a table whose `PostId` meets a condition, with names, by post."""
        rows: dict[int, list[Row]] = {}
        for row in self._rows(
            f"SELECT p.*, u.DisplayName AS User FROM {table} p LEFT JOIN Users u "
            f"ON u.Id = p.UserId WHERE p.PostId {condition} ORDER BY p.Id"
        ):
            rows.setdefault(row["PostId"], []).append(row)
        return rows

    def answer_ids(self, question_id: int, sort: str = "votes") -> list[int]:
        """Return the ids of the answers to a question, in an order of `ANSWER_SORTS`."""
        accepted = self._value("SELECT AcceptedAnswerId FROM Posts WHERE Id = :id", id=question_id)
        sql = f"SELECT Id FROM answers WHERE ParentId = :id ORDER BY {ANSWER_SORTS[sort]}"
        return [row["Id"] for row in self._rows(sql, id=question_id, accepted=accepted)]

    def find_question(self, post_id: int) -> int | None:
        """Find the id of a post's question; None if the post does not exist."""
        found: int | None = self._value(
            "SELECT iif(PostTypeId = 2, ParentId, Id) FROM Posts "
            "WHERE Id = :id AND PostTypeId IN (1, 2)",
            id=post_id,
        )
        return found

    def find_first(self, post_ids: Iterable[int]) -> tuple[int, int] | None:
        """Find the first post that exists, with its question; None also if reading fails."""
        with suppress(sqlite3.Error, OutputError):
            for post_id in post_ids:
                if (question_id := self.find_question(post_id)) is not None:
                    return post_id, question_id
        return None

    def linked_questions(self, question_id: int) -> list[Row]:
        """Find questions linked from a question, and (`is_from`) questions that link to it."""
        columns = "q.Id, q.Title, q.Score, l.LinkTypeId = 3 AS is_duplicate"
        return self._rows(
            f"SELECT {columns}, 0 AS is_from FROM PostLinks l JOIN questions q "
            "ON q.Id = l.RelatedPostId WHERE l.PostId IN "
            "(SELECT Id FROM Posts WHERE Id = :id OR ParentId = :id) AND q.Id <> :id "
            f"UNION SELECT {columns}, 1 FROM PostLinks l JOIN Posts p ON p.Id = l.PostId "
            "JOIN questions q ON q.Id = coalesce(p.ParentId, p.Id) "
            "WHERE l.RelatedPostId = :id AND q.Id <> :id ORDER BY 5, 3 DESC LIMIT 60",
            id=question_id,
        )

    # Posts.

    def _find(self, query: Query, sort: str, weights: Weights = ()) -> Found:
        """Find the posts that match a query, in an order of `SORTS`.

        Sorted by relevance, posts have at least one of the plain words, and each question is found
        at most once; with `weights`, the rank is the sum of the weighted ranks of the terms. In
        other orders, posts have all words.
        """
        key, direction = SORTS[sort]
        posts = _posts_sql(query, key)
        if not posts:
            return Found([], 0)
        words, values, most, is_cut = "", query.values, MOST_RESULTS, False
        if query.has_words:
            plain = list(map(self._quote, query.significant()))
            match = query.match(plain, "AND")
            if sort == "relevance":
                match = query.match(self._rarest(plain), "OR")
            words = _weighted_sql(len(weights)) if weights else _WITH_WORDS
            most, is_cut = _RANKED, self._count(match) > _RANKED
            for number, (term, weight) in enumerate(weights):
                values = values | {f"term{number}": term, f"weight{number}": weight}
            values = values | {"match": match, "most": most}
        last = direction if sort in ("newest", "oldest") else "DESC"
        sql = f"{words}{posts} ORDER BY Key {direction}, Id {last} LIMIT {most}"
        rows = self._rows(sql, **values)
        if sort == "relevance":
            best: dict[int, Row] = {}
            for row in rows:
                best.setdefault(row["QuestionId"], row)
            rows = list(best.values())
        total = len(rows)
        if total == most and not words:
            total = self._value(f"SELECT count(*) FROM ({posts})", **values)
        hits = [(row["Key"], row["Id"]) for row in rows]
        return Found(hits[:MOST_RESULTS], total, is_cut)

    def _rarest(self, plain: list[str]) -> list[str]:
        """Select the rarest words, so that not too many posts are ranked."""
        counts = {word: self._count(word) for word in plain}
        kept, total = list[str](), 0
        for word in sorted(counts, key=lambda word: counts[word]):
            total += counts[word]
            if total <= _RANKED or not kept:
                kept.append(word)
        return kept

    def _count_terms(self, query: Query) -> dict[str, tuple[str, int]]:
        """Map each word or phrase to its form for the index, and to the number of its texts.

        The number is that of the whole database, as in the ranks of the index. Words too common to
        be ranked are left out.
        """
        quoted_words = {self._quote(word): word for word in query.significant()}
        terms = {quoted_words[term]: term for term in self._rarest(list(quoted_words))}
        terms |= {phrase: phrase for phrase in query.required}
        sql = f"SELECT count(*) FROM {SEARCH} WHERE {SEARCH} MATCH :match"
        return {word: (term, self._value(sql, match=term)) for word, term in terms.items()}

    def _quote(self, word: str) -> str:
        """Quote a word for the index, which contains the stems of English words.

        Words in other languages are found by the start that they share with their stem.
        """
        stem = _stem(self.about.language, word)
        is_start = self.about.language != "en" and stem != word and len(stem) > 2
        return quote_phrase(f"{stem}*" if is_start else word)

    def _count(self, match: str) -> int:
        """Count the posts that match a full-text query, up to one more than can be ranked."""
        count = self._value(
            f"SELECT count(*) FROM (SELECT 1 FROM {SEARCH} WHERE {SEARCH} MATCH :match "
            "LIMIT :most)",
            match=match,
            most=_RANKED + 1,
        )
        return int(count)

    def summaries(self, hits: list[Hit], words: Sequence[str] = ()) -> list[Row]:
        """Read what lists show of posts, such as titles, and mark the words of a search in them."""
        words = [word for word in words if fold(word) not in COMMON]
        is_found = make_matcher(words, partial(_stem, self.about.language))
        rows = self._rows(
            "SELECT p.Id, q.Id AS QuestionId, q.Title, q.Tags, p.Score, p.CreationDate, "
            "q.AcceptedAnswerId, q.AnswerCount, q.ClosedDate, p.OwnerUserId, "
            "p.PostTypeId = 2 AS IsAnswer, p.Id IS q.AcceptedAnswerId AS IsAccepted, "
            "coalesce(u.DisplayName, p.OwnerDisplayName) AS Owner, "
            f"substr(p.Body, 1, {_EXCERPT if words else _LIST_EXCERPT}) AS Body FROM Posts p "
            "JOIN Posts q ON q.Id = iif(p.PostTypeId = 2, p.ParentId, p.Id) "
            "LEFT JOIN Users u ON u.Id = p.OwnerUserId "
            f"WHERE p.Id IN ({_comma_separated(post_id for _, post_id in hits)})"
        )
        for row in rows:
            row["Snippet"] = snippet(_start_as_text(row.pop("Body")), is_found)
            if row["Title"] is not None:
                row["Title"] = mark(row["Title"], is_found)
        by_id = {row["Id"]: row for row in rows}
        return [by_id[post_id] for _, post_id in hits if post_id in by_id]

    # Tags.

    def tag(self, name: str) -> int:
        """Return the number of questions with a tag; 0 if the tag is unknown."""
        return self._value("SELECT Questions FROM tag_counts WHERE Tag = :name", name=name) or 0

    def tag_texts(self, name: str) -> Row:
        """Return the description of a tag, if any: `Excerpt` (text) and `Wiki` (HTML)."""
        rows = self._rows(
            "SELECT e.Body AS Excerpt, w.Body AS Wiki FROM Tags t LEFT JOIN Posts e "
            "ON e.Id = t.ExcerptPostId LEFT JOIN Posts w ON w.Id = t.WikiPostId "
            "WHERE t.TagName = :name",
            name=name,
        )
        return rows[0] if rows else {}

    def tag_names(self, text: str) -> list[str]:
        """Return the tags in a URL such as `a+b`.

        Tags that are unknown as written are converted to lower case.
        """
        is_one = self.tag(text) or self.tag(text.lower())
        names = [text] if is_one else _BETWEEN_TAGS.split(text)
        names = [name for name in names if name][:_MOST_TAGS]
        return [name if self.tag(name) else name.lower() for name in names]

    def tags(self, like: str, page: int) -> Page:
        """Return a page of the tags whose names contain a string, the most frequent first."""
        source = "tag_counts WHERE instr(lower(Tag), lower(:like))"
        sql = f"SELECT Tag AS Name, Questions FROM {source} ORDER BY Questions DESC, Tag"
        return self._page(sql, page, TAGS_PAGE, source, like=like)

    # People.

    def users(self, like: str, sort: str, page: int) -> Page:
        """Return a page of the users whose names contain a string, in an order of `USER_SORTS`."""
        source = "Users WHERE DisplayName IS NOT NULL"
        source += " AND instr(lower(DisplayName), lower(:like))" * bool(like)
        columns, order = "Id, DisplayName, Reputation, CreationDate", USER_SORTS[sort]
        sql = f"SELECT {columns} FROM {source} ORDER BY {order}"
        return self._page(sql, page, USERS_PAGE, source, like=like)

    def user(self, user_id: int) -> Row | None:
        """Read a user and count their posts; None if the user has neither a row nor a post."""
        rows = self._rows("SELECT * FROM Users WHERE Id = :id", id=user_id)
        user: Row = dict.fromkeys(DUMP["users"].attributes) | {"Id": user_id}
        user |= rows[0] if rows else {}
        for kind in ("questions", "answers"):
            sql = f"SELECT count(*) FROM {kind} WHERE OwnerUserId = :id"
            user[kind.title()] = self._value(sql, id=user_id)
        if self.has("badges"):
            sql = "SELECT Class, count(*) AS n FROM Badges WHERE UserId = :id GROUP BY Class"
            counts = {row["Class"]: row["n"] for row in self._rows(sql, id=user_id)}
            user["Badges"] = {name: counts.get(at, 0) for at, name in enumerate(_BADGES, 1)}
        return user if rows or user["Questions"] or user["Answers"] else None


def search(
    stores: Sequence[Store], query: Query, sort: str, page: int, size: int
) -> tuple[list[tuple[Store, Row]], int, bool]:
    """Search several sites, and read a page of the results.

    Args:
        stores: The sites.
        query: The query.
        sort: An order of `SEARCH_SORTS`.
        page: Number of the page.
        size: Number of results on a page.

    Returns:
        The results, each with its site; the number of all results; whether even more posts match.
    """
    token = _DEADLINE.set(time.thread_time() + _SECONDS)
    try:
        is_ranked = sort == "relevance" and len(stores) > 1
        weights = _common_weights(stores, query) if is_ranked else [()] * len(stores)
        founds = [store.hits(query, sort, of) for store, of in zip(stores, weights, strict=True)]
        merged: list[tuple[Any, Store, Hit]] = []
        for store, found in zip(stores, founds, strict=True):
            for place, hit in enumerate(found.hits[: page * size]):
                # If posts rank equally, take them from the sites in turn.
                keys = {"relevance": (hit[0], place), "newest": hit[0] or "", "score": hit[0] or 0}
                merged.append((keys[sort], store, hit))
        merged.sort(key=lambda entry: entry[0], reverse=sort != "relevance")
        rows = [
            (store, row)
            for store, run in groupby(merged[(page - 1) * size : page * size], lambda one: one[1])
            for row in store.summaries([hit for *_, hit in run], query.words)
        ]
    finally:
        _DEADLINE.reset(token)
    return rows, sum(found.total for found in founds), any(found.is_cut for found in founds)


def _common_weights(stores: Sequence[Store], query: Query) -> list[Weights]:
    """Return weights for the terms of a query with which ranks of several databases compare.

    A rank of FTS5 is a sum over the terms, each with a factor for its rarity in that database
    (https://sqlite.org/fts5.html, "The bm25() function"). The weights replace this factor by the
    one of all databases together.
    """
    terms = [store.count_terms(query) for store in stores]
    texts: Counter[str] = Counter()
    for counts in terms:
        texts.update({word: count for word, (_, count) in counts.items()})
    total = sum(map(_number_of_texts, stores))
    return [
        tuple(
            (term, _rarity(total, texts[word]) / _rarity(_number_of_texts(store), count))
            for word, (term, count) in counts.items()
        )
        for store, counts in zip(stores, terms, strict=True)
    ]


def _rarity(texts: int, matching: int) -> float:
    """Return the inverse document frequency, as FTS5 computes it."""
    return max(log((texts - matching + 0.5) / (matching + 0.5)), 1e-6) if texts else 1e-6


def _number_of_texts(store: Store) -> int:
    return store.about.rows["questions"] + store.about.rows["answers"]


def _weighted_sql(terms: int) -> str:
    """Return SQL as `_WITH_WORDS`, with the weighted sum of the ranks of some terms."""
    ranks = " UNION ALL ".join(
        f"SELECT rowid AS Id, rank * :weight{number} AS Rank FROM {SEARCH} WHERE {SEARCH} "
        f"MATCH :term{number} AND +rowid IN (SELECT Id FROM m)"
        for number in range(terms)
    )
    return (
        f"WITH m AS MATERIALIZED (SELECT rowid AS Id FROM {SEARCH} WHERE {SEARCH} MATCH :match "
        "ORDER BY rowid DESC LIMIT :most), "
        f"s AS (SELECT Id, sum(Rank) AS Rank FROM ({ranks}) GROUP BY Id) "
    )


_WITH_WORDS = (
    f"WITH s AS (SELECT rowid AS Id, rank AS Rank FROM {SEARCH} WHERE {SEARCH} MATCH :match "
    "ORDER BY rowid DESC LIMIT :most) "
)
"""The latest posts that match a full-text query, for `_posts_sql`."""


def _posts_sql(query: Query, key: str) -> str:
    """Return SQL for the posts that match a query, each with the key by which it is sorted.

    Without words, only questions are found, unless the query names an owner or a kind of post. The
    choice of indexes is left to SQLite, which finds those that cover the conditions.
    """
    kinds, where, words = query.kinds, query.where, ""
    if query.has_words:
        where, words = ["{p}.Id = s.Id", *where], "s CROSS JOIN "
    elif len(kinds) > 1 and not query.has_owner:
        kinds = frozenset({"question"})
    return " UNION ALL ".join(
        f"SELECT {{p}}.Id AS Id, {key} AS Key, q.Id AS QuestionId FROM {words}{_POSTS[kind][0]} "
        f"WHERE {' AND '.join([_POSTS[kind][1], *where])}".format(p=kind[0], q="q")
        for kind in sorted(kinds)
    )


@lru_cache(maxsize=50_000)
def _stem(language: str, word: str) -> str:
    """Return the stem of a word, which is in lower case."""
    from snowballstemmer import stemmer

    return str(stemmer(_STEMMERS[language]).stemWord(word)) if language in _STEMMERS else word


def _identify(path: str) -> tuple[int, int, int]:
    """Identify a database, or raise `OutputError` if it was removed."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise OutputError(f"{path}: was removed: {error.strerror}") from error
    return status.st_ino, status.st_size, status.st_mtime_ns


def _comma_separated(ids: Iterable[int]) -> str:
    return ",".join(str(int(number)) for number in ids)


def _start_as_text(body: str | None) -> str:
    """Extract the text from the start of a body, without an incomplete tag at its end."""
    body = body or ""
    start = body.rfind("<")
    return html_to_text(body[:start] if start > body.rfind(">") else body)
