"""Recipes as functions, applied to documents nested by the oracle."""

import json
import re
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

import pytest
from support import dumps, oracle_tables
from support.places import CHECKOUT

import so2docs
from so2docs.extensions.json_schema import describe_record
from so2docs.extensions.markdown.conversion import to_markdown
from so2docs.extensions.recipes import threads
from so2docs.extensions.recipes.answers import draw_pairs
from so2docs.extensions.recipes.options import RecipeOptions, choose_recipe
from so2docs.extensions.recipes.passages import Splitter, make_splitter
from so2docs.extensions.recipes.recipe import Recipe
from so2docs.extensions.recipes.records import RecordMaker
from so2docs.options import sites

HOST = "beer.stackexchange.com"
ATTRIBUTED = RecipeOptions(attribution=True).transform
assert ATTRIBUTED is not None
TABLES = {"comments", "links", "users"}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("beer.stackexchange.com", marks=pytest.mark.long),
        "eosio.meta.stackexchange.com",
    ],
)
def questions(
    request: pytest.FixtureRequest, dumps: Path, unpack: Callable[[Path], Path]
) -> list[dict[str, Any]]:
    archive = dumps / "archives" / f"{request.param}.7z"
    return oracle_tables.nest(unpack(archive), TABLES).documents


def maker_of(name: str, **settings: Any) -> RecordMaker:
    return RecordMaker(choose_recipe(name, settings).recipe, HOST)


def made(maker: RecordMaker, *questions: dict[str, Any]) -> list[Any]:
    return [
        json.loads(record)
        for question in questions
        for record in maker.records(question["Id"], json.dumps(question).encode())
    ]


FENCE = re.compile(r"^(`{3,})[^`\n]*\n(?:.*\n)*?\1$", re.MULTILINE)
HEADINGS = re.compile(r"(?:#{1,6} [^\n]*\n*)+")
LINE_OF_FENCE = re.compile(r"[ >]*(?:(?:[-+]|\d+[.)]) +)*[ >]*`{3,}[^`]*")


@dataclass
class Cut:
    """A passage with its range in the text of the post."""

    text: str
    start: int
    end: int


def cuts(text: str, splitter: Splitter) -> list[Cut]:
    """Cut a text into passages, without the fences that were added to them."""
    found = []
    for start, passage in splitter.cut(text):
        lines = passage.split("\n")
        bare = [lines, lines[1:], lines[:-1], lines[1:-1]]
        part = next(p for p in map("\n".join, bare) if p.strip() and text[start:].startswith(p))
        found.append(Cut(passage, start, start + len(part)))
    return found


def is_balanced(passage: str) -> bool:
    fence = ""
    for line in passage.split("\n"):
        if not fence and LINE_OF_FENCE.fullmatch(line):
            fence = "`" * line.count("`")
        elif fence and line.lstrip(" >") == fence:
            fence = ""
    return not fence


def check_cuts(text: str, passages: list[Cut], max_length: int, overlap: int) -> None:
    assert all(0 < len(passage.text) <= max_length for passage in passages)
    covered = {at for passage in passages for at in range(passage.start, passage.end)}
    hidden = {at: "\0" for at in covered if text[at] != "\n"}
    lost = "".join(hidden.get(at, char) for at, char in enumerate(text))
    for line, kept in zip(text.split("\n"), lost.split("\n"), strict=True):
        assert not re.sub(r"[\s\0>]", "", kept) or LINE_OF_FENCE.fullmatch(line), line
    for before, after in pairwise(passages):
        assert before.start < after.start
        # The fence may belong to the text.
        assert after.start >= before.end - overlap - len("\n```")
    for passage in passages:
        assert is_balanced(passage.text)
        is_heading = len(passage.text) < max_length // 2 and HEADINGS.fullmatch(passage.text)
        assert len(passages) == 1 or not is_heading
        assert passage.text.strip("`\n ")
    for fence in FENCE.finditer(text):
        if len(fence[0]) <= max_length - overlap - 2:
            assert any(p.start <= fence.start() and fence.end() <= p.end for p in passages)


@pytest.mark.long
@pytest.mark.parametrize(("max_length", "overlap"), [(200, 0), (400, 100), (2000, 200)])
def test_passages_hold_whole_posts(
    max_length: int, overlap: int, questions: list[dict[str, Any]]
) -> None:
    splitter = Splitter(max_length, overlap, None)
    for question in questions:
        for post in (question, *question["Answers"]):
            text = to_markdown(post["Body"])
            check_cuts(text, cuts(text, splitter), max_length, overlap)


CODE = "```py\n" + "print(1)\n" * 50 + "```"


