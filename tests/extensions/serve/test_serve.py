"""`so2docs serve` without a browser: pages, safety, refusals."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.command import run, start
from support.dumps import question, row, write_dump
from support.messages import heard
from support.places import SAMPLES
from support.serve_site import ATTACKS, HOST, asked, documents, hostile, make

import so2docs
from so2docs.extensions.serve.app import bind
from so2docs.extensions.serve.opening import open_stores
from so2docs.extensions.serve.query import make_matcher, parse, snippet
from so2docs.extensions.serve.store import Store


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with asked(make(tmp_path_factory.mktemp("serve"))) as http_client:
        yield http_client


PAGES = {
    "/": ["Why does my sourdough", "<dd>10</dd>", "Most frequent tags", "<svg"],
    "/questions": ["Links &amp; &lt;images&gt;", "tag=bread"],
    "/questions?tag=bread": ["Why does my sourdough", "2 questions"],
    "/questions/tagged/c++": ["Links &amp; &lt;images&gt;", "1 question<"],
    "/questions/tagged/bread+c++": ["1 question<", 'href="/questions?tag=c%2B%2B"'],
    "/questions/tagged/c%2B%2B+bread": ["1 question<", "Links &amp; &lt;images&gt;"],
    "/questions?year=2024": ["Questions of 2024", "Why does my sourdough"],
    "/questions?unanswered=1": ["Links &amp; &lt;images&gt;"],
    "/tags": ["sourdough"],
    "/tags?like=ferm": ["fermentation"],
    "/search": ["How to search"],
    "/search?q=hot+stone": ["<mark>hot</mark>", "<mark>stone</mark>"],
    "/search?q=%5Bbread%5D": ["Why does my sourdough"],
    "/search?q=user:14": ["Links &amp; &lt;images&gt;"],
    "/questions/1": ["Léo Brun", "<code>autolyse</code>", "accepted", "CC BY-SA 4.0",
                     f'href="https://{HOST}/q/1"', "&lt;b&gt;that&lt;/b&gt;", "1,204"],
    "/questions/1/any-title": ["Why does my sourdough"],
}  # fmt: skip


def test_pages(client: Any) -> None:
    for path, texts in PAGES.items():
        answer = client.get(path)
        assert answer.status_code == 200
        for text in texts:
            assert text in answer.text, path


def test_every_question_is_its_document_as_json(client: Any) -> None:
    for document in documents():
        assert client.get(f"/questions/{document['Id']}.json").json() == document


def test_every_list_is_json_as_well(client: Any) -> None:
    for path in ("/index", "/questions", "/tags", "/search"):
        answer = client.get(f"{path}.json?q=sourdough")
        assert answer.headers["content-type"] == "application/json"
        assert "sourdough" in answer.text
        assert "\\u0002" not in answer.text


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


def test_addresses_of_nothing(client: Any) -> None:
    for path, status in (
        ("/questions/424242", 404),
        ("/a/424242", 404),
        ("/questions/99999999999999999999999", 404),
        ("/nothing", 404),
        ("/questions?sort=size", 400),
        ("/tags/bread/info", 200),
        ("/questions/tagged/" + "a+b" * 300, 200),
        ("/questions?year=202", 404),
        ("/questions?year=%27%00", 404),
        ("/questions?page=-4", 200),
        ("/questions?page=x", 200),
        ("/questions?page=99999", 200),
        ("/questions?tag=%00%ff", 200),
        ("/static/../app.py", 404),
        ("/static/%2e%2e/app.py", 404),
    ):
        answer = client.get(path)
        assert answer.status_code == status, path
        assert "Traceback" not in answer.text


def test_code_is_highlighted(client: Any) -> None:
    page = client.get("/questions/900").text
    assert '<span class="k">def</span>' in page
    assert ".k," in client.get("/static/reader.css").text


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
        assert client.get("/questions/1.json", headers={"host": name}).status_code == status


def test_a_database_damaged_while_served(tmp_path: Path) -> None:
    path = make(tmp_path)
    with asked(path) as client:
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(8192)
            file.write(b"\xff" * (size - 8192))
        answer = client.get("/questions/1")
        assert answer.status_code == 500
        assert "The database cannot be read" in answer.text


def test_nothing_hostile_gets_through_as_markup(tmp_path: Path) -> None:
    so2docs.to_sqlite(hostile(), tmp_path / "hostile.db", site=HOST)
    with asked(tmp_path / "hostile.db") as client:
        pages = [f"/questions/{number}{end}" for number in range(1, len(ATTACKS) + 1)
                 for end in ("", "?images=1")]  # fmt: skip
        pages += [f"/posts/{number}/revisions" for number in range(1, len(ATTACKS) + 1)]
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


def test_the_state_of_a_question(client: Any) -> None:
    page = text_of_page(client.get("/questions/901").text)
    assert (
        "Closed 2024-05-13 as Duplicate of Why does my sourdough rise overnight but collapse in "
        "the oven?, Question 424242" in page
    )
    assert "2 revisions" in page
    page = text_of_page(client.get("/questions/1").text)
    assert "Needs more focus" not in page  # The question was reopened.
    assert "bounty of 50 by Ada 1,204, 2024-05-09" in page
    page = client.get("/posts/901/revisions").text
    assert "by Léo Brun, Zoë" in text_of_page(page)
    assert 'href="/users/99"' not in page  # There is no such user.
    page = client.get("/posts/1/revisions").text
    assert '<a rel="noopener noreferrer nofollow" href="/questions/3">' in page


def test_a_closing_known_only_from_the_question(tmp_path: Path) -> None:
    question = {"Id": 1, "ClosedDate": "2024-01-02T03:04:05.000", "Title": "t", "Answers": []}
    closed = {"Reason": "Too localized", "Date": "2024-02-02T03:04:05.000",
              "OriginalQuestionIds": [1, "x"]}  # fmt: skip
    so2docs.to_sqlite([question, {"Id": 2, "Closed": closed, "Answers": []}], tmp_path / "q.db")
    with asked(tmp_path / "q.db") as client:
        assert "Closed 2024-01-02" in text_of_page(client.get("/questions/1").text)
        page = text_of_page(client.get("/questions/2").text)
        assert "Closed 2024-02-02 as Too localized of t" in page
        assert client.get("/posts/1/revisions").status_code == 404


def test_the_revisions_of_a_post(client: Any) -> None:
    page = client.get("/posts/1/revisions").text
    for text in (
        "<del>My sourdough</del><ins>Why my sourdough</ins>",
        "<del>It is *old*.</del><ins>It is quite *young*.</ins>",
        "<div>Line 8.</div><del>End.</del><ins>The end.</ins>",
        "<ins>sourdough</ins><div>bread</div>",
        "Rollback body</span>",
    ):
        assert text in page
    assert page.count("Line 4.") == 1  # In the first revision.
    revisions = client.get("/posts/1/revisions.json").json()
    assert [row["Number"] for row in revisions["revisions"]] == [8, 7, 6, 5, 4, 3, 2, 1]
    assert revisions["revisions"][-1]["Title"] == "My sourdough"
    assert "entries" in client.get("/posts/4/revisions").text
    missing = client.get("/posts/424242/revisions.json")
    assert (missing.status_code, missing.json()["status"]) == (404, 404)


def test_a_long_history_has_pages(tmp_path: Path) -> None:
    history = [
        {"Id": number, "CreationDate": f"{2000 + number}", "Events": ["EditBody"],
         "Body": f"version {number}"}
        for number in range(1, 46)
    ]  # fmt: skip
    document = {"Id": 1, "History": history, "Answers": []}
    so2docs.to_sqlite([document], tmp_path / "q.db", site="ja.stackoverflow.com")
    with asked(tmp_path / "q.db") as client:
        assert '<main id="main" tabindex="-1" lang="ja">' in client.get("/posts/1/revisions").text
        for page, first, last in ((1, 45, 26), (2, 25, 6), (3, 5, 1)):
            text = client.get(f"/posts/1/revisions?page={page}").text
            assert re.findall(r'id="revision-(\d+)"', text) == [
                str(number) for number in range(first, last - 1, -1)
            ]
            # Compare the last item of a page with the first item of the next page.
            if last > 1:
                assert f"<del>version {last - 1}</del><ins>version {last}</ins>" in text


def text_of_page(page: str) -> str:
    """Return the text of a page, with single spaces."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page)).split())


