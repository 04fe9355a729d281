"""Measure how often a search in other words finds the question that is meant.

    python checks/benchmarks/search_quality.py ../shared/dumps

`search_needs.tsv` has 100 needs: a dump, the id of a question, and words that a person who needs
this question could type. They were chosen before the ranking. The ranking was chosen with every
other need; the rest was kept apart. For both halves, the script prints how many questions are among
the first five results, and the mean reciprocal rank among the first ten: of the reader, and of
BM25 over stemmed words with equal weights.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import so2docs
from so2docs.extensions.serve.query import parse
from so2docs.extensions.serve.store import Store
from so2docs.extensions.sqlite.about import read_about
from so2docs.extensions.sqlite.texts import texts_of_posts

NEEDS = Path(__file__).with_name("search_needs.tsv")
_FIRST = 10

Search = Callable[[str], list[int]]
"""A search: returns the ids of the first questions."""


def read_needs() -> list[tuple[str, int, str]]:
    """Read the needs: name of a dump, id of a question, words."""
    lines = (line.split("\t") for line in NEEDS.read_text(encoding="utf-8").splitlines())
    return [(site, int(question_id), words) for site, question_id, words in lines]


def find_dump(folder: Path, site: str) -> Path:
    """Return the path of a dump in the folder of dumps: an archive, or the posts alone."""
    archive = folder / "archives" / f"{site}.7z"
    return archive if archive.exists() else folder / site / "Posts.xml.gz"


@contextmanager
def searches(database: Path) -> Iterator[dict[str, Search]]:
    """Open a database, and yield the search of the reader and plain BM25."""
    about = read_about(str(database))
    store = Store(about)
    with closing(sqlite3.connect(database)) as connection:
        connection.execute(
            "CREATE VIRTUAL TABLE temp.plain USING fts5(Title, Tags, Body, tokenize='porter')"
        )
        posts = connection.execute("SELECT * FROM Posts").fetchall()
        connection.executemany(
            "INSERT INTO plain (rowid, Title, Tags, Body) VALUES (?, ?, ?, ?)",
            [text[:4] for text in texts_of_posts(posts)],
        )

        def reader(words: str) -> list[int]:
            query = parse(words)
            rows = store.summaries(store.hits(query, "relevance").hits[: 9 * _FIRST])
            return [row["QuestionId"] for row in rows]

        def plain(words: str) -> list[int]:
            match = " OR ".join(f'"{word}"' for word in words.replace('"', " ").split())
            rows = connection.execute(
                "SELECT coalesce(a.ParentId, p.rowid) FROM plain p LEFT JOIN answers a "
                "ON a.Id = p.rowid WHERE plain MATCH ? ORDER BY p.rank",
                (match,),
            )
            return [row[0] for row in rows]

        yield {"reader": reader, "plain BM25": plain}
    store.close()


def find_ranks(folder: Path) -> dict[str, list[int]]:
    """Return the rank of the question of each need, for each search; 0 if not among the first."""
    needs = read_needs()
    ranks: dict[str, list[int]] = {}
    for site in dict.fromkeys(site for site, _, _ in needs):
        with tempfile.TemporaryDirectory() as made:
            database = Path(made, "site.db")
            host = f"{site.partition('-20')[0]}.stackexchange.com"
            so2docs.to_sqlite(find_dump(folder, site), database, site=host)
            with searches(database) as found:
                for name, search in found.items():
                    for _, question_id, words in (need for need in needs if need[0] == site):
                        first = list(dict.fromkeys(search(words)))[:_FIRST]
                        rank = first.index(question_id) + 1 if question_id in first else 0
                        ranks.setdefault(name, []).append(rank)
    return ranks


def main() -> None:
    """Print a line of figures for each search and half."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dumps", type=Path)
    for name, ranks in find_ranks(parser.parse_args().dumps).items():
        for half, part in (("chosen with", ranks[::2]), ("kept apart", ranks[1::2])):
            hits = sum(0 < rank <= 5 for rank in part)
            mean = sum(1 / rank for rank in part if rank) / len(part)
            print(f"{name:<10}  {half:<11}  {hits:>3} of {len(part)}  MRR {mean:.2f}")


if __name__ == "__main__":
    main()
