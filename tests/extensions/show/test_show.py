"""`so2docs show`: JSON lines for a pipe, a readable page for a terminal."""

import gzip
import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from click import unstyle
from support.command import run, start
from support.places import SAMPLES

import so2docs
from so2docs.extensions.show.page import as_page, as_text


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("show") / "questions.jsonl.gz"
    so2docs.convert(SAMPLES / "posts.xml", path, jobs=1)
    return path


def test_json_lines_for_a_pipe(output: Path) -> None:
    expected = (SAMPLES / "posts.jsonl").read_text(encoding="utf-8").splitlines()
    by_id = {json.loads(line)["Id"]: line for line in expected}
    result = run("show", output, *reversed(by_id))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.splitlines() == list(reversed(by_id.values()))


def test_a_page_for_people(output: Path) -> None:
    result = run("show", "--text", output, 1, 3)
    assert (result.returncode, result.stderr) == (0, "")
    first, second = result.stdout.split("\n\n\n", 1)
    assert first.splitlines()[0] == "Why does my sourdough rise overnight but collapse in the oven?"
    assert "question 1 · score 23 · 1,840 views · asked 2024-01-08 06:52 · by user 11" in first
    assert "[bread] [sourdough] [fermentation]" in first
    assert "- 11 hours at 24" in first
    assert "── 2 answers ─" in first
    assert "\nanswer 4 · score 9" in first
    assert "\n✔ accepted · answer 5 · score 31" in first
    assert "question 3 " in second
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize("form", ["--json", "--text"])
def test_unknown_ids_are_an_error_but_the_others_are_shown(form: str, output: Path) -> None:
    result = run("show", form, output, -7, 1, 99, code=1)
    assert "sourdough" in result.stdout
    assert "sourdough" not in result.stderr
    lines = result.stderr.splitlines()
    assert lines == [f"so2docs: {output}: has no question or answer {n}" for n in (-7, 99)]


def test_a_missing_index_is_made_with_a_message(output: Path) -> None:
    index = output.with_name(f".{output.name}.index")
    index.unlink()
    result = run("show", output, 1, code=0)
    assert result.stderr.startswith(f"so2docs: {output}: there is no index next to it")
    assert json.loads(result.stdout)["Id"] == 1
    assert index.exists()
    assert run("show", output, 1).stderr == ""


def test_the_page_of_an_empty_document() -> None:
    assert as_page({"Id": 4}).splitlines()[0] == "\x1b[1mQuestion 4\x1b[0m"
    assert "0 answers" in as_page({"Id": 4, "Answers": []})
    assert "1 answer " in as_page({"Id": 4, "Score": "many", "Answers": [{"Id": 5}]})


WORDS = "word " * 9
BODIES = {
    "": "",
    "<p>one\n two</p>\n\n<p>three</p>": "one\ntwo\n\nthree",
    f"<p>{WORDS}</p>": f"{'word ' * 8}\nword",
    f"<ul><li>a<ol><li>{WORDS}</li></ol></li></ul>": f"- a\n  1. {'word ' * 7}\n     word word",
    f"<blockquote><p>{WORDS}</p></blockquote>": f"> {'word ' * 7}\n> word word",
    f"<pre><code>{WORDS}\n</code></pre><p>{WORDS}</p>": f"```\n{WORDS}\n```\n\n{'word ' * 8}\nword",
    f"<table><tr><th>a</th></tr><tr><td>{WORDS}</td></tr></table>": f"| a |\n| --- |\n| {WORDS}|",
    "a &lt; b &#7;": "a < b",
}


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_text_of_a_body(body: str) -> None:
    lines = as_text(body, width=40).splitlines()
    assert [line.rstrip() for line in lines] == [x.rstrip() for x in BODIES[body].splitlines()]


@pytest.mark.parametrize("sign", ["\x1b[2J", "\x9b2J", "\x07", "\u202e", "&#x1b;[2J", "&#7;"])
def test_no_control_characters_reach_the_terminal(sign: str) -> None:
    question = {"Id": 1, "Title": sign, "Tags": [sign], "Body": f"<p>{sign}</p>"}
    question |= {"OwnerDisplayName": sign, "CreationDate": sign}
    question |= {"Answers": [{"Id": sign, "Body": sign, "ClosedDate": sign}]}
    page = as_page(question)
    for styled in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[36m"):
        page = page.replace(styled, "")
    assert not any(ord(character) < 32 and character != "\n" for character in page)
    assert not set(page) & {"\x9b", "\x7f", "\u202e"}


def test_every_post_of_the_published_dumps_has_a_page(real_dump: Path) -> None:
    for question in so2docs.documents(real_dump, jobs=1):
        page = as_page(question)
        assert page.count("answer ") >= len(question["Answers"])


def test_the_id_of_an_answer_shows_its_question(output: Path) -> None:
    questions = [json.loads(line) for line in gzip.decompress(output.read_bytes()).splitlines()]
    for question in questions:
        for answer in question["Answers"]:
            result = run("show", "--json", output, answer["Id"])
            assert (result.returncode, result.stderr) == (0, "")
            assert json.loads(result.stdout) == question


def test_questions_of_answers_in_many_pieces(tmp_path: Path) -> None:
    output = tmp_path / "q.jsonl"
    questions = [
        {"Id": 10 * n, "Body": f'"Id":{10 * n + 1},' * 9000, "Answers": [{"Id": (70 * n) % 997}]}
        for n in range(1, 30)
    ]
    output.write_text("".join(json.dumps(question) + "\n" for question in questions))
    with so2docs.open(output) as docs:
        assert docs.index.count > 2
        for question in questions:
            (answer,) = question["Answers"]
            assert docs.find_question_id(answer["Id"]) == question["Id"]
        assert docs.find_question_id(11) is None
        assert docs.find_question_id(999) is None


def test_page_with_tables(samples: Path) -> None:
    questions = list(so2docs.documents(samples / "site", nest="all"))
    page = unstyle(as_page(questions[0], 60))
    assert "by Ada" in page
    assert "UpMod 2" in page
    assert "  user77 · score 5 · 2024-03-01 08:05" in page
    assert "and <i>since when</i>?" in page
    assert '  Zoë "the <b> key" · 2024-03-01 08:10' in page
    assert "  Vinegar worked, thank you!" in page
    links = [link for question in questions for link in question["Links"]]
    for question in questions:
        page_text = unstyle(as_page(question))
        for link in question["Links"]:
            assert f"  {link['LinkType']}: {link['RelatedPostId']}" in page_text
    assert links


@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("is_styled", [True, False])
def test_on_a_terminal(is_styled: bool, output: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "PYTHONUTF8": "1", "TERM": "xterm"}
    environment |= {} if is_styled else {"NO_COLOR": "1"}
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with start("show", output, 1, **streams, env=environment) as running:
        os.close(theirs)
        output_bytes = b""
        with suppress(OSError):  # The error of Linux at the end of the terminal.
            while data := os.read(ours, 65536):
                output_bytes += data
        assert running.wait(timeout=60) == 0
    os.close(ours)
    assert b"sourdough" in output_bytes
    assert (b"\x1b[1m" in output_bytes) == is_styled
