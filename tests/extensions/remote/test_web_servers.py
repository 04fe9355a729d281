"""Dumps on web servers, which are read in ranges."""

from __future__ import annotations

import base64
import gc
import io
import os
import random
import socket
from collections.abc import Iterator
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import py7zr
import pytest
from support.command import run
from support.dumps import dump_of, question, row, some_rows, unpacked
from support.packed import BZIP2, LZMA2, seven_zip, zipped
from support.range_server import RangeServer, serving

import so2docs
from so2docs.dump import storage
from so2docs.errors import ChangedDumpError, DumpError, DumpNotFoundError
from so2docs.extensions.remote import web_server as remote

POSTS = dump_of(*some_rows(300, body_bytes=300))
TAGS = b'<?xml version="1.0" encoding="utf-8"?>\n<tags>\n%s</tags>\n' % row(
    Id=1, TagName="tea", Count=2
)


@pytest.fixture(autouse=True)
def _direct_and_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(remote, "backoff_seconds", 0.001)


@pytest.fixture
def server() -> Iterator[RangeServer]:
    with serving(POSTS) as server:
        yield server


def archive(tables: dict[str, bytes], filters: list[dict[str, int]] = LZMA2) -> bytes:
    """Make a 7z archive with a stream for each table."""
    packed = io.BytesIO()
    for number, (name, content) in enumerate(tables.items()):
        packed.seek(0)
        with py7zr.SevenZipFile(packed, "a" if number else "w", filters=filters) as opened:
            opened.writestr(content, name)
    return packed.getvalue()


@cache
def noisy(size: int) -> bytes:
    """Make a question whose body can hardly be compressed."""
    return dump_of(question(1, Body=base64.b64encode(random.Random(1).randbytes(size)).decode()))


@cache
def large_archive() -> bytes:
    return archive({"Posts.xml": noisy(2_000_000), "Tags.xml": TAGS})


def fetch_tags(server: RangeServer, folder: Path) -> None:
    url = server.url("tea.stackexchange.com.7z")
    assert so2docs.tables(url, folder, only="tags", format="jsonl", jobs=1)["tags"].rows == 1


@pytest.mark.parametrize("filters", [LZMA2, BZIP2], ids=["lzma2", "bzip2"])
def test_a_small_table_of_a_large_archive(
    filters: list[dict[str, int]], server: RangeServer, tmp_path: Path
) -> None:
    comments = dump_of(row(Id=1, PostId=1, Text="x")).replace(b"posts", b"comments")
    tables = {"Comments.xml": comments, "Posts.xml": noisy(1_000_000), "Tags.xml": TAGS}
    server.content = archive(tables, filters)
    assert len(server.content) > 1_000_000
    fetch_tags(server, tmp_path)
    # 17 samples of 4 KiB, the list of members, the table, and for each opening the start of the
    # file.
    assert server.sent < 150_000


def test_a_large_table_is_fetched_once(server: RangeServer, tmp_path: Path) -> None:
    server.content = large_archive()
    so2docs.tables(server.url("tea.stackexchange.com.7z"), tmp_path, only="posts", format="jsonl")
    assert server.sent < len(server.content) + 150_000
    assert server.requests < 50


def test_a_solid_archive_is_read_up_to_the_table(server: RangeServer, tmp_path: Path) -> None:
    tables = {"Tags.xml": TAGS, "Posts.xml": noisy(2_000_000)}
    server.content = seven_zip(tmp_path / "tea.7z", tables).read_bytes()
    fetch_tags(server, tmp_path)
    assert server.sent < 1_200_000


@pytest.mark.parametrize("name", ["Posts.xml", "a.7z", "a.zip"])
def test_same_output_as_of_a_file(name: str, server: RangeServer, tmp_path: Path) -> None:
    (tmp_path / "Posts.xml").write_bytes(POSTS)
    if name != "Posts.xml":
        pack = seven_zip if name == "a.7z" else zipped
        pack(tmp_path / name, [tmp_path / "Posts.xml"])
    server.content, server.statuses = (tmp_path / name).read_bytes(), [302, 206, 503, 206]
    server.drops = 2
    so2docs.convert(tmp_path / name, tmp_path / "file.jsonl.gz")
    so2docs.convert(server.url(name), tmp_path / "url.jsonl.gz", jobs=2)
    assert unpacked(tmp_path / "url.jsonl.gz") == unpacked(tmp_path / "file.jsonl.gz")


