"""`so2docs serve` without a browser: pages, safety, refusals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.command import run, start
from support.messages import heard
from support.places import SAMPLES
from support.serve_site import (
    ATTACKS,
    HEADERS,
    HOST,
    asked,
    hostile,
    listed,
    make,
    make_database,
)

import so2docs
from so2docs.extensions.serve.app import bind
from so2docs.extensions.serve.opening import cached, open_stores
from so2docs.extensions.serve.query import make_matcher, parse, snippet


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with asked(make(tmp_path_factory.mktemp("serve"))) as http_client:
        yield http_client


PAGES = {
    "/questions/tagged/c++": ["Links &amp; &lt;images&gt;", "1 question<"],
    "/questions/tagged/bread+c++": ["1 question<", 'href="/questions?tag=c%2B%2B"'],
    "/questions/tagged/c%2B%2B+bread": ["1 question<", "Links &amp; &lt;images&gt;"],
    "/questions/1/any-title": ["Why does my sourdough"],
    "/static/reader.css": [".k,"],
}  # fmt: skip


def test_pages(client: Any) -> None:
    for path, texts in PAGES.items():
        answer = client.get(path)
        assert answer.status_code == 200
        for text in texts:
            assert text in answer.text, path


def test_every_post_has_an_address(client: Any) -> None:
    for path, to in (
        ("/a/5", "/questions/1#answer-5"),
        ("/q/1", "/questions/1"),
        ("/q/1/55", "/questions/1"),
        ("/a/5/55", "/questions/1#answer-5"),
        ("/posts/5", "/questions/1#answer-5"),
        ("/questions/1/slug/5", "/questions/1#answer-5"),
        ("/questions/1/slug/424242", "/questions/1"),
        ("/unanswered", "/questions?unanswered=1"),
        ("/questions/5", "/questions/1#answer-5"),
        ("/a/1", "/questions/1"),
    ):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (302, to)


def test_every_answer_has_the_headers(client: Any) -> None:
    for path, status in (
        ("/questions/424242", 404),
        ("/a/424242", 404),
        ("/nothing", 404),
        ("/questions?sort=size", 400),
        ("/tags/bread/info", 200),
        ("/questions/tagged/" + "a+b" * 300, 200),
        ("/questions?page=-4", 200),
        ("/questions?page=x", 200),
        ("/questions?page=99999", 200),
        ("/questions?tag=%00%ff", 200),
        ("/static/../app.py", 404),
        ("/static/%2e%2e/app.py", 404),
        ("/a/" + "9" * 5_000, 404),
        ("/users/" + "9" * 5_000, 404),
        ("/questions/" + "9" * 19, 404),
        ("/users/-" + "9" * 18, 404),
        ("/users?sort=size", 400),
        ("/questions/1?sort=size", 400),
        ("/a/1", 302),
    ):
        answer = client.get(path)
        assert answer.status_code == status, path
        assert set(HEADERS) <= set(answer.headers)
        assert "Traceback" not in answer.text


def test_images_are_loaded_only_when_asked(client: Any) -> None:
    without, with_images = client.get("/questions/900"), client.get("/questions/900?images=1")
    assert "<img" not in without.text
    assert 'class="image"' in without.text
    assert "img-src 'self';" in without.headers["content-security-policy"]
    assert '<img src="https://i.stack.imgur.com/loaf.png" alt="A flat loaf"' in with_images.text
    assert "img-src 'self' https: http:;" in with_images.headers["content-security-policy"]


def test_every_response_forbids_other_resources(client: Any) -> None:
    headers = client.get("/static/reader.js").headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    for path in ("/", "/questions/900", "/search?q=bread", "/tags"):
        page = client.get(path).text
        assert not re.search(r"<[^>]+\s(?:style|on\w+)=", page)
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//', page)
        assert "<style" not in page


def test_only_this_machine_is_answered(client: Any) -> None:
    for name, status in (("127.0.0.1:1", 200), ("localhost", 200), ("evil.example", 400)):
        assert client.get("/questions/1", headers={"host": name}).status_code == status


def test_nothing_hostile_gets_through_as_markup(tmp_path: Path) -> None:
    make_database(hostile(), tmp_path / "hostile.db", site=HOST)
    with asked(tmp_path / "hostile.db") as client:
        pages = [f"/questions/{number}{end}" for number in range(1, len(ATTACKS) + 1)
                 for end in ("", "?images=1")]  # fmt: skip
        pages += [f"/users/{number}" for number in range(1, len(ATTACKS) + 1)]
        for path in [*pages, "/", "/questions", "/tags", "/search?q=hostile", "/search?q=ran"]:
            page = client.get(path).text
            tags = re.findall(r"<[a-zA-Z][^>]*>", page)
            for tag in tags:
                assert not re.match(
                    r"<(?:iframe|object|embed|style|base|meta http|form action=.j)", tag, re.I
                ), tag
                # Elements that the reader itself makes from formulas.
                if tag.startswith("<math"):
                    assert re.fullmatch(r'<math(?: display="block")?>', tag), tag
                assert not re.search(r"\son\w+\s*=", re.sub(r'"[^"]*"', '""', tag)), tag
                assert not re.search(r'(?:href|src)="\s*(?:javascript|data|vbscript)', tag, re.I)
            assert page.count("<script") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"hot stone', {"required": ['"hot stone"']}),
        ("-[a] or [b]", {"values": {"v0": "a", "v1": "b"}}),
        ("[a] or [b c]", {"values": {"v0": "a"}, "plain": ["b", "c"]}),
        ("user:-1", {"values": {"v0": -1}, "has_owner": True}),
        ("bread -title:rye body:oven", {
            "plain": ["bread"], "required": ['Body : "oven"'], "unwanted": ['Title : "rye"']}),
        ("a " + " ".join(f"w{n}" for n in range(40)), {
            "plain": ["a", *(f"w{n}" for n in range(31))],
            "problems": ["only the first 32 words were searched for"]}),
        ('say""quotes OR', {"plain": ["say", "quotes", "OR"]}),
        ("NEAR(a ord2:x", {"plain": ["NEAR(a", "ord2:x"]}),
        ("don't c++ -> --force", {"plain": ["don't", "c++", "--force"]}),
        ("-only", {"problems": ["to exclude words, also give words to search for"]}),
        ("??? --- * [ ] & -", {"is_empty": True}),
    ],
)  # fmt: skip
def test_parses_queries(text: str, expected: dict[str, Any]) -> None:
    query = parse(text)
    assert {name: getattr(query, name) for name in expected} == expected
    for name in ("plain", "required", "unwanted", "problems"):
        assert name in expected or not getattr(query, name)


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("Señor Ñandú, the señora", ["senor"], "<Señor> Ñandú, the señora"),
        ("rye bread_flour", ["bread rye"], "<rye> <bread>_flour"),
        ("fermented, unfermented", ["ferment*"], "<fermented>, unfermented"),
        ("a " * 50 + "hot and dry hot stone here", ["hot", "stone"],
         "… a a a a <hot> and dry <hot> <stone> here"),
        ("hot " + "a " * 50 + "cold", ["hot"], "<hot> " + "a " * 34 + "a …"),
        ("nothing", ["x"], "nothing"),
        ("", ["x"], ""),
    ],
)  # fmt: skip
def test_the_part_with_most_of_the_words(text: str, words: list[str], expected: str) -> None:
    actual = snippet(text, make_matcher(words, str))
    assert actual.replace("\x02", "<").replace("\x03", ">") == expected


def test_no_text_breaks_the_search(client: Any) -> None:
    for text in (
        *ATTACKS,
        '"',
        "''",
        "NEAR(",
        "a AND",
        "Title:",
        "*",
        "{a}",
        "^x",
        "a:b",
        "😀",
        "\0",
    ):
        assert client.get("/search", params={"q": text}).status_code == 200


def test_very_many_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rarest words are used; if a single word is too frequent, the latest posts are ranked."""
    monkeypatch.setattr("so2docs.extensions.serve.store._RANKED", 10)
    questions = [
        {"Id": n, "Title": "rare" if n == 3 else "plain", "Body": "<p>common</p>", "Answers": []}
        for n in range(1, 31)
    ]
    make_database(questions, tmp_path / "q.db")
    with asked(tmp_path / "q.db") as client:
        page = client.get("/search?q=common").text
        assert listed(page) == list(range(30, 20, -1))
        assert "Very many posts match" in page
        assert listed(client.get("/search?q=common+rare").text) == [3]


