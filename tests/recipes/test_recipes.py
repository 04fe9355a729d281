"""Recipes as functions: the records of documents that the oracle nested."""

import copy
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support import oracle_recipes, oracle_tables
from support.places import CHECKOUT

import so2docs
from so2docs.options import sites
from so2docs.output.recording import RecordMaker
from so2docs.parse.markdown import to_markdown
from so2docs.recipes import threads
from so2docs.recipes.answers import draw_pairs
from so2docs.recipes.finding import choose_recipe
from so2docs.recipes.recipe import Recipe

HOST = "beer.stackexchange.com"
RECIPES = ("preferences", "pairs", "qa", "messages", "thread", "chunks", "blocks", "hub")
TABLES = {"comments", "links", "users"}


@pytest.fixture(scope="module", params=["beer.stackexchange.com", "eosio.meta.stackexchange.com"])
def questions(request: pytest.FixtureRequest, unpacked_dumps: Path) -> list[dict[str, Any]]:
    return oracle_tables.nest(unpacked_dumps / request.param, TABLES).documents


def made(maker: RecordMaker, questions: list[dict[str, Any]]) -> list[Any]:
    records = [maker.records(q["Id"], json.dumps(q).encode()) for q in questions]
    return [json.loads(record) for some in records for record in some]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in RECIPES),
        ("qa_accepted", {"accepted": True}),
        ("qa_best", {"best": True}),
        ("pairs_conversational", {"conversational": True}),
        ("messages_system", {"system": "Be brief."}),
        ("chunks_short", {"max_length": 300, "overlap": 60}),
        ("chunks_tokens", {"max_length": 100, "overlap": 20, "tokenizer": "gpt-4o"}),
    ],
)
def test_records(name: str, options: dict[str, Any], questions: list[dict[str, Any]]) -> None:
    maker = RecordMaker(choose_recipe(name.partition("_")[0], **options).recipe, HOST)
    expected = getattr(oracle_recipes, name)(questions, HOST, lambda body: body)
    assert expected
    actual = made(maker, questions)
    assert actual == expected
    if name == "hub":
        assert json.dumps(actual) == json.dumps(expected)  # In the same order of keys.


FENCE = re.compile(r"^(`{3,})[^`\n]*\n(?:.*\n)*?\1$", re.MULTILINE)


@pytest.mark.long
@pytest.mark.parametrize(("max_length", "overlap"), [(400, 0), (400, 100), (2000, 200)])
def test_passages_hold_the_whole_thread(
    max_length: int, overlap: int, questions: list[dict[str, Any]]
) -> None:
    """Passages are short enough, code blocks that fit are whole, only white space is left out."""
    options = {"max_length": max_length, "overlap": overlap}
    recipes = (choose_recipe("thread").recipe, choose_recipe("chunks", **options).recipe)
    threads, passages = (made(RecordMaker(one, HOST, to_markdown), questions) for one in recipes)
    ranges: dict[str, list[range]] = {}
    for passage in passages:
        start, text = passage["start"], passage["text"]
        assert 0 < len(text) <= max_length
        ranges.setdefault(str(passage["qid"]), []).append(range(start, start + len(text)))
    blocks = 0
    for thread in threads:
        text, places = thread["text"], ranges[thread["id"]]
        covered = {place for one in places for place in one}
        assert not "".join(char for at, char in enumerate(text) if at not in covered).strip()
        for fence in FENCE.finditer(text):
            if len(fence[0]) <= max_length:
                blocks += 1
                assert any(fence.start() in one and fence.end() - 1 in one for one in places)
    assert blocks or max_length > 400


def test_passages_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "semantic_text_splitter", None)
    threads.make_splitter.cache_clear()
    with pytest.raises(so2docs.OptionError, match="pip install semantic-text-splitter"):
        choose_recipe("chunks")