def test_reads_at_any_position(server: RangeServer) -> None:
    server.content = random.Random(2).randbytes(300_000)
    positions = random.Random(3)
    with storage.open_file(server.url("a")) as file:
        for _ in range(100):
            start, size = positions.randrange(310_000), positions.choice((0, 1, 5_000, 70_000))
            file.seek(start)
            assert file.read(size) == server.content[start : start + size]
            assert file.read(10) == server.content[start + size :][:10]
        file.seek(-5, os.SEEK_END)
        assert file.read() == server.content[-5:]


def message(kind: type[DumpError], server: RangeServer, folder: Path) -> str:
    """Return the message of an error, which the command prints too."""
    url = server.url("tea.7z")
    with pytest.raises(kind) as caught:
        so2docs.tables(url, folder / "out")
    assert caught.value.path.startswith(url)
    assert caught.value.advice
    return str(caught.value)


@pytest.mark.parametrize(
    ("state", "kind", "problem", "requests"),
    [
        ({"statuses": [404]}, DumpNotFoundError, "404", 1),
        ({"statuses": [401]}, DumpError, "401", 1),
        ({"statuses": [403]}, DumpError, "403", 1),
        ({"statuses": [429]}, DumpError, "429", 5),
        ({"statuses": [503]}, DumpError, "503", 5),
        ({"statuses": [302]}, DumpError, "redirects endlessly", None),
        ({"whole": True}, DumpError, "ranges", 1),
        ({"content": b""}, DumpError, "empty", None),
        *(({"change_after": count}, ChangedDumpError, "changed", None) for count in (1, 3, 6)),
    ],
    ids=str,
)
def test_unusable_answers(
    state: dict[str, Any],
    kind: type[DumpError],
    problem: str,
    requests: int | None,
    server: RangeServer,
    tmp_path: Path,
) -> None:
    server.content = large_archive()
    for name, value in state.items():
        setattr(server, name, value)
    assert problem in message(kind, server, tmp_path)
    if requests is None:
        return
    assert requests == server.requests
    result = run("tables", server.url("tea.7z"), tmp_path / "out", code=1)
    assert result.stderr.count(server.url("tea.7z")) == 1


def test_a_small_file_from_a_server_without_ranges(server: RangeServer) -> None:
    server.whole, server.content = True, b"<posts/>"
    with storage.open_file(server.url("Posts.xml")) as file:
        assert file.read() == b"<posts/>"


def test_a_lost_connection_continues_behind_its_last_byte(server: RangeServer) -> None:
    server.content = random.Random(4).randbytes(1_000_000)
    with storage.open_file(server.url("a")) as file:
        server.drops = 3
        assert file.read() == server.content
    # A retry fetches only the missing part of a range.
    assert server.sent < 1_100_000


def test_a_connection_lost_repeatedly(server: RangeServer, tmp_path: Path) -> None:
    server.content = large_archive()
    file = storage.open_file(server.url("tea.7z"))
    server.drops = 1_000
    file.seek(1_000_000)
    with file, pytest.raises(DumpError, match="lost at byte 1,") as caught:
        file.read(1_000_000)
    assert caught.value.path == server.url("tea.7z")
    assert caught.value.advice
    assert "IncompleteRead" not in message(DumpError, server, tmp_path)