@pytest.mark.parametrize("overlap", [0, 40])
@pytest.mark.parametrize(
    "text",
    [
        f"before\n\n{CODE}\n\nafter",
        f"# Title\n\n{CODE}",
        "- item\n\n  " + CODE.replace("\n", "\n  "),
        "# One\n\n## Two\n\n" + "A sentence of some words. " * 20,
        "# One\n\n" + "x" * 500,
        f"{CODE}\n{CODE}",
        "```\n" + "y" * 500 + "\n```",
        "word " * 100 + "\n\n## End",
        "",
    ],
)
def test_passages(text: str, overlap: int) -> None:
    check_cuts(text, cuts(text, Splitter(120, overlap, None)), 120, overlap)


def test_overlapping_passages() -> None:
    text = "One two three four. " * 30
    first, second, *_ = cuts(text, Splitter(100, 20, None))
    assert 0 < first.end - second.start <= 20
    first, second, *_ = cuts(text, Splitter(40, 10, "gpt-4o"))
    assert first.end - second.start > 0


@pytest.mark.long
@pytest.mark.parametrize("unit", ["x", "word word\n\n", "```\na\n", "# a\n\n"])
def test_passages_take_linear_time(unit: str) -> None:
    """A megabyte took more than a minute when time was quadratic."""
    text = unit * (500_000 // len(unit))
    assert sum(1 for _ in Splitter(2000, 1900, None).cut(text)) > 200


def test_passages_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "semantic_text_splitter", None)
    make_splitter.cache_clear()
    with pytest.raises(so2docs.OptionError, match=r"pip install 'so2docs\[chunks\]'"):
        choose_recipe("chunks")


def test_a_custom_tokenizer(tmp_path: Path) -> None:
    """The content of the file matters, so resuming with another tokenizer is refused."""
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    tokenizer = tmp_path / "tokenizer.json"
    text = json.dumps({"version": "1.0", "model": model, "pre_tokenizer": {"type": "Whitespace"}})
    tokenizer.write_text(text)
    question = {"Id": 1, "Title": "One two", "Body": "three four five six seven", "Answers": []}
    maker = maker_of("chunks", max_length=3, tokenizer=str(tokenizer))
    texts = [row["text"] for row in made(maker, question)]
    assert texts == ["# One two", "three four five", "six seven"]
    before = threads.identify_tokenizer(str(tokenizer))
    tokenizer.write_text(text + " ")
    assert before != threads.identify_tokenizer(str(tokenizer))
    assert threads.identify_tokenizer("gpt-4o") == "gpt-4o"


@pytest.mark.parametrize(
    ("body", "tags", "expected"),
    [
        ("<p>Do:</p>\n\n<pre><code>a &lt; b\n</code></pre>\n", "", [("Do:", "", "", "a < b")]),
        (
            "<ul>\n<li>One</li>\n<li>Two <em>of</em> 2\n"
            '<pre class="x lang-py s-code"><code>a\n\n  b\n</code></pre></li>\n</ul>',
            "",
            [("Two of 2", "python", "author", "a\n\n  b")],
        ),
        (
            '<pre class="lang-none"><code>a</code></pre>'
            '<pre><code class="language-c++">b</code></pre>',
            "python",
            [("", "", "author", "a"), ("", "c++", "author", "b")],
        ),
        (
            "<p>a</p><pre>\nb<br>c</pre><p>d<br>e</p><PRE>f",
            "",
            [("a", "", "", "b\nc"), ("d e", "", "", "f")],
        ),
        ("<pre><code> \n</code></pre>", "", []),
        ("<pre>x</pre>", "python-3.x beer", [("", "python", "tags", "x")]),
        ("<pre>x</pre>", "python pandas", [("", "python", "tags", "x")]),
        ("<pre>x</pre>", "python java", [("", "", "", "x")]),
        ('<pre class="lang-js">x</pre>', "python", [("", "javascript", "author", "x")]),
        ('<pre class="lang-plutus">x</pre>', "python", [("", "plutus", "author", "x")]),
    ],
)
def test_code_blocks(body: str, tags: str, expected: list[tuple[str, str, str, str]]) -> None:
    question = {"Id": 7, "Body": body, "Tags": tags.split(), "Answers": []}
    rows = made(maker_of("blocks:BLOCKS"), question)
    columns = ("text_before", "language", "language_from", "code")
    assert [tuple(row[column] for column in columns) for row in rows] == expected
    assert [row["id"] for row in rows] == [f"{HOST}-7-{number}" for number in range(len(expected))]


