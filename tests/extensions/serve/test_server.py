"""The server: allowed hosts, headers of responses, its end, and robustness."""

from __future__ import annotations

import re
import signal
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from support.command import run, start
from support.serve_site import HEADERS, HOST, asked, documents, make, make_database

from so2docs.extensions.serve.app import bind, is_own_name


def test_small_answers_do_not_wait_for_others() -> None:
    """asyncio turns Nagle's algorithm off for sockets that declare TCP."""
    with bind("127.0.0.1", 0) as bound:
        assert bound.proto == socket.IPPROTO_TCP


ENDLESS = (
    "CREATE VIEW tag_counts AS WITH RECURSIVE c(Tag, Questions) AS "
    "(SELECT 'a', 1 UNION ALL SELECT Tag, Questions + 1 FROM c) SELECT * FROM c"
)


def test_the_names_of_this_machine() -> None:
    for host in ("localhost", "localhost:8765", "LOCALHOST.", "127.0.0.1:1", "127.0.0.2", "[::1]",
                 "[::1]:8765"):  # fmt: skip
        assert is_own_name(host), host
    for host in ("evil.example", "evil.example:8765", "localhost.evil.example", "192.168.0.1",
                 "127.0.0.1.evil.example", "[fe80::1]", "localhost:evil", "", ":80",
                 "::1"):  # fmt: skip
        assert not is_own_name(host), host


def test_unexpected_errors_have_the_security_headers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = make(tmp_path)
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE Posts SET Tags = '{'")
    connection.close()
    with asked(database) as client:
        answer = client.get("/questions")
    assert answer.status_code == 500
    assert set(HEADERS) <= set(answer.headers)
    assert "This page could not be made" in answer.text
    assert "/questions: JSONDecodeError" in caplog.text
    assert "Traceback" not in answer.text + "".join(r.getMessage() for r in caplog.records)


def test_the_page_of_an_error_keeps_site_navigation_and_search(tmp_path: Path) -> None:
    with asked(make(tmp_path)) as client:
        for path in ("/nothing", "/questions/424242"):
            page = client.get(path).text
            assert f'<a class="name" href="/"><bdi>{HOST}</bdi></a>' in page
            assert 'href="/tags"' in page
            assert 'id="search"' in page


def endless(folder: Path) -> Path:
    """Make a database with a page that takes forever."""
    database = make(folder)
    with sqlite3.connect(database) as connection:
        connection.execute("ALTER TABLE tag_counts RENAME TO tags_once")
        connection.execute(ENDLESS)
    connection.close()
    return database


def test_the_server_ends_during_a_request(tmp_path: Path) -> None:
    process = start("serve", endless(tmp_path), "--port", 0, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    port = int(process.stderr.readline().split("127.0.0.1:")[1].split("/")[0])
    with socket.create_connection(("127.0.0.1", port)) as asking:
        asking.sendall(b"GET /tags HTTP/1.1\r\nHost: localhost\r\n\r\n")
        # Another page is served meanwhile.
        assert httpx.get(f"http://127.0.0.1:{port}/about", timeout=60).status_code == 200
        process.terminate()
        stderr = process.communicate(timeout=120)[1]
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in stderr
    assert stderr.strip().endswith("no longer serving")
    assert len(stderr.strip().splitlines()) == 1


def test_a_question_to_the_database_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("so2docs.extensions.serve.store._SECONDS", 0.1)
    with asked(endless(tmp_path)) as client:
        answer = client.get("/tags")
        assert answer.status_code == 503
        assert "This request takes too long" in answer.text
        assert client.get("/about").status_code == 200


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    database = make(tmp_path)
    with closing(sqlite3.connect(database)) as connection:
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'Posts'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    with database.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))
    done = run("serve", database, "--port", 0, code=1)
    assert re.fullmatch(rf"so2docs: {re.escape(str(database))}: cannot be read: .*\n", done.stderr)


def test_a_replaced_database_is_reported(tmp_path: Path) -> None:
    """`cp` truncates the file first, while others read it."""
    database = make(tmp_path)
    content = database.read_bytes()
    with asked(database) as client:
        assert client.get("/questions/1").status_code == 200
        for change in (lambda: database.write_bytes(content[:20_000]),
                       lambda: make_database(documents()[1:], database, force=True),
                       database.unlink):  # fmt: skip
            change()
            answer = client.get("/questions/1")
            assert answer.status_code == 500
            assert set(HEADERS) <= set(answer.headers)
            assert "restart the server" in answer.text or "was removed" in answer.text
            assert client.get("/search?q=sourdough").status_code == 500