def test_no_server(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/tea.7z"
    with pytest.raises(DumpError, match="no answer from 127") as caught:
        so2docs.tables(url, tmp_path / "out")
    assert "urllib3" not in str(caught.value)
    assert "object at" not in str(caught.value)


def test_a_shrinking_file(server: RangeServer) -> None:
    with storage.open_file(server.url("a")) as file:
        server.content = server.content[:5_000]
        file.seek(50_000)
        with pytest.raises(ChangedDumpError):
            file.read(10)


def answer(head: str, body: bytes = b"") -> bytes:
    """Make a response of a server, from its status and headers."""
    lines = head.replace("\n", "\r\n")
    return f"HTTP/1.1 {lines}\r\nConnection: close\r\n\r\n".encode() + body


def test_small_files_sent_whole(server: RangeServer) -> None:
    server.raw = [answer("200 OK\nContent-Length: 8, 8", b"<posts/>")]
    with storage.open_file(server.url("Posts.xml")) as file:
        assert file.read() == b"<posts/>"


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize(
    ("head", "problem"),
    [
        ("200 OK\nContent-Length: abc", "in parts"),
        ("200 OK\nContent-Length: 15, 16", "invalid"),
        (f"200 OK\nContent-Length: {'9' * 5000}", "in parts"),
        (f"206 Partial Content\nContent-Range: bytes 0-9/{'9' * 5000}", "in parts"),
        ("416 Range Not Satisfiable\nContent-Range: bytes */90000", "although the file has 90,000"),
        ("416 Range Not Satisfiable", "answers 416"),
        (
            "206 Partial Content\nContent-Range: bytes 0-9/90\nContent-Encoding: gzip",
            "compresses its answers .Content-Encoding: gzip",
        ),
        (
            "206 Partial Content\nContent-Type: multipart/byteranges; boundary=x",
            "sends multipart/byteranges without a range",
        ),
        ("206 Partial Content\nContent-Range: bytes 5-9/90", "sends another range than asked for"),
        ("407 Proxy Authentication Required", "the proxy needs a login"),
        ("302 Found\nLocation: http://[::1/x", "redirects"),
        ("302 Found\nLocation: ftp://127.0.0.1/x", "redirects"),
        ("503 Busy\nRetry-After: 86400", "asks to wait 24.0 hours"),
    ],
)
def test_empty_responses(head: str, problem: str, server: RangeServer) -> None:
    server.raw = [answer(head)]
    with pytest.raises(DumpError, match=problem):
        storage.open_file(server.url("a"))
    gc.collect()  # urllib3 leaves the sockets of some of these answers open.
    assert server.requests == 1


@pytest.mark.parametrize("size", [0, 90_000])
def test_the_size_after_416_for_an_empty_file(size: int, server: RangeServer) -> None:
    refused = answer("416 Range Not Satisfiable\nContent-Range: bytes */0")
    server.raw = [refused, answer(f"200 OK\nContent-Length: {size}")]
    with pytest.raises(DumpError, match="although the file has 90,000") if size else nullcontext():
        assert storage.open_file(server.url("a")).read() == b""


def test_416_in_the_middle_of_a_file(server: RangeServer) -> None:
    with storage.open_file(server.url("a")) as file:
        size = len(server.content)
        refused = f"416 Range Not Satisfiable\nContent-Range: bytes */{size}"
        server.raw = [answer(refused, bytes(size))]
        file.seek(50_000)
        with pytest.raises(DumpError, match="answers 416, although"):
            file.read(10)


@pytest.mark.parametrize("url", ["http://[::1/a", "http://127.0.0.1:99999/a"])
def test_invalid_urls(url: str) -> None:
    with pytest.raises(DumpError, match="not a valid URL"):
        storage.open_file(url)


@pytest.mark.parametrize(
    ("proxy", "problem"),
    [
        ("127.0.0.1:9", "the proxy on the way to dump.invalid fails .*refused"),
        ("socks5h://user:secret@127.0.0.1:9", "http_proxy is socks5h://127.0.0.1:9, but only"),
    ],
)
def test_a_proxy_that_cannot_be_used(
    proxy: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setattr(remote, "backoff_seconds", 0)
    with pytest.raises(so2docs.So2docsError, match=problem):
        storage.open_file("http://dump.invalid/Posts.xml")


def test_waits_as_long_as_a_busy_server_asks(
    server: RangeServer, caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("1", "soon", "Wed, 21 Oct 2015 07:28:00 GMT"):
        server.raw += [answer(f"429 Too Many Requests\nRetry-After: {text}")]
    with storage.open_file(server.url("a")) as file:
        assert file.read(5) == server.content[:5]
    assert [record.getMessage() for record in caplog.records] == [
        f"{server.url('a')}: 127.0.0.1 asks to wait 1 s"
    ]


@pytest.mark.parametrize("status", [403, 404])
def test_a_mirror_without_the_file(status: int, server: RangeServer, tmp_path: Path) -> None:
    server.statuses = [302, status, 302, status, 302, 206]
    with storage.open_file(server.url("tea.7z")) as file:
        assert file.read() == server.content
    server.statuses = [302, status] * 3 + [206]
    refusal = message(DumpError, server, tmp_path)
    assert f"{status}" in refusal
    assert f"after a redirect to {server.url('moved/tea.7z')}, 3 times" in refusal
    assert server.statuses == [206]


def test_requests_name_the_program_and_send_the_password(server: RangeServer) -> None:
    with (
        serving(POSTS) as mirror,
        storage.open_file(server.url("a").replace("//", "//user:p%40ss@")),
    ):
        server.raw = [answer(f"302 Found\nLocation: {mirror.url('a')}")]
        storage.open_file(server.url("a").replace("//", "//user:p%40ss@")).close()
    for head in server.heads:
        assert head["User-Agent"] == f"so2docs/{so2docs.__version__}"
        assert base64.b64decode(head["Authorization"].removeprefix("Basic ")) == b"user:p@ss"
    assert [head.get("Authorization") for head in mirror.heads] == [None]


def test_secrets_of_urls_are_not_published(server: RangeServer, tmp_path: Path) -> None:
    server.content = archive({"Posts.xml": POSTS, "Tags.xml": TAGS})
    plain = server.url("tea.stackexchange.com.7z")
    one, two = (plain.replace("//", f"//u:SECRET{n}@") + f"?sig=SECRET{n}" for n in (1, 2))
    said = ""
    for command in (
        ["convert", one, tmp_path / "q.jsonl", "--report", tmp_path / "r.json"],
        ["convert", two, tmp_path / "q.jsonl"],
        ["convert", one, "--output-dir", tmp_path / "all", "--report", tmp_path / "all.json"],
        ["tables", one, tmp_path / "tables"],
        ["tables", two, tmp_path / "tables"],
        ["tables", one, "-", "--only", "tags", "--format", "csv"],
        ["convert", one, tmp_path / "qa.jsonl", "--recipe", "qa"],
        ["convert", one, tmp_path / "q.parquet"],
        ["sqlite", one, tmp_path / "q.db"],
        ["sqlite", two, tmp_path / "q.db", "--update"],
        ["inspect", one],
        ["inspect", one, "--json"],
    ):
        result = run(*command, code=0)
        said += result.stdout + result.stderr
    assert (tmp_path / "all" / "tea.stackexchange.com.jsonl.gz").exists()
    server.statuses = [404]
    said += "".join(
        run(name, one, tmp_path / "x").stderr
        for name in (
            "convert",
            "tables",
            "inspect",
            "sqlite",
            "diff",
            "show",
            "card",
            "serve",
            "mcp",
        )
    )
    files = b"".join(unpacked(path) for path in tmp_path.rglob("*") if path.is_file())
    assert plain in said
    assert b"tea.stackexchange.com.7z" in files
    assert b"SECRET" not in said.encode() + files


@pytest.mark.parametrize("answers", ["", "a.7z?sig"])
def test_a_card_of_a_url_is_refused_before_fetching(
    answers: str, server: RangeServer, tmp_path: Path
) -> None:
    tables = {"comments": server.url(answers)} if answers else None
    source = tmp_path / "Posts.xml" if answers else server.url("Posts.xml")
    (tmp_path / "Posts.xml").write_bytes(POSTS)
    with pytest.raises(so2docs.OptionError, match="SHA-256"):
        so2docs.convert(source, tmp_path / "q.jsonl", card=True, nest="comments", tables=tables)
    assert server.requests == 0


def test_commands_on_outputs_refuse_urls(server: RangeServer) -> None:
    result = run("show", server.url("q.jsonl.gz"), "1", code=1)
    assert "is a URL, but outputs are read from files; download it" in result.stderr