def test_a_tokenizer_of_ones_own(tmp_path: Path) -> None:
    """The content of the file decides, so a resume with another tokenizer is refused."""
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    tokenizer = tmp_path / "tokenizer.json"
    text = json.dumps({"version": "1.0", "model": model, "pre_tokenizer": {"type": "Whitespace"}})
    tokenizer.write_text(text)
    question = {"Id": 1, "Title": "One two", "Body": "three four five six seven", "Answers": []}
    maker = RecordMaker(
        choose_recipe("chunks", max_length=3, tokenizer=str(tokenizer)).recipe, HOST
    )
    texts = [row["text"] for row in made(maker, [question])]
    assert texts == ["# One two", "three four five", "six seven"]
    before = threads.identify_tokenizer(str(tokenizer))
    tokenizer.write_text(text + " ")
    assert before != threads.identify_tokenizer(str(tokenizer))
    assert threads.identify_tokenizer("gpt-4o") == "gpt-4o"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>Do:</p>\n\n<pre><code>a &lt; b\n</code></pre>\n", [("Do:", "", "a < b")]),
        (
            "<ul>\n<li>One</li>\n<li>Two <em>of</em> 2\n"
            '<pre class="x lang-py s-code"><code>a\n\n  b\n</code></pre></li>\n</ul>',
            [("Two of 2", "py", "a\n\n  b")],
        ),
        (
            '<pre class="lang-none"><code>a</code></pre>'
            '<pre><code class="language-c++">b</code></pre>',
            [("", "", "a"), ("", "c++", "b")],
        ),
        ("<p>a</p><pre>\nb<br>c</pre><p>d<br>e</p><PRE>f", [("a", "", "b\nc"), ("d e", "", "f")]),
        ("<pre><code> \n</code></pre>", []),
    ],
)
def test_code_blocks(body: str, expected: list[tuple[str, str, str]]) -> None:
    question = {"Id": 7, "Body": body, "Answers": []}
    actual = made(RecordMaker(choose_recipe("blocks").recipe, HOST), [question])
    assert [(row["text_before"], row["language"], row["code"]) for row in actual] == expected
    assert [row["id"] for row in actual] == [f"7-{number}" for number in range(len(expected))]


def test_attribution(questions: list[dict[str, Any]]) -> None:
    expected = [oracle_recipes.attributed(question, HOST) for question in questions]
    assert made(RecordMaker(None, HOST), copy.deepcopy(questions)) == expected


def test_attribution_names_every_editor_where_the_history_is_nested() -> None:
    written = {"Events": ["EditBody", "SuggestedEditApplied"], "CreationDate": "2012-01-01"}
    history = [
        written | {"UserId": 5, "User": {"Id": 5, "DisplayName": "Ada"}},
        written | {"UserDisplayName": "gone", "ContentLicense": "CC BY-SA 4.0"},
        {"Events": ["PostClosed"], "UserId": 7, "CreationDate": "2019-01-01"},
    ]
    answer = {"Id": 2, "OwnerUserId": 5, "ContentLicense": "CC BY-SA 2.5", "History": history}
    [record] = made(RecordMaker(None, HOST), [{"Id": 1, "OwnerUserId": 4, "Answers": [answer]}])
    ada = f"https://{HOST}/users/5"
    assert record["Authors"] == [
        {"DisplayName": "user4", "Url": f"https://{HOST}/users/4"},
        {"DisplayName": "user5", "Url": ada},
        {"DisplayName": "Ada", "Url": ada},
        {"DisplayName": "gone"},
    ]
    assert record["Licenses"] == ["CC BY-SA 2.5", "CC BY-SA 3.0", "CC BY-SA 4.0"]
    edited, _, closed = record["Answers"][0]["History"]
    assert (edited["User"]["Url"], edited["ContentLicense"]) == (ada, "CC BY-SA 3.0")
    assert "ContentLicense" not in closed


def test_attribution_replaces_no_attribute() -> None:
    with pytest.raises(so2docs.So2docsError, match="post 5: the dump has an attribute Url, which"):
        RecordMaker(None, HOST).records(5, b'{"Id":5,"Url":"mine","Answers":[]}')


def test_the_first_and_last_pair_of_a_question_with_a_million_answers() -> None:
    scores = [2] * 10 + [1] * 999_980 + [0] * 10
    drawn = draw_pairs(scores, 5)
    assert len(drawn) == len(set(drawn)) == 10
    assert all(scores[better] > scores[worse] for better, worse in drawn)
    assert draw_pairs(scores, 5) == drawn != draw_pairs(scores, 6)


@pytest.mark.parametrize("scores", [[], [1], [1, 1], [2, 1], [3, 3, 2, 2, 1], [5, 4, 3, 2, 1]])
def test_every_pair_of_a_few_answers(scores: list[int]) -> None:
    places = range(len(scores))
    every = [(a, b) for a in places for b in places if scores[a] > scores[b]]
    assert draw_pairs(scores, 1) == every


def titles(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"title": document["Title"]}]


