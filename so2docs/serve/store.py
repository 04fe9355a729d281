"""What pages ask of a database: lists, tags, search, one document. Read-only, from any thread."""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from so2docs.serve.conditions import conditions_of, posts_of
from so2docs.serve.query import Query
from so2docs.serve.snippets import mark, snippet, terms_of
from so2docs.sqlite.about import About, SiteAbout, connect_to_site
from so2docs.sqlite.rebuild import RebuiltDocuments
from so2docs.sqlite.rows import text_of

PAGE = 20
_RANKED = 2_000
"""Most posts that are ranked by how well they match: that takes some microseconds each, and to go
through all posts that hold any of the words."""
_FILTERED = 5_000
_EXCERPT = 6_000
"""Characters of a body that are looked through for the part to show."""

SORTS = {
    "newest": "q.Id DESC",
    "score": "q.Score DESC, q.Id DESC",
    "active": "q.LastActivityDate DESC",
    "oldest": "q.Id",
}

_SUMMARY = (
    "q.Id, q.Title, q.Score, q.ViewCount, q.CreationDate, q.Tags, q.AcceptedAnswerId, "
    "q.OwnerUserId, q.OwnerDisplayName, "
    "(SELECT count(*) FROM answers a WHERE a.ParentId = q.Id) AS Answers"
)
Row = dict[str, Any]


@dataclass(slots=True)
class ResultPage:
    """A page of results.

    Attributes:
        rows: The results.
        has_more: Whether there is another page.
        is_cut: Whether more posts match than were ranked.
    """

    rows: list[Row]
    has_more: bool = False
    is_cut: bool = False


