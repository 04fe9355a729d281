"""Measure the response times of `so2docs serve` for each kind of page, and its memory.

    python checks/benchmarks/serve.py questions.db

One page of each kind is requested before the measurement; after that, the pages differ if possible.
Times are in milliseconds: wall time, and CPU time of the server with its workers, which is also
reliable on a busy machine.
"""

from __future__ import annotations

import argparse
import http.client
import random
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlite_search import queries

_TICKS = 100.0


def addresses(database: str, count: int, seed: int = 2) -> dict[str, list[str]]:
    """Choose up to `count` addresses for each kind of page."""
    rng = random.Random(seed)

    def column(sql: str) -> list[Any]:
        with closing(sqlite3.connect(database)) as connection:
            return [row[0] for row in connection.execute(sql)]

    ids = column("SELECT Id FROM questions")
    tags = column("SELECT Name FROM tags ORDER BY Questions DESC LIMIT 200")
    owners = "SELECT DISTINCT OwnerUserId FROM questions WHERE OwnerUserId > 0 LIMIT 500"
    users = column(owners)
    many = column("SELECT Id FROM questions ORDER BY Answers DESC LIMIT 20")
    sorts = ("newest", "oldest", "score", "active")
    tagged = {sort: [f"/questions?tag={quote(tag)}&sort={sort}" for tag in tags] for sort in sorts}
    found = {
        "front": ["/"],
        "question": [f"/questions/{number}" for number in rng.sample(ids, min(count, len(ids)))],
        "question, most answers": [f"/questions/{number}" for number in many],
        "list": [f"/questions?sort={sort}&page={n}" for sort in sorts for n in range(1, 51)],
        "unanswered": [f"/questions?unanswered=1&page={page}" for page in range(1, 51)],
        **{f"tag, {sort}": addresses for sort, addresses in tagged.items()},
        "tags": [f"/tags?page={page}" for page in range(1, 20)],
        "user": [f"/users/{number}" for number in users],
        "search, words": [f"/search?q={quote(text)}" for text in queries(database, count)],
        "search, score": [f"/search?q=score:{n}" for n in (1000, 200, 100, 50, 20, 10, 5, 1)],
        "search, answers": [f"/search?q=answers:{n}" for n in (50, 20, 10, 5, 3, 2, 1)],
        "search, no such tag": [f"/search?q=[nosuch{n}]" for n in range(20)],
        "search, tag": [f"/search?q=[{quote(tag)}]" for tag in tags],
        "search, tag and score": [f"/search?q=[{quote(tag)}]+score:20" for tag in tags],
    }
    return {kind: rng.sample(some, min(count, len(some))) for kind, some in found.items()}


class Server:
    """A running `so2docs serve` in a separate process, and a connection to it."""

    def __init__(self, database: str) -> None:
        command = [sys.executable, "-m", "so2docs", "serve", database, "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", self.process.stderr.readline())
        assert found
        self.connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=600)

    def get(self, address: str) -> int:
        """Load a page and return its size in bytes."""
        self.connection.request("GET", address)
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, (address, answer.status)
        return len(content)

    def processes(self) -> list[int]:
        """List the process ids of the server and its workers."""
        own = self.process.pid
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return [own, *map(int, children)]

    def cpu(self) -> float:
        """Return the CPU seconds that the server and its workers have used so far."""
        total = 0.0
        for number in self.processes():
            fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / _TICKS
        return total

    def memory(self) -> int:
        """Return the resident bytes of the server and its workers, without database pages."""
        total = 0
        for number in self.processes():
            status = Path(f"/proc/{number}/status").read_text()
            total += sum(int(kib) for kib in re.findall(r"Rss(?:Anon|Shmem):\s+(\d+)", status))
        return total * 1024


def main() -> None:
    """Measure each kind of page, and print a line of figures for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("database")
    parser.add_argument("--count", type=int, default=100, help="number of addresses of each kind")
    arguments = parser.parse_args()
    server = Server(arguments.database)
    try:
        print(f"{'page':<24} {'p50':>8} {'p99':>8} {'CPU':>8} {'kB':>6}")
        for kind, asked in addresses(arguments.database, arguments.count).items():
            server.get(asked[-1])
            times, size, spent = [], 0, server.cpu()
            for address in asked:
                started = time.perf_counter()
                size += server.get(address)
                times.append((time.perf_counter() - started) * 1e3)
            times.sort()
            cpu = (server.cpu() - spent) * 1e3 / len(asked)
            line = (
                f"{kind:<24} {times[len(times) // 2]:>8.1f} {times[len(times) * 99 // 100]:>8.1f}"
            )
            print(f"{line} {cpu:>8.1f} {size / len(asked) / 1e3:>6.0f}", flush=True)
        print(f"memory of the server and its workers: {server.memory() / (1 << 20):.0f} MiB")
    finally:
        server.process.terminate()
        server.process.wait()


if __name__ == "__main__":
    main()