def test_a_folder_of_databases(tmp_path: Path) -> None:
    """Damaged databases are named in a message."""
    for name in ("posts", "grouped"):
        site = f"{name}.stackexchange.com"
        so2docs.to_sqlite(SAMPLES / f"{name}.xml", tmp_path / f"{site}.db", site=site, only="posts")
    (tmp_path / "search").write_bytes((SAMPLES / "posts.xml").read_bytes())
    so2docs.to_sqlite(tmp_path / "search", tmp_path / "unnamed.db", only="posts")
    (tmp_path / "broken.db").write_bytes(b"x")
    (tmp_path / "notes.txt").write_text("nothing to serve")
    with heard() as messages, asked(tmp_path) as client:
        sites = re.findall(r'<li><a href="(/[^"]+/)"', client.get("/").text)
        # The server uses the path of the last one itself.
        assert sites == ["/grouped.stackexchange.com/", "/posts.stackexchange.com/", "/search-/"]
    (broken,) = [line for line in messages if "are served" in line]
    assert "broken.db" in broken
    (tmp_path / "empty").mkdir()
    with pytest.raises(so2docs.DumpError, match="empty"):
        open_stores([str(tmp_path / "empty")])


def test_the_database_of_a_dump_is_made_once_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("a", "b"):  # The same name in two folders.
        run("sample", tmp_path / name, code=0)
        dump = tmp_path / name / "sample.stackexchange.com.7z"
        before = sorted(dump.parent.iterdir())
        with heard() as messages:
            for _ in range(2):
                for store in open_stores([str(dump)]).values():
                    store.close()
        assert sorted(dump.parent.iterdir()) == before
        (made,) = [message for message in messages if "making the database" in message]
        assert f"making the database {tmp_path / 'cache' / 'so2docs'}{os.sep}sample." in made
    assert len(list((tmp_path / "cache" / "so2docs").glob("*.db"))) == 2