def no_records(document: dict[str, Any]) -> list[Any]:
    return [document["Title"]]


def failing(document: dict[str, Any]) -> list[Any]:
    return [1 / (document["Id"] - 7)]


def test_the_recipes_of_the_docs(questions: list[dict[str, Any]]) -> None:
    page = (CHECKOUT / "docs" / "datasets.md").read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        exec(block, names)
    assert len(list(names["titles"](questions[0]))) == 1
    duplicates = {
        question["Id"]
        for question in questions
        if any(link["LinkType"] == "duplicate" for link in question["Links"])
    }
    answered = {question["Id"] for question in questions if question["Answers"]}
    records = made(RecordMaker(Recipe("originals", names["originals"]), HOST), questions)
    assert {record["metadata"]["qid"] for record in records} == answered - duplicates


def test_ones_own_function() -> None:
    for function in (titles, "test_recipes:titles"):
        recipe = choose_recipe(function).recipe
        assert (recipe.name, recipe.function) == ("test_recipes:titles", titles)
    assert choose_recipe(titles).fingerprint.startswith("test_recipes:titles ")


@pytest.mark.parametrize(
    ("recipe", "problem"),
    [
        (
            "nothing",
            "thread, chunks, blocks, edits, hub, beir, or package.mod",
        ),
        ("no.such.module:f", "no.such.module cannot be imported: No module named 'no'"),
        ("test_recipes:nothing", "module 'test_recipes' has no attribute 'nothing'"),
        ("test_recipes:HOST", "is not a function but str"),
        (lambda document: [], "workers cannot import it: it has no name of its own"),
    ],
)
def test_refuses_invalid_recipes(recipe: Any, problem: str) -> None:
    with pytest.raises(so2docs.OptionError) as error:
        choose_recipe(recipe)
    assert problem in str(error.value)


def test_a_function_of_the_script_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(titles, "__module__", "__main__")
    with pytest.raises(so2docs.OptionError, match="in the script or notebook itself"):
        choose_recipe(titles)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (failing, "recipe test_recipes:failing: failed at question 7: ZeroDivisionError: division"),
        (no_records, "failed at question 7: TypeError: a record must be a dictionary, not str"),
    ],
)
def test_a_recipe_that_fails(function: Any, problem: str) -> None:
    maker = RecordMaker(choose_recipe(function).recipe, None)
    with pytest.raises(so2docs.So2docsError) as error:
        maker.records(7, b'{"Id":7,"Title":"How?"}')
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("site", "host"),
    [
        ("beer.stackexchange.com", "beer.stackexchange.com"),
        ("stackoverflow.com", "stackoverflow.com"),
        ("ru.meta.stackoverflow.com", "ru.meta.stackoverflow.com"),
        ("meta.mathoverflow.net", "meta.mathoverflow.net"),
        ("cardano-2021-12", None),
        ("dba.meta-2024-04", None),
        ("notstackexchange.com", None),
        ("dumps", None),
    ],
)
def test_the_host_of_a_site(site: str, host: str | None) -> None:
    source = f"{site}/Posts.xml"
    if host is not None:
        assert sites.host(source, None) == host
        return
    with pytest.raises(so2docs.OptionError, match="give it, as in site='beer"):
        sites.host(source, None)


@pytest.mark.parametrize("host", ["Beer.StackExchange.com", "https://beer.stackexchange.com/"])
def test_valid_hosts(host: str) -> None:
    assert sites.checked_host(host) == "beer.stackexchange.com"


@pytest.mark.parametrize("host", ["", "beer", "a b.com", 'x.com"><script>', "x.com/users"])
def test_refuses_invalid_hosts(host: str) -> None:
    with pytest.raises(so2docs.OptionError, match="must be a host such as"):
        sites.checked_host(host)


@pytest.mark.parametrize(
    ("alias", "name"), [("dpo", "pairs"), ("sft", "messages"), ("rag", "chunks")]
)
def test_names_of_uses(alias: str, name: str) -> None:
    assert choose_recipe(alias) == choose_recipe(name)


def test_messages_of_accepted_answers(questions: list[dict[str, Any]]) -> None:
    records = made(RecordMaker(choose_recipe("messages", accepted=True).recipe, HOST), questions)
    every = oracle_recipes.messages(questions, HOST, lambda body: body)
    assert records == [record for record in every if record["metadata"]["accepted"]]
    assert 0 < len(records) < len(every)
