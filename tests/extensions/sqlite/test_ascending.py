"""Rows of later answers wait, so that tables are written in ascending order of ids."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from so2docs.extensions.sqlite import ascending, build
from so2docs.extensions.sqlite.ascending import AscendingRows
from so2docs.extensions.sqlite.build import to_sqlite


def rows_of_questions(chance: random.Random, number: int) -> list[list[tuple[int, str | None]]]:
    """Make the rows of answers to each question, whose id is its index."""
    ids = chance.sample(range(number * 3), number)
    rows: list[list[tuple[int, str | None]]] = [[] for _ in range(number)]
    for id_ in ids:
        text = None if id_ % 7 == 0 else chance.choice("xé語") * chance.randrange(200)
        rows[chance.randrange(min(id_ + 1, number))].append((id_, text))
    return rows


@pytest.mark.parametrize("most_characters", [0, 1_000, 20_000, 10_000_000])
def test_rows_come_in_order_whatever_fits_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_characters: int
) -> None:
    monkeypatch.setattr(ascending, "_MOST_CHARACTERS", most_characters)
    monkeypatch.setattr(ascending, "_ROW_CHARACTERS", 1)
    questions = rows_of_questions(random.Random(5), 3_000)
    taken: list[tuple[int, str | None]] = []
    path = tmp_path / "rows"
    with closing(AscendingRows(str(path))) as waiting:
        for at in range(0, len(questions), 100):
            waiting.add(row for rows in questions[at : at + 100] for row in rows)
            before = len(taken)
            for rows in waiting.up_to(at + 100):
                assert rows
                taken += rows
            assert all(at <= id_ < at + 100 for id_, _ in taken[before:])
        for rows in waiting.up_to(float("inf")):
            size = sum(len(text or "") for _, text in rows)
            assert size <= most_characters + 2 * 200 * 16  # More by a block, and by an estimate.
            taken += rows
    assert taken == sorted(row for rows in questions for row in rows)
    assert path.exists() == (most_characters < 10_000_000)


def test_repeated_ids_are_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ascending, "_MOST_CHARACTERS", 0)
    with closing(AscendingRows(str(tmp_path / "rows"))) as waiting:
        for text in "abc":
            waiting.add([(5, text), (9, text)] * 20)
        taken = [row for rows in waiting.up_to(float("inf")) for row in rows]
    assert [id_ for id_, _ in taken] == [5] * 60 + [9] * 60


def test_rows_without_texts_do_not_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ascending, "_MOST_CHARACTERS", 100_000)
    with closing(AscendingRows(str(tmp_path / "rows"))) as waiting:
        waiting.add((id_, None) for id_ in range(1_000))
        assert (tmp_path / "rows").exists()
        assert [row[0] for rows in waiting.up_to(2_000) for row in rows] == list(range(1_000))


class Text(str):
    """A string of another library."""


def test_tables_are_written_in_ascending_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the last question has the first answer, and if rows do not fit in memory."""
    monkeypatch.setattr(ascending, "_MOST_CHARACTERS", 5_000)
    monkeypatch.setattr(build, "_MOST_ADDED", 2_000)
    monkeypatch.setattr(build, "_BATCH", 20)
    chance = random.Random(6)
    later = chance.sample(range(1_000, 3_000), 600)
    documents: list[dict[str, Any]] = []
    for id_ in range(1, 401):
        answers = [later.pop() for _ in range(chance.randrange(3)) if later]
        body = "<p>" + "word " * chance.randrange(100) + "</p>"
        made = [{"Id": answer, "ParentId": id_, "Body": body} for answer in answers]
        documents.append({"Id": id_, "Title": Text(f"t{id_}"), "Body": Text(body), "Answers": made})
    inserted: dict[str, list[int]] = {"answers": [], "texts": []}
    insert = build._Building._insert

    def watch(self: build._Building, table: str, rows: list[build.Row], label: str) -> None:
        inserted.get(table, []).extend(row[0] for row in rows)
        insert(self, table, rows, label)

    monkeypatch.setattr(build._Building, "_insert", watch)
    to_sqlite(iter(documents), tmp_path / "q.db", jobs=1)
    assert all(ids == sorted(ids) for ids in inserted.values())
    answers = [answer for document in documents for answer in document["Answers"]]
    assert len(inserted["texts"]) == len(documents) + len(answers)
    with closing(sqlite3.connect(tmp_path / "q.db")) as connection:
        stored = connection.execute("SELECT Id, ParentId, Body FROM answers").fetchall()
        connection.execute("INSERT INTO texts_fts (texts_fts) VALUES ('integrity-check')")
        sql = "SELECT count(*) FROM texts_fts WHERE texts_fts MATCH 'word'"
        [(found,)] = connection.execute(sql)
    assert stored == sorted(tuple(answer.values()) for answer in answers)
    assert found == sum("word" in post["Body"] for post in (*documents, *answers))
