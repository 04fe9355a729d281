"""Measure how long a database takes to make and to search.

    python checks/benchmarks/sqlite_search.py DUMP

Queries are one to three words, half of them from a title and half from the start of a body; some
have a tag or `score:`. CPU time is shown next to wall time, because it is reliable even on a busy
machine.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import measure

from so2docs.extensions.serve.query import parse
from so2docs.extensions.serve.store import PAGE, Store
from so2docs.extensions.sqlite.about import read_about
from so2docs.extensions.sqlite.texts import html_to_text

_WORD = re.compile(r"\w{2,}")


def queries(database: str, count: int, seed: int = 1) -> list[str]:
    """Make `count` realistic queries from words in the database."""
    rng = random.Random(seed)
    found: list[str] = []
    with closing(sqlite3.connect(database)) as connection:
        [(low, high)] = connection.execute("SELECT min(Id), max(Id) FROM questions")
        while len(found) < count:
            near = rng.randint(low, min(high, 900_000_000))
            title, tags, body = connection.execute(
                "SELECT Title, Tags, Body FROM questions WHERE Id >= ? ORDER BY Id LIMIT 1",
                (near,),
            ).fetchone() or ("", "", "")
            words = _WORD.findall(title if len(found) % 2 else html_to_text(body or title)[:300])
            if len(words) < 3:
                continue
            text = " ".join(rng.sample(words, rng.choice((1, 2, 2, 3))))
            if len(found) % 10 == 0:
                text = f"[{json.loads(tags)[0]}] {text}"
            elif len(found) % 10 == 5:
                text += " score:3"
            found.append(text)
    return found


def search(store: Store, text: str) -> None:
    """Search for a text, and read the first page of results."""
    query = parse(text)
    store.summaries(store.hits(query, "relevance").hits[:PAGE], query.words)


def latencies(database: str, count: int) -> tuple[list[float], list[float]]:
    """Measure searches; return wall times and CPU times in milliseconds, each in ascending order.

    Each search runs twice, and only the second run counts. It uses a new `Store`, because a store
    caches results.
    """
    about = read_about(database)
    asked = queries(database, count)
    store = Store(about)
    for text in asked:
        search(store, text)
    store.close()
    store = Store(about)
    wall, cpu = [], []
    for text in asked:
        started, spent = time.perf_counter(), time.thread_time()
        search(store, text)
        cpu.append((time.thread_time() - spent) * 1e3)
        wall.append((time.perf_counter() - started) * 1e3)
    store.close()
    return sorted(wall), sorted(cpu)


def main() -> None:
    """Make a database, and print a line of figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dump")
    parser.add_argument("--queries", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder, "site.db"))
        command = [sys.executable, "-m", "so2docs", "sqlite", arguments.dump, database]
        made = measure.run([*command, "--quiet"])
        size = Path(database).stat().st_size / 1e6
        line = f"{made.wall:>6.1f} s {made.cpu:>6.1f} s CPU "
        line += f"{made.memory >> 20:>4} MiB {size:>7.0f} MB"
        for name, values in zip(
            ("clock", "CPU"), latencies(database, arguments.queries), strict=True
        ):
            middle, high = values[len(values) // 2], values[len(values) * 99 // 100]
            line += f"  {name}: p50 {middle:.1f} p99 {high:.1f} most {values[-1]:.1f} ms"
        print(line, flush=True)


if __name__ == "__main__":
    main()
