"""The commands of docs/rebuild.md make sets that their consumers load, for two published sites."""

import contextlib
import re
import shlex
import shutil
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from support import oracle
from support.command import run, run_python
from support.places import CHECKOUT
from support.readers import import_reader

from so2docs.extensions.recipes.recipes_command import SETS

PAGE = (CHECKOUT / "docs" / "rebuild.md").read_text(encoding="utf-8")
REBUILD = CHECKOUT / "samples" / "rebuild"
SITES = ("beer.stackexchange.com", "cardano-2021-12")
pytestmark = pytest.mark.filterwarnings("default")  # Warnings of the programs are not ours.


def command_of(anchor: str, **values: str) -> list[str]:
    """Return the words of the command in the row of the table that leads to a section."""
    (command,) = re.findall(
        rf"^\| .*\(#{anchor}\).* \| `(?:so2docs|python) (.*?)`", PAGE, re.MULTILINE
    )
    for name, value in values.items():
        command = command.replace(name, value)
    return shlex.split(command)


def test_every_set_of_the_command_is_on_the_page() -> None:
    for name, (recipe, settings) in SETS.items():
        known = re.sub(r"stackexchange_\w+_jsonl", "stackexchange_…_jsonl", name)
        (row,) = [line for line in PAGE.splitlines() if line.startswith("|") and known in line]
        assert f"--recipe {recipe}" in row
        assert all(f"--set {key}=" in row for key in settings)


def test_every_row_has_a_section() -> None:
    sections = {
        re.sub(r"[^\w-]", "", s.lower().replace(" ", "-"))
        for s in re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    }
    assert sections == set(re.findall(r"^\| \[.*?\]\(#(.*?)\)", PAGE, re.MULTILINE))


@pytest.fixture(params=SITES)
def dump(request: pytest.FixtureRequest, unpacked_dumps: Path) -> Path:
    return unpacked_dumps / str(request.param)