MOST = (1 << 63) - 1
TAGGED = "{q}.Id IN (SELECT QuestionId FROM question_tags WHERE Tag IN (:v0))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"hot stone', {"required": ['"hot stone"']}),
        ("[Bread] x", {"plain": ["x"], "where": [TAGGED], "values": {"v0": "bread"}}),
        ("-[rye]", {"where": [f"NOT coalesce({TAGGED}, 0)"], "values": {"v0": "rye"}}),
        ("[a] or [b] [c]", {"values": {"v0": "a", "v1": "b", "v2": "c"}}),
        ("-[a] or [b]", {"values": {"v0": "a", "v1": "b"}}),
        ("[a] or [b c]", {"values": {"v0": "a"}, "plain": ["b", "c"]}),
        ("score:5", {"where": ["{p}.Score BETWEEN :v0 AND :v1"], "values": {"v0": 5, "v1": MOST}}),
        ("answers:0", {"values": {"v0": 0, "v1": 0}}),
        ("views:10..20", {"values": {"v0": 10, "v1": 20}}),
        ("score:..3", {"values": {"v0": -MOST - 1, "v1": 3}}),
        ("user:-1", {"where": ["{p}.OwnerUserId = :v0"], "values": {"v0": -1}, "has_owner": True}),
        ("-user:3", {"where": ["NOT coalesce({p}.OwnerUserId = :v0, 0)"], "has_owner": False}),
        ("is:answered", {"where": ["{q}.Answers > 0"]}),
        ("-is:question", {"kinds": {"answer"}}),
        ("is:answer is:question", {"kinds": set()}),
        ("created:2020-05..", {"values": {"v0": "2020-05", "v1": "~"}}),
        ("created:..2021", {"values": {"v0": "", "v1": "2021~"}}),
        ("bread -title:rye body:oven", {
            "plain": ["bread"], "required": ['Body : "oven"'], "unwanted": ['Title : "rye"']}),
        ("a " + " ".join(f"w{n}" for n in range(40)), {
            "plain": ["a", *(f"w{n}" for n in range(31))],
            "problems": ["only the first 32 words were searched for"]}),
        ('say""quotes OR', {"plain": ["say", "quotes", "OR"]}),
        ("NEAR(a ord2:x", {"plain": ["NEAR(a", "ord2:x"]}),
        ("don't c++ -> --force", {"plain": ["don't", "c++", "--force"]}),
        ("score:x", {"problems": ["score:x was not understood"]}),
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