def test_attribution_names_every_editor_in_the_nested_history() -> None:
    written = {"Events": ["EditBody", "SuggestedEditApplied"], "CreationDate": "2012-01-01"}
    history = [
        written | {"UserId": 5, "ProposedBy": 5, "User": {"Id": 5, "DisplayName": "Ada"}},
        written | {"UserId": -1, "User": {"Id": -1, "DisplayName": "Community"}},
        written | {"UserId": 6, "ProposedBy": 8, "UserDisplayName": "not 8"},
        written | {"UserDisplayName": "gone", "ContentLicense": "CC BY-SA 4.0"},
        {"Events": ["PostClosed"], "UserId": 7, "CreationDate": "2019-01-01"},
    ]
    answer = {"Id": 2, "OwnerUserId": 5, "ContentLicense": "CC BY-SA 2.5", "History": history}
    question = {"Id": 1, "OwnerUserId": 4, "Answers": [answer]}
    [record] = made(RecordMaker(ATTRIBUTED, HOST), question)
    ada = f"https://{HOST}/users/5"
    assert record["Authors"] == [
        {"DisplayName": "user4", "Url": f"https://{HOST}/users/4"},
        {"DisplayName": "user5", "Url": ada},
        {"DisplayName": "Ada", "Url": ada},
        {"DisplayName": "user8", "Url": f"https://{HOST}/users/8"},
        {"DisplayName": "gone"},
    ]
    assert record["Licenses"] == ["CC BY-SA 2.5", "CC BY-SA 3.0", "CC BY-SA 4.0"]
    edited, *_, closed = record["Answers"][0]["History"]
    assert (edited["User"]["Url"], edited["ContentLicense"]) == (ada, "CC BY-SA 3.0")
    assert "ContentLicense" not in closed


def test_attribution_replaces_no_attribute() -> None:
    with pytest.raises(so2docs.So2docsError, match="post 5: the dump has an attribute Url, which"):
        list(RecordMaker(ATTRIBUTED, HOST).records(5, b'{"Id":5,"Url":"mine","Answers":[]}'))


def test_pairs_of_a_question_with_very_many_answers() -> None:
    scores = [2] * 10 + [1] * 99_980 + [0] * 10
    drawn = draw_pairs(scores, 5)
    assert len(drawn) == len(set(drawn)) == 10
    assert all(scores[better] > scores[worse] for better, worse in drawn)
    assert draw_pairs(scores, 5) == drawn != draw_pairs(scores, 6)


def test_prompt_and_completion_are_joined_between_two_tokens() -> None:
    """The patterns are those of GPT-2 and GPT-4, with classes of ASCII."""
    answer = {"Id": 2, "Score": 1}
    patterns = (
        r" ?[a-z]+| ?[0-9]+| ?[^\sa-z0-9]+|\s+(?!\S)|\s+",
        r"[^\r\na-z0-9]?[a-z]+|[0-9]{1,3}| ?[^\sa-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    )
    for body in ("It is.", "`code`", "7 days", "```\ncode\n```", "(no)"):
        question = {"Id": 1, "Title": "t", "Body": "b", "Answers": [answer | {"Body": body}]}
        [row] = made(maker_of("qa"), question)
        for pattern in patterns:
            split = re.compile(pattern, re.IGNORECASE).findall
            prompt, completion = row["prompt"], row["completion"]
            assert split(prompt) + split(completion) == split(prompt + completion)


@pytest.mark.parametrize("name", ["beir", "duplicates", "texts:title_body"])
@pytest.mark.parametrize("alt", ["enter image description here", "alt text", "An egg"])
def test_texts_have_no_default_text_of_pictures(name: str, alt: str, tmp_path: Path) -> None:
    body = (
        f'<p>An egg, as you can see:</p><p><img src="https://i.sstatic.net/z.png" alt="{alt}"></p>'
    )
    question = {"Id": 1, "PostTypeId": 1, "Score": 1, "Title": "How long does an egg boil?"}
    question |= {"CreationDate": "2020-01-01T00:00:00.000", "Tags": "<egg>", "Body": body}
    dumps.write_dump(tmp_path / "Posts.xml", dumps.row(**question))
    dumps.write_dump(tmp_path / "PostLinks.xml")
    options: Any = {"recipe": name, "site": HOST, "jobs": 1}
    texts = str(list(so2docs.documents(tmp_path, **options)))
    assert "as you can see:" in texts
    assert (alt in texts) == (alt == "An egg")
    assert alt in str(list(so2docs.documents(tmp_path, body="markdown", **options)))


def titles(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"title": document["Title"]}]


def failing(document: dict[str, Any]) -> list[Any]:
    return [1 / (document["Id"] - 7)]


LINE = failing.__code__.co_firstlineno