class Store:
    """One site of a database."""

    def __init__(self, about: About, site: SiteAbout) -> None:
        self.about, self.site = about, site
        self._free: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue()
        with self._connection() as connection:
            self.has_users = "users" in about.rows
            self._range = (-(1 << 63), (1 << 63) - 1)
            if about.site_field is not None:
                # Sites stand one after another, so that a search need not look at those of others.
                bounds = connection.execute(
                    "SELECT min(Row), max(Row) FROM (SELECT Row FROM questions UNION ALL "
                    "SELECT Row FROM answers)"
                ).fetchone()
                self._range = (bounds[0] or 0, bounds[1] or 0)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            connection = self._free.get_nowait()
        except queue.Empty:
            connection = connect_to_site(self.about.path, self.about.site_field, self.site.name)
            connection.row_factory = sqlite3.Row
        try:
            yield connection
        finally:
            self._free.put(connection)

    def close(self) -> None:
        """Close all connections."""
        while not self._free.empty():
            self._free.get_nowait().close()

    def _rows(self, sql: str, **values: Any) -> list[Row]:
        with self._connection() as connection:
            return [dict(row) for row in connection.execute(sql, values)]

    def document(self, question_id: int) -> Row | None:
        """A question with its answers; None if there is none."""
        with self._connection() as connection:
            field = self.about.site_field
            extra = {} if field is None else {field: self.site.name}
            return RebuiltDocuments(connection, self.site.shape, extra).get(question_id)

    def questions_of(self, post_ids: Iterable[int]) -> dict[int, int]:
        """The questions of those posts that are here, by their ids."""
        ids = ",".join(str(int(post_id)) for post_id in post_ids)
        rows = self._rows(
            f"SELECT Id, ParentId FROM answers WHERE Id IN ({ids}) UNION ALL "
            f"SELECT Id, Id FROM questions WHERE Id IN ({ids})"
        )
        return {row["Id"]: row["ParentId"] for row in rows}

    def question_of(self, post_id: int) -> int | None:
        """The question that a post belongs to; None if there is no such post."""
        return self.questions_of([post_id]).get(post_id)

    def titles(self, question_ids: list[int]) -> dict[int, str | None]:
        """Titles of those questions that there are."""
        marks = ",".join(str(int(question_id)) for question_id in question_ids)
        rows = self._rows(f"SELECT Id, Title FROM questions WHERE Id IN ({marks})")
        return {row["Id"]: row["Title"] for row in rows}

    def questions(
        self,
        *,
        sort: str = "newest",
        tag: str | None = None,
        unanswered: bool = False,
        page: int = 1,
    ) -> ResultPage:
        """A page of a list of questions."""
        where = "WHERE NOT EXISTS (SELECT 1 FROM answers x WHERE x.ParentId = q.Id)"
        if not unanswered:
            where = "WHERE 1"
        source = "questions q"
        if tag is not None:
            source, where = self._of_tag(tag, sort, where)
        return self._page(
            f"SELECT {_SUMMARY} FROM {source} {where} ORDER BY {SORTS[sort]}", page, tag=tag
        )

    def _of_tag(self, tag: str, sort: str, where: str) -> tuple[str, str]:
        """Of a frequent tag, go through the questions in their order; of a rare one, sort them."""
        count = self.tag(tag)
        if sort in ("newest", "oldest") or count**2 < self.site.overview["questions"] * PAGE:
            # CROSS JOIN is SQLite's way to say which table comes first.
            return "question_tags t CROSS JOIN questions q ON q.Id = t.QuestionId", (
                f"{where} AND t.Tag = :tag"
            )
        has_tag = (
            "EXISTS (SELECT 1 FROM question_tags t WHERE t.Tag = :tag AND t.QuestionId = q.Id)"
        )
        return "questions q", f"{where} AND {has_tag}"

    def _page(self, sql: str, page: int, **values: Any) -> ResultPage:
        limit = f" LIMIT {PAGE + 1} OFFSET {PAGE * (page - 1)}"
        rows = self._rows(sql + limit, **values)
        return ResultPage(rows[:PAGE], has_more=len(rows) > PAGE)

    def tag(self, name: str) -> int:
        """How many questions have a tag."""
        rows = self._rows("SELECT Questions FROM tags WHERE Name = :name", name=name)
        return int(rows[0]["Questions"]) if rows else 0

    def tags(self, like: str, page: int) -> ResultPage:
        """A page of the tags whose names hold some letters, the most frequent first."""
        sql = (
            "SELECT Name, Questions FROM tags WHERE instr(Name, :like) "
            "ORDER BY Questions DESC, Name"
        )
        found = self._rows(f"{sql} LIMIT 61 OFFSET :skip", like=like, skip=60 * (page - 1))
        return ResultPage(found[:60], has_more=len(found) > 60)

    def search(self, query: Query, page: int = 1) -> ResultPage:
        """A page of posts, the best first."""
        filters, values = conditions_of(query)
        if not query.match:
            return self._filtered(query, filters, values, page)
        most = _FILTERED if filters else _RANKED
        skip = PAGE * (page - 1)
        values |= {"low": self._range[0], "high": self._range[1], "most": most, "skip": skip}
        match = query.match
        if is_cut := self._matches(match, most):
            titles = f"{{Title Tags}} : ({match})"
            match = titles if self._matches(titles, 0) else match
        rows = self._ranked(match, filters, values, by_score=is_cut)
        return ResultPage(self._shown(query, rows[:PAGE]), len(rows) > PAGE, is_cut)

    def _matches(self, match: str, most: int) -> bool:
        """Whether more posts match than this."""
        rows = self._rows(
            "SELECT count(*) AS n FROM (SELECT 1 FROM search WHERE search MATCH :match "
            "AND rowid BETWEEN :low AND :high LIMIT :most)",
            match=match, low=self._range[0], high=self._range[1], most=most + 1,
        )  # fmt: skip
        return bool(rows[0]["n"] > most)

    def _ranked(self, match: str, filters: list[str], values: Row, *, by_score: bool) -> list[Row]:
        """Posts by how well they match; of very many, the latest by their score."""
        where = " AND ".join(["p.Id IS NOT NULL", *filters])
        rank, latest, order = "bm25(search, 10.0, 4.0, 1.0)", "", "s.Rank"
        if by_score:
            rank, latest = "0", "ORDER BY rowid DESC"
            order = "coalesce(q.Score, a.Score) DESC, s.Row DESC"
        return self._rows(
            f"SELECT s.Row FROM (SELECT rowid AS Row, {rank} AS Rank FROM search "
            f"WHERE search MATCH :match AND rowid BETWEEN :low AND :high {latest} LIMIT :most) s "
            f"{posts_of('s')} WHERE {where} ORDER BY {order} LIMIT {PAGE + 1} OFFSET :skip",
            match=match,
            **values,
        )

    def _filtered(self, query: Query, filters: list[str], values: Row, page: int) -> ResultPage:
        """Posts by filters alone, the latest first: questions, unless answers are asked for."""
        kinds = ["questions"] if query.user is None else ["questions", "answers"]
        kinds = ["answers"] if "answer" in query.kinds else kinds
        # Said of `s` as well, so that there is an index to use.
        owner = ["s.OwnerUserId = :user"] if query.user is not None else []
        where = " AND ".join(["1", *owner, *filters])
        parts = [
            f"SELECT s.Row, s.CreationDate FROM {kind} s {posts_of('s')} WHERE {where}"
            for kind in kinds
        ]
        rows = self._page(f"{' UNION ALL '.join(parts)} ORDER BY 2 DESC", page, **values)
        return ResultPage(self._shown(query, rows.rows), rows.has_more)

    def _shown(self, query: Query, rows: list[Row]) -> list[Row]:
        """Results as they are shown, with the words that were found marked."""
        found = []
        terms = terms_of(query.words)
        for row in rows:
            [post] = self._rows(
                "SELECT coalesce(q.Id, a.Id) AS Id, p.Id AS QuestionId, p.Title, p.Tags, "
                "coalesce(q.Score, a.Score) AS Score, "
                "coalesce(q.CreationDate, a.CreationDate) AS CreationDate, "
                "p.AcceptedAnswerId = a.Id AS IsAccepted, a.Id IS NOT NULL AS IsAnswer, "
                f"substr(coalesce(q.Body, a.Body), 1, {_EXCERPT}) AS Body, "
                "(SELECT count(*) FROM answers x WHERE x.ParentId = p.Id) AS Answers "
                f"FROM (SELECT :row AS Row) s {posts_of('s')}",
                row=row["Row"],
            )
            post["Snippet"] = snippet(text_of(post.pop("Body") or ""), terms)
            if post["Title"] is not None:
                post["Title"] = mark(post["Title"], terms)
            found.append(post)
        return found