@pytest.fixture
def convert(dump: Path, tmp_path: Path) -> Callable[..., None]:
    """Run the command of a row in the temporary folder."""

    def run_row(anchor: str, output: str = "", **values: str) -> None:
        words = command_of(anchor, DUMP=str(dump), **values)
        if output:
            words[2] = output
            (tmp_path / output).parent.mkdir(parents=True, exist_ok=True)
        if words[0] == "convert" and dump.name == "cardano-2021-12":
            words += ["--site", "cardano.stackexchange.com"]
        result = run(*words, "--quiet", cwd=tmp_path)
        assert result.returncode == 0, result.stderr

    return run_row


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    datasets = import_reader("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return datasets.load_dataset


def features_of(dataset: Any) -> dict[str, Any]:
    """Return the types of the columns: a name, a list of a type, or a dictionary."""

    def type_of(feature: Any) -> Any:
        if isinstance(feature, dict):
            return {name: type_of(part) for name, part in feature.items()}
        if hasattr(feature, "feature"):
            return [type_of(feature.feature)]
        return str(getattr(feature, "dtype", "json"))

    return {name: type_of(feature) for name, feature in dataset.features.items()}


@pytest.mark.readers
def test_preferences(convert: Any, load: Any) -> None:
    """The columns and types are those in the card of the set."""
    convert("stack-exchange-preferences")
    dataset = load("parquet", data_files="preferences.parquet", split="train")
    answer = dict.fromkeys(("answer_id", "author_id", "pm_score"), "int64")
    answer |= dict.fromkeys(("author", "author_profile", "text"), "string") | {"selected": "bool"}
    expected = {"qid": "int64", "question": "string", "date": "string", "metadata": ["string"]}
    assert features_of(dataset) == expected | {"answers": [answer]}
    assert len(dataset) > 100
    assert all(len(row["answers"]) > 1 and len(row["metadata"]) == 3 for row in dataset)


@pytest.mark.readers
def test_paired(convert: Any, load: Any) -> None:
    """The data set is named and mapped as in TRL's `stack_llama` and `stack_llama_2`."""
    name = "lvwerra/stack-exchange-paired"
    convert("stack-exchange-paired", f"{name}/data/rl/train.parquet")
    dataset = load(name, data_dir="data/rl", split="train", verification_mode="no_checks")
    types = features_of(dataset)
    assert types.pop("attribution")["response_j"]["license"] == "string"
    columns = ("question", "date", "response_j", "response_k")
    assert types == {"qid": "int64", "metadata": ["string"], **dict.fromkeys(columns, "string")}

    def with_prompts(rows: Any) -> dict[str, list[str]]:
        return {
            "prompt": ["Question: " + question + "\n\nAnswer: " for question in rows["question"]],
            "chosen": rows["response_j"],
            "rejected": rows["response_k"],
        }

    mapped = dataset.map(with_prompts, batched=True, remove_columns=dataset.column_names)
    assert mapped.column_names == ["prompt", "chosen", "rejected"]
    assert len(mapped) == len(dataset) > 100
    assert all(row["chosen"] != row["rejected"] for row in mapped)
    assert mapped[0]["prompt"].startswith("Question: ")


@pytest.mark.readers
def test_duplicates(convert: Any, load: Any) -> None:
    """Trainers of sentence-transformers take all columns of a subset, in order."""
    name = "sentence-transformers/stackexchange-duplicates"
    convert("stackexchange-duplicates", name)
    subsets = {
        part: load(name, f"{part}-{part}-pair", split="train") for part in ("title", "body", "post")
    }
    for part, dataset in subsets.items():
        assert features_of(dataset) == {f"{part}1": "string", f"{part}2": "string"}
        assert load(name, data_dir=f"{part}-{part}-pair", split="train").to_list() == (
            dataset.to_list()
        )
    attribution = load(name, "attribution", split="train")
    assert {len(dataset) for dataset in subsets.values()} == {len(attribution)}
    assert len(attribution) > 3
    for row in attribution:
        assert row["question1"]["license"].startswith("CC BY-SA ")
        assert row["question2"]["authors"] is not None


@pytest.mark.readers
@pytest.mark.parametrize(
    ("form", "columns"),
    [
        ("titlebody_best_voted_answer", ("title_body", "upvoted_answer")),
        ("title_best_voted_answer", ("title_body", "upvoted_answer")),
        (
            "titlebody_best_and_down_voted_answer",
            ("title_body", "upvoted_answer", "downvoted_answer"),
        ),
        ("title_body", ("texts",)),
    ],
)
def test_texts(
    form: str, columns: tuple[str, ...], convert: Any, load: Any, tmp_path: Path
) -> None:
    recipe = (CHECKOUT / "samples" / "recipes" / "texts.py").read_text(encoding="utf-8")
    smaller = recipe.replace("MIN_GAP = 100", "MIN_GAP = 5")  # Small sites have no gaps of 100.
    assert smaller != recipe
    (tmp_path / "texts_of_small_sites.py").write_text(smaller, encoding="utf-8")
    convert("flax-sentence-embeddings", **{"texts:…": f"texts_of_small_sites:{form}"})
    types = features_of(load("json", data_files="texts.jsonl.gz", split="train"))
    metadata = types.pop("metadata")
    assert types.pop("tags") == ["string"]
    texts = {"texts": ["string"]} if columns == ("texts",) else dict.fromkeys(columns, "string")
    assert types == texts
    assert metadata["license"] == "string"
    assert set(metadata) >= {name for name in columns if name.endswith("_answer")}


@pytest.mark.readers
@pytest.mark.parametrize(
    "dump", ["beer.stackexchange.com", "eosio.meta.stackexchange.com"], indirect=True
)
def test_hub(convert: Any, dump: Path, load: Any) -> None:
    convert("stackexchange_2025_md")
    types = features_of(load("hub", dump.name, split="train"))
    assert list(types) == sorted(types)
    (answer,), (comment,) = types["Answers"], types["Comments"]
    assert answer["IsAccepted"] == "bool"
    assert (types["Tags"], types["Id"], answer["ParentId"]) == ("string", "int64", "int64")
    assert (comment["Text"], comment["UserId"]) == ("string", "int64")


def rows_of(xml: Path) -> list[dict[str, str]]:
    return [row.attrib for row in ElementTree.parse(xml).getroot()]


class Links(HTMLParser):
    """Collects the addresses of links with a host."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        url = dict(attrs).get("href") or ""
        if tag == "a" and re.match("https?://", url):
            self.urls.append(url)


@pytest.mark.readers
def test_bright(dump: Path, load: Any, tmp_path: Path) -> None:
    shutil.copy(REBUILD / "bright.py", tmp_path)
    run_python(*command_of("bright", DUMP=str(dump)), cwd=tmp_path)
    examples = load("xlangai/BRIGHT", "examples")["beer"]
    documents = load("xlangai/BRIGHT", "documents")["beer"]
    lists = {name: ["string"] for name in ("excluded_ids", "gold_ids_long", "gold_ids")}
    texts = dict.fromkeys(("query", "reasoning", "id", "gold_answer"), "string")
    assert features_of(examples) == texts | lists
    assert features_of(documents) == {"id": "string", "content": "string"}
    expected = {}
    for question in oracle.nest(dump / "Posts.xml").documents:
        links = Links()
        for answer in question["Answers"]:
            if answer["Id"] == question.get("AcceptedAnswerId") or answer["Score"] > 5:
                links.feed(answer["Body"])
        if links.urls:
            expected[str(question["Id"])] = list(dict.fromkeys(links.urls))
    assert dict(zip(examples["id"], examples["gold_ids"], strict=True)) == expected
    assert set(documents["id"]) == {url for urls in expected.values() for url in urls}
    assert len(expected) > 20


@pytest.mark.readers
@pytest.mark.parametrize("dump", ["beer.stackexchange.com", "alcohol.meta-2022-06"], indirect=True)
def test_sotorrent(
    convert: Any, dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tables have the columns of SOTorrent's schema, and the versions that the XML has."""
    duckdb = import_reader("duckdb")
    convert("sotorrent")
    posts = {row["Id"]: row for row in rows_of(dump / "Posts.xml")}
    history = sorted(
        rows_of(dump / "PostHistory.xml"), key=lambda row: (row["CreationDate"], int(row["Id"]))
    )
    monkeypatch.chdir(tmp_path / "sotorrent")
    with contextlib.closing(duckdb.connect("sotorrent.duckdb")) as database:
        database.execute((REBUILD / "sotorrent.sql").read_text(encoding="utf-8"))
        for table, types, post_types in (
            ("PostVersion", ("2", "5", "8"), ("1", "2")),
            ("TitleVersion", ("1", "4", "7"), ("1",)),
        ):
            versions: dict[int, list[int]] = {}
            for row in history:
                post = posts.get(row["PostId"])
                if row["PostHistoryTypeId"] in types and post and post["PostTypeId"] in post_types:
                    versions.setdefault(int(row["PostId"]), []).append(int(row["Id"]))
            expected = {
                (post, version, before, after)
                for post, ids in versions.items()
                for before, version, after in zip((None, *ids), ids, (*ids[1:], None), strict=False)
            }
            rows = database.execute(
                f"SELECT PostId, PostHistoryId, PredPostHistoryId, SuccPostHistoryId FROM {table}"
            ).fetchall()
            assert set(rows) == expected
            assert len(rows) == len(expected) > 30
            names = [row[0] for row in database.execute(f"DESCRIBE {table}").fetchall()]
            assert names == SOTORRENT[table].split()


SOTORRENT = {
    "PostVersion": "Id PostId PostTypeId PostHistoryId PostHistoryTypeId CreationDate "
    "PredPostHistoryId SuccPostHistoryId MostRecentVersion",
    "TitleVersion": "Id PostId PostTypeId PostHistoryId PostHistoryTypeId CreationDate Title "
    "PredPostHistoryId PredEditDistance SuccPostHistoryId SuccEditDistance MostRecentVersion",
}
"""Columns of the tables of SOTorrent: https://github.com/sotorrent/db-scripts."""
