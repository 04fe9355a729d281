"""Recipes, as functions: the records of documents that the oracle nested."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from support import oracle_recipes, oracle_tables

import so2docs
from so2docs.options import sites
from so2docs.recipes import pairs
from so2docs.recipes.finding import choice_of
from so2docs.recipes.records import RecordMaker

HOST = "beer.stackexchange.com"
RECIPES = ("preferences", "pairs", "qa", "messages", "thread", "hub")
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
    ],
)
def test_records(name: str, options: dict[str, Any], questions: list[dict[str, Any]]) -> None:
    maker = RecordMaker(choice_of(name.partition("_")[0], **options).recipe, HOST)
    expected = getattr(oracle_recipes, name)(questions, HOST, lambda body: body)
    assert expected
    found = made(maker, questions)
    assert found == expected
    if name == "hub":
        assert json.dumps(found) == json.dumps(expected)  # In the same order of keys.


def test_attribution(questions: list[dict[str, Any]]) -> None:
    expected = [oracle_recipes.attributed(question, HOST) for question in questions]
    assert made(RecordMaker(None, HOST), copy.deepcopy(questions)) == expected


def test_attribution_replaces_no_attribute() -> None:
    with pytest.raises(so2docs.So2docsError, match="post 5: the dump has an attribute Url, which"):
        RecordMaker(None, HOST).records(5, b'{"Id":5,"Url":"mine","Answers":[]}')


def test_the_first_and_last_pair_of_a_question_with_a_million_answers() -> None:
    scores = [2] * 10 + [1] * 999_980 + [0] * 10
    drawn = pairs._drawn(scores, 5)
    assert len(drawn) == len(set(drawn)) == 10
    assert all(scores[better] > scores[worse] for better, worse in drawn)
    assert pairs._drawn(scores, 5) == drawn != pairs._drawn(scores, 6)


@pytest.mark.parametrize("scores", [[], [1], [1, 1], [2, 1], [3, 3, 2, 2, 1], [5, 4, 3, 2, 1]])
def test_every_pair_of_a_few_answers(scores: list[int]) -> None:
    places = range(len(scores))
    every = [(a, b) for a in places for b in places if scores[a] > scores[b]]
    assert pairs._drawn(scores, 1) == every


def titles(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"title": document["Title"]}]


def no_records(document: dict[str, Any]) -> list[Any]:
    return [document["Title"]]


def failing(document: dict[str, Any]) -> list[Any]:
    return [1 / (document["Id"] - 7)]


def test_ones_own_function() -> None:
    for given in (titles, "test_recipes:titles"):
        recipe = choice_of(given).recipe
        assert (recipe.name, recipe.function) == ("test_recipes:titles", titles)
    assert choice_of(titles).fingerprint.startswith("test_recipes:titles ")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            "nothing",
            "must be one of: preferences, pairs, qa, messages, thread, hub, beir, or package",
        ),
        ("no.such.module:f", "no.such.module cannot be imported: No module named 'no'"),
        ("test_recipes:nothing", "module 'test_recipes' has no attribute 'nothing'"),
        ("test_recipes:HOST", "is no function, but str"),
        (lambda document: [], "workers cannot import it: it has no name of its own"),
    ],
)
def test_what_is_no_recipe(given: Any, problem: str) -> None:
    with pytest.raises(so2docs.OptionError) as error:
        choice_of(given)
    assert problem in str(error.value)


def test_a_function_of_the_script_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(titles, "__module__", "__main__")
    with pytest.raises(so2docs.OptionError, match="in the script or notebook itself"):
        choice_of(titles)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (failing, "recipe test_recipes:failing: failed at question 7: ZeroDivisionError: division"),
        (no_records, "failed at question 7: TypeError: a record must be a dictionary, not str"),
    ],
)
def test_a_recipe_that_fails(function: Any, problem: str) -> None:
    maker = RecordMaker(choice_of(function).recipe, None)
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


@pytest.mark.parametrize("given", ["Beer.StackExchange.com", "https://beer.stackexchange.com/"])
def test_a_host_that_is_given(given: str) -> None:
    assert sites.checked_host(given) == "beer.stackexchange.com"


@pytest.mark.parametrize("given", ["", "beer", "a b.com", 'x.com"><script>', "x.com/users"])
def test_what_is_no_host(given: str) -> None:
    with pytest.raises(so2docs.OptionError, match="must be a host such as"):
        sites.checked_host(given)


@pytest.mark.parametrize(("alias", "name"), [("dpo", "pairs"), ("sft", "messages")])
def test_names_of_trainings(alias: str, name: str) -> None:
    assert choice_of(alias) == choice_of(name)


def test_messages_of_accepted_answers(questions: list[dict[str, Any]]) -> None:
    found = made(RecordMaker(choice_of("messages", accepted=True).recipe, HOST), questions)
    every = oracle_recipes.messages(questions, HOST, lambda body: body)
    assert found == [record for record in every if record["metadata"]["accepted"]]
    assert 0 < len(found) < len(every)