def test_a_database_without_search(tmp_path: Path) -> None:
    so2docs.to_sqlite([{"Id": 1, "Tags": ["a"]}], tmp_path / "q.db", search="none")
    with asked(tmp_path / "q.db") as client:
        assert client.get("/search?q=word").status_code == 404
        assert client.get("/search?q=[a]").status_code == 200


def test_very_many_matches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rarest words are used; if a single word is too frequent, the latest posts are ranked."""
    monkeypatch.setattr("so2docs.extensions.serve.store._RANKED", 10)
    questions = [
        {"Id": n, "Title": "rare" if n == 3 else "plain", "Body": "<p>common</p>", "Answers": []}
        for n in range(1, 31)
    ]
    so2docs.to_sqlite(questions, tmp_path / "q.db")
    with asked(tmp_path / "q.db") as client:
        posts = client.get("/search.json?q=common").json()["posts"]
        assert [post["Id"] for post in posts] == list(range(30, 20, -1))
        assert "Very many posts match" in client.get("/search?q=common").text
        posts = client.get("/search.json?q=common+rare").json()["posts"]
        assert [post["Id"] for post in posts] == [3]


def test_several_sites(tmp_path: Path) -> None:
    outputs = []
    for name in ("posts", "grouped"):
        outputs.append(tmp_path / f"{name}.stackexchange.com.jsonl.gz")
        so2docs.convert(SAMPLES / f"{name}.xml", outputs[-1])
    so2docs.to_sqlite(outputs, tmp_path / "both.db", site_field="Site")
    single = make(tmp_path)
    with asked(tmp_path / "both.db", single) as client:
        front = client.get("/").text
        for name in ("posts", "grouped"):
            base = f"/{name}.stackexchange.com"
            assert f'href="{base}/"' in front
            expected = list(so2docs.read(tmp_path / f"{name}.stackexchange.com.jsonl.gz"))
            for document in expected:
                actual = client.get(f"{base}/questions/{document['Id']}.json").json()
                assert actual == document
            listed = client.get(f"{base}/questions.json").json()["questions"]
            assert len(listed) == len(expected)
            assert client.get(f"{base}/").status_code == 200
        assert client.get("/posts.stackexchange.com/search.json?q=sourdough").json()["posts"]
        assert not client.get("/grouped.stackexchange.com/search.json?q=sourdough").json()["posts"]
        moved = client.get("/posts.stackexchange.com/a/5")
        assert moved.headers["location"] == "/posts.stackexchange.com/questions/1#answer-5"
        assert client.get(f"/{HOST}/questions/900").status_code == 200


def test_a_folder_of_outputs_and_databases(tmp_path: Path) -> None:
    """Damaged outputs are named in a message; the database of an output is not a second site."""
    for name in ("posts", "grouped"):
        site = f"{name}.stackexchange.com"
        so2docs.convert(SAMPLES / f"{name}.xml", tmp_path / f"{site}.jsonl.gz")
    so2docs.to_sqlite(SAMPLES / "posts.jsonl", tmp_path / "other.db", site=HOST)
    (tmp_path / "broken.jsonl.gz").write_bytes(b"\x1f\x8b")
    (tmp_path / "notes.txt").write_text("nothing to serve")
    for _ in range(2):
        with heard() as messages, asked(tmp_path) as client:
            sites = client.get("/index.json").json()
            assert [site["path"] for site in sites] == [
                *("/grouped.stackexchange.com/", "/posts.stackexchange.com/", f"/{HOST}/")
            ]
        (broken,) = [line for line in messages if "are served" in line]
        assert "broken.jsonl.gz" in broken
    (tmp_path / "empty").mkdir()
    with pytest.raises(so2docs.OutputNotFoundError, match="folder without outputs"):
        open_stores([str(tmp_path / "empty")])


def close_all(stores: dict[str, Store]) -> None:
    for store in stores.values():
        store.close()


def test_the_database_of_an_output_is_made_once(tmp_path: Path) -> None:
    output = tmp_path / "posts.jsonl.gz"
    so2docs.convert(SAMPLES / "posts.xml", output)
    with heard() as messages:
        for _ in range(2):
            close_all(open_stores([str(output)]))
    assert len(messages) == 1
    so2docs.convert(SAMPLES / "grouped.xml", output, force=True)
    with heard() as messages:
        close_all(open_stores([str(output)]))
    with asked(output) as client:
        assert "rebuilding it" in messages[0]
        expected = [document["Id"] for document in so2docs.read(output)]
        actual = client.get("/questions.json?sort=oldest").json()["questions"]
        assert [row["Id"] for row in actual] == expected


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
                close_all(open_stores([str(dump)]))
        assert sorted(dump.parent.iterdir()) == before
        (made,) = [message for message in messages if "making the database" in message]
        assert f"making the database {tmp_path / 'cache' / 'so2docs'}{os.sep}sample." in made
    assert len(list((tmp_path / "cache" / "so2docs").glob("*.db"))) == 2
    run("sqlite", dump, dump.with_suffix(".db"), "--nest", "all", "--profiles", dump, code=0)
    with heard() as messages:
        close_all(open_stores([str(dump)]))
    assert messages == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_the_database_of_an_output_that_may_only_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    output = tmp_path / "folder" / "posts.jsonl.gz"
    output.parent.mkdir()
    so2docs.convert(SAMPLES / "posts.xml", output)
    output.parent.chmod(0o555)
    close_all(open_stores([str(output)]))
    output.parent.chmod(0o755)
    assert list((tmp_path / "cache" / "so2docs").glob("posts-*.db"))


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
            answer = httpx.get(f"{address}index.json", headers={"host": name}, timeout=60)
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


def test_rejects_files_other_than_databases(tmp_path: Path) -> None:
    for content, message in (
        (None, "cannot be read: No such file"),
        (b"SQLite format 3\x00", "is not a database of so2docs"),
        (b'[{"Id": 1}]', "is a JSON array"),
    ):
        if content is not None:
            (tmp_path / "x.db").write_bytes(content)
        with pytest.raises(so2docs.So2docsError, match=message):
            open_stores([str(tmp_path / "x.db")])


def test_user_names_link_only_to_existing_pages(tmp_path: Path) -> None:
    """A user who only commented has no page in a database without users."""
    path = tmp_path / "q.jsonl.gz"
    so2docs.convert(SAMPLES / "site", path, nest="comments", jobs=1)
    with so2docs.open(path) as output, asked(path) as client:
        pages = [client.get(f"/questions/{number}").text for number in output]
        people = {address for page in pages for address in re.findall(r'"(/users/-?\d+)"', page)}
        assert "user 8" in "".join(pages)
        assert people
        assert {client.get(address).status_code for address in people} == {200}


def test_related_questions_share_rare_tags_first(tmp_path: Path) -> None:
    tags = {1: "rye|oven", 2: "oven", 3: "oven", 4: "rye", 5: "rye|oven", 6: "salt", 7: "oven"}
    dump = write_dump(
        tmp_path / "Posts.xml",
        *(question(number, Tags=f"|{names}|", Score=number) for number, names in tags.items()),
    )
    links = write_dump(
        tmp_path / "PostLinks.xml", row(Id=1, PostId=1, RelatedPostId=7, LinkTypeId=1)
    )
    so2docs.convert(dump, tmp_path / "q.jsonl", tables={"links": links}, jobs=1)
    with asked(tmp_path / "q.jsonl") as client:
        page, alone = (client.get(f"/questions/{number}").text for number in (1, 6))
    related = page.partition('<h2 id="related">')[2].partition("</aside>")[0]
    assert re.findall(r'"/questions/(\d+)"', related) == ["5", "4", "3", "2"]
    assert "Related questions" not in alone