def question_of_many(answers: int, size: int) -> dict[str, Any]:
    rows = [
        {"Id": 2 + n, "OwnerUserId": n, "Owner": {"Id": n, "DisplayName": f"User {n}"}, "Body": "b"}
        for n in range(answers)
    ]
    return {"Id": 1, "Title": "t", "Body": "x" * size, "Answers": rows}


@pytest.mark.parametrize("name", ["qa", "messages", "pairs", "chunks", "thread"])
def test_records_grow_with_the_answers(name: str) -> None:
    maker = maker_of(name)
    sizes = [len(json.dumps(made(maker, question_of_many(n, 10)))) for n in (200, 800)]
    assert sizes[1] < 4.2 * sizes[0]


def test_records_are_made_one_at_a_time() -> None:
    document = json.dumps(question_of_many(2_000, 50_000)).encode()
    maker = maker_of("qa")
    tracemalloc.start()
    size = sum(map(len, maker.records(1, document)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 100_000_000
    assert peak < 10_000_000


def typed(**fields: Any) -> Any:
    """Make the type of a record."""
    return TypedDict("Record", fields)  # type: ignore[operator]


def test_a_field_without_a_type_of_json() -> None:
    with pytest.raises(so2docs.OptionError, match=r"field day of a record is .*; use str"):
        describe_record(typed(day=datetime))


def test_the_recipes_of_the_docs(questions: list[dict[str, Any]]) -> None:
    pages = (CHECKOUT / "docs" / name for name in ("datasets.md", "publishing.md"))
    page = "\n".join(path.read_text() for path in pages)
    names: dict[str, Any] = {}
    for block in re.findall(
        r"^```python\n(# (?:mine|flat).py\n.*?)^```", page, re.DOTALL | re.MULTILINE
    ):
        exec(block, names)
    assert len(list(names["titles"](questions[0]))) == 1
    for passage in made(maker_of("chunks"), *questions[:5]):
        flat = names["flat"](passage)
        assert {*map(type, flat.values())} <= {str, int, bool}
        assert flat["authors"].split(", ")[0] == passage["authors"][0]["name"]
    duplicates = {
        question["Id"]
        for question in questions
        if any(link["LinkType"] == "duplicate" for link in question["Links"])
    }
    answered = {question["Id"] for question in questions if question["Answers"]}
    records = made(RecordMaker(Recipe("originals", names["originals"]), HOST), *questions)
    assert {record["metadata"]["qid"] for record in records} == answered - duplicates


NESTED = typed(a=list[typed(b=str)])  # type: ignore[misc]


@pytest.mark.parametrize(
    ("function", "record", "problem"),
    [
        (failing, None, "recipe x: failed at question 7 ("),
        (failing, None, f"test_recipes.py, line {LINE + 1}): ZeroDivisionErr"),
        (lambda _: ["How?"], None, "question 7: TypeError: a record must be a dictionary, not str"),
        (lambda _: {"a": 1}, None, "TypeError: it returned a dict; yield each record, or return a"),
        (lambda _: None, None, "TypeError: it returned a NoneType; yield each record"),
        (lambda _: [{"day": 1j}], None, "TypeError: Type is not JSON serializable: complex"),
        (titles, typed(title=int | None), "field title is str; its schema says integer or null"),
        (titles, typed(name=str), "the record has no name, which its schema requires"),
        (titles, typed(), "the record has title, which its schema does not allow"),
        (
            lambda _: [{"a": [{"b": ""}, {"b": True}]}],
            NESTED,
            "field a[1].b is bool; its schema says string",
        ),
    ],
)
def test_a_failing_recipe(function: Any, record: Any, problem: str) -> None:
    maker = RecordMaker(Recipe("x", function, record), None)
    with pytest.raises(so2docs.So2docsError) as error:
        list(maker.records(7, b'{"Id":7,"Title":"How?"}'))
    assert problem in str(error.value)


@pytest.mark.parametrize("host", ["Beer.StackExchange.com", "https://beer.stackexchange.com/"])
def test_valid_hosts(host: str) -> None:
    assert sites.checked_host(host) == "alcohol.stackexchange.com"
    for refused in ("", "beer", "a b.com", 'x.com"><script>', "x.com/users"):
        with pytest.raises(so2docs.OptionError, match="must be a host such as"):
            sites.checked_host(refused)


def test_the_summary_counts_questions_without_a_record(tmp_path: Path) -> None:
    for alone, words in ((1, "1 question gave"), (2, "2 questions gave")):
        rows = [dumps.question(1), dumps.answer(2, 1)]
        rows += [dumps.question(10 + number) for number in range(alone)]
        dump = dumps.write_dump(tmp_path / "Posts.xml", *rows)
        report = so2docs.convert(dump, tmp_path / f"{alone}.jsonl", recipe="qa", site=HOST)
        assert words in str(report)