@pytest.mark.parametrize("cache", ["", "relative"])
def test_the_cache_without_a_home(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "system"))
    assert cached("Posts.xml").startswith(str(tmp_path / "system" / "so2docs"))
    assert [path.name for path in tmp_path.iterdir()] == ["system"]
    monkeypatch.setenv("XDG_CACHE_HOME", __file__)
    with pytest.raises(so2docs.OutputError, match="set XDG_CACHE_HOME to another folder"):
        cached("Posts.xml")


@pytest.mark.long
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_command_serves_this_machine_alone_and_ends_with_ctrl_c(
    host: str, tmp_path: Path
) -> None:
    try:
        bind(host, 0).close()
    except so2docs.So2docsError:
        pytest.skip(f"this machine has no {host}")
    arguments = ("serve", make(tmp_path), "--bind", host, "--port", 0)
    process = start(*arguments, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        [address] = re.findall(r"serving (http://(?:127\.0\.0\.1|\[::1\]):\d+/)",
                               process.stderr.readline())  # fmt: skip
        for name, status in (("evil.example", 400), ("localhost", 200)):
            answer = httpx.get(f"{address}about", headers={"host": name}, timeout=60)
            assert answer.status_code == status
            assert "content-security-policy" in answer.headers
        listening = Path("/proc/net/tcp")
        if listening.exists() and host == "127.0.0.1":
            port = int(address.rpartition(":")[2].strip("/"))
            assert f"0100007F:{port:04X} 00000000:0000 0A" in listening.read_text()
    finally:
        process.send_signal(signal.SIGINT)
        rest = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert rest.strip() == "so2docs: interrupted; no longer serving"


def test_user_names_link_only_to_existing_pages(tmp_path: Path) -> None:
    """A user who only commented has no page in a database without users."""
    path = tmp_path / "q.db"
    so2docs.to_sqlite(SAMPLES / "site", path, only="posts,comments", jobs=1)
    with asked(path) as client:
        numbers = listed(client.get("/questions").text)
        pages = [client.get(f"/questions/{number}").text for number in numbers]
        people = {address for page in pages for address in re.findall(r'"(/users/-?\d+)"', page)}
        assert "user 8" in "".join(pages)
        assert people
        assert {client.get(address).status_code for address in people} == {200}
        assert "Users.xml" in client.get("/users").text
        assert 'href="/users"' not in client.get("/").text
