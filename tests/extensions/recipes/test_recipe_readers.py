"""Outputs of recipes, with their cards, read by the programs that data sets are made for."""

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.command import run
from support.formats_read_back import jsonl, without_nulls
from support.places import CHECKOUT
from support.readers import import_reader

import so2docs
from so2docs.extensions.recipes.beir import BEIR
from so2docs.extensions.recipes.catalog import NAMES, load_recipe
from so2docs.extensions.recipes.record_sets import describe_files

# Warnings of the programs are not ours.
pytestmark = [pytest.mark.readers, pytest.mark.filterwarnings("default")]
RECIPES = [name for name in NAMES if not load_recipe(name).files]


@pytest.fixture(scope="module")
def dump(unpacked_dumps: Path) -> Path:
    return unpacked_dumps / "beer.stackexchange.com"


@pytest.fixture
def load_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    datasets = import_reader("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return datasets.load_dataset


def converted(dump: Path, folder: Path, name: str, **options: Any) -> list[dict[str, Any]]:
    """Convert into a folder; return the records of the output."""
    folder.mkdir()
    so2docs.convert(dump, folder / f"data.{name}", card=True, **options)
    plain = {key: value for key, value in options.items() if key != "split"}
    return list(so2docs.documents(dump, **plain))


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("name", ["jsonl.gz", "jsonl.zst", "json", "parquet"])
def test_hugging_face_loads_each_folder(
    recipe: str, name: str, dump: Path, tmp_path: Path, load_dataset: Any
) -> None:
    """The card has the columns of the data; the loader refuses other columns and counts."""
    folder = tmp_path / "set"
    records = converted(dump, folder, name, recipe=recipe, body="html")
    info = import_reader("datasets").load_dataset_builder(str(folder)).info
    dataset = load_dataset(str(folder), split="train")
    assert without_nulls(dataset.to_list()) == without_nulls(records)
    if name in ("jsonl.gz", "parquet"):
        assert dataset.features == info.features
        assert info.splits["train"].num_examples == len(records)
    if name == "parquet":  # For JSON lines, the loader guesses types, not always correctly.
        (folder / "README.md").unlink()
        assert load_dataset(str(folder), split="train").features == info.features


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("jsonl.gz", {}),
        ("jsonl.zst", {}),
        ("json", {}),
        ("parquet", {}),
        ("jsonl.gz", {"split": "200kB"}),
        ("parquet", {"split": "3files"}),
    ],
)
@pytest.mark.parametrize("nest", [(), ("comments", "links", "votes", "users")])
def test_hugging_face_loads_documents(
    name: str,
    options: dict[str, Any],
    nest: tuple[str, ...],
    dump: Path,
    tmp_path: Path,
    load_dataset: Any,
) -> None:
    documents = converted(dump, tmp_path / "set", name, nest=nest, **options)
    dataset = load_dataset(str(tmp_path / "set"), split="train")
    assert dataset["Id"][:] == [document["Id"] for document in documents]
    assert dataset["Title"][:] == [document["Title"] for document in documents]
    answers = [[answer["Id"] for answer in document["Answers"]] for document in documents]
    assert [[answer["Id"] for answer in row] for row in dataset["Answers"]] == answers


@pytest.mark.parametrize(
    ("name", "split", "splits"),
    [
        ("jsonl.gz", "train=0.8,validation=0.1,test=0.1", ["train", "validation", "test"]),
        ("parquet", "train=0.8,validation=0.1,test=0.1", ["train", "validation", "test"]),
        ("jsonl.gz", "year", ["train"]),
    ],
)
def test_hugging_face_loads_files(
    name: str, split: str, splits: list[str], dump: Path, tmp_path: Path, load_dataset: Any
) -> None:
    records = converted(dump, tmp_path / "set", name, recipe="qa", body="html", split=split)
    loaded = load_dataset(str(tmp_path / "set"))
    assert list(loaded) == splits
    rows = [row for part in loaded.values() for row in without_nulls(part.to_list())]
    assert sorted(map(str, rows)) == sorted(map(str, without_nulls(records)))


def test_hugging_face_loads_both_formats_of_a_folder(
    dump: Path, tmp_path: Path, load_dataset: Any
) -> None:
    """One format has the configurations; the card names the files of the other."""
    folder = tmp_path / "set"
    folder.mkdir()
    expected = {}
    for name, recipe in (("qa.jsonl.gz", "qa"), ("pairs.parquet", "pairs")):
        so2docs.convert(dump, folder / name, recipe=recipe, body="html", card=True)
        expected[recipe] = without_nulls(list(so2docs.documents(dump, recipe=recipe, body="html")))
    pairs = load_dataset(str(folder), split="train").to_list()
    assert without_nulls(pairs) == expected["pairs"]
    (name,) = re.findall(r"Load `(.*?)` with", (folder / "README.md").read_text(encoding="utf-8"))
    others = load_dataset("json", data_files=str(folder / name), split="train").to_list()
    assert without_nulls(others) == expected["qa"]


def test_sentence_transformers_finds_the_columns_in_its_order(
    dump: Path, tmp_path: Path, load_dataset: Any
) -> None:
    converted(
        dump, tmp_path / "set", "jsonl.gz", recipe="triplets:TRIPLETS", drop_fields="metadata"
    )
    columns = load_dataset(str(tmp_path / "set"), split="train").column_names
    assert columns[:3] == ["anchor", "positive", "negative"]


@pytest.mark.parametrize("card", [False, True])
def test_hugging_face_loads_a_retrieval_set(
    card: bool, dump: Path, tmp_path: Path, load_dataset: Any
) -> None:
    folder = tmp_path / "set"
    so2docs.convert(dump, folder, recipe="beir", card=card)
    for configuration in describe_files(BEIR, dict.fromkeys(BEIR.files, (0, 0)))[0]:
        name, (file,) = configuration["config_name"], configuration["data_files"]
        loaded = load_dataset(str(folder), name, split=file["split"]).to_list()
        assert loaded == jsonl(folder / file["path"])


def test_datatrove_reads_threads(dump: Path, tmp_path: Path) -> None:
    readers = import_reader("datatrove.pipeline.readers")
    records = converted(dump, tmp_path / "set", "jsonl.gz", recipe="thread", body="text")
    reader = readers.JsonlReader(str(tmp_path / "set"), glob_pattern="*.jsonl.gz")
    loaded = list(reader.run())
    assert [(one.id, one.text) for one in loaded] == [(r["id"], r["text"]) for r in records]
    own = ("qid", "url", "site", "tags", "score", "licenses", "authors")
    for one, record in zip(loaded, records, strict=True):
        # The reader adds fields that it does not know to the metadata.
        assert {name: one.metadata[name] for name in own} == record["metadata"]
        assert (one.metadata["source"], one.metadata["created"]) == (
            record["source"],
            record["created"],
        )


def test_trl_takes_pairs(dump: Path, tmp_path: Path, load_dataset: Any) -> None:
    """TRL's standard preference form, on which trainers run `unpair_preference_dataset`."""
    trl = import_reader("trl")
    records = converted(dump, tmp_path / "set", "jsonl.gz", recipe="pairs", body="html")
    dataset = load_dataset(str(tmp_path / "set"), split="train")
    assert not trl.is_conversational(dataset[0])
    assert all(isinstance(dataset[0][name], str) for name in ("prompt", "chosen", "rejected"))
    assert trl.maybe_extract_prompt(dataset[0])["prompt"] == records[0]["prompt"]
    single = trl.unpair_preference_dataset(dataset.select_columns(["prompt", "chosen", "rejected"]))
    assert sorted(single.column_names) == ["completion", "label", "prompt"]
    expected = [record[name] for name in ("chosen", "rejected") for record in records]
    assert sorted(single["completion"]) == sorted(
        expected
    )  # The pairs of each thousand, one after the other.
    assert sum(single["label"]) == len(records)


@pytest.mark.parametrize(
    ("recipe", "name", "settings", "is_conversational"),
    [
        ("qa", "parquet", {}, False),
        ("pairs", "jsonl.gz", {"form": "conversational"}, True),
        ("messages", "parquet", {"system": "Be brief."}, True),
    ],
)
def test_trl_knows_the_form_of_records(
    recipe: str,
    name: str,
    settings: dict[str, Any],
    is_conversational: bool,
    dump: Path,
    tmp_path: Path,
    load_dataset: Any,
) -> None:
    trl = import_reader("trl")
    converted(dump, tmp_path / "set", name, recipe=recipe, settings=settings, body="html")
    dataset = load_dataset(str(tmp_path / "set"), split="train")
    assert trl.is_conversational(dataset[0]) == is_conversational
    if recipe == "qa":
        assert all(row["prompt"] and isinstance(row["completion"], str) for row in dataset)
    elif recipe == "messages":
        roles = [message["role"] for message in dataset[0]["messages"]]
        assert roles == ["system", "user", "assistant"]
    else:
        single = trl.unpair_preference_dataset(dataset)
        assert {message["role"] for row in single["completion"] for message in row} == {"assistant"}


SETS: list[dict[str, Any]] = [
    {},
    {"accepted": True},
    {"as_of": "2017", "settings": {"queries_until": "2019-06", "links": "both"}},
]


@pytest.mark.parametrize("options", SETS)
def test_beir_loads_a_retrieval_set(options: dict[str, Any], dump: Path, tmp_path: Path) -> None:
    loader = import_reader("beir.datasets.data_loader")
    folder = tmp_path / "set"
    so2docs.convert(dump, folder, recipe="beir", **options)
    corpus, queries, qrels = loader.GenericDataLoader(str(folder)).load(split="test")
    entries = {
        entry["_id"]: {"text": entry["text"], "title": entry["title"]}
        for entry in jsonl(folder / "corpus.jsonl")
    }
    assert corpus == entries
    assert queries == {query["_id"]: query["text"] for query in jsonl(folder / "queries.jsonl")}
    assert set(qrels) == set(queries)
    for query, relevant in qrels.items():
        assert relevant
        assert set(relevant) <= set(corpus)
        assert query in queries
        assert query not in corpus or "as_of" not in options


@pytest.mark.parametrize("options", [{"card": True}, *SETS])
@pytest.mark.usefixtures("load_dataset")  # The folder of its cache.
def test_mteb_loads_a_retrieval_set(options: dict[str, Any], dump: Path, tmp_path: Path) -> None:
    """Test only the module of MTEB's loader, because the package imports torch."""
    folder = tmp_path / "set"
    so2docs.convert(dump, folder, recipe="beir", **options)
    loader = _module_of_mteb("abstasks/retrieval_dataset_loaders.py")
    loaded = loader.RetrievalDatasetLoader(str(folder), revision=None).load()
    corpus, queries = jsonl(folder / "corpus.jsonl"), jsonl(folder / "queries.jsonl")
    assert [(row["id"], row["title"], row["text"]) for row in loaded["corpus"]] == [
        (entry["_id"], entry["title"], entry["text"]) for entry in corpus
    ]
    texts = {query["_id"]: query["text"] for query in queries}
    assert {row["id"]: row["text"] for row in loaded["queries"]} == texts
    expected: dict[str, dict[str, int]] = {}
    for row in jsonl(folder / "qrels" / "test.jsonl"):
        expected.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
    assert loaded["relevant_docs"] == expected


def _module_of_mteb(name: str) -> Any:
    package = importlib.util.find_spec("mteb")
    if package is None or package.origin is None:
        return import_reader("mteb")
    spec = importlib.util.spec_from_file_location("module", Path(package.origin).parent / name)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_last_step_of_the_tutorial(
    tmp_path: Path, load_dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each configuration loads with all of its splits; one that is empty is no split."""
    text = (CHECKOUT / "docs/tutorials/dataset.md").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ so2docs (convert .*(?:\n .*)?)$", text, re.MULTILINE)
    assert len(commands) == 2
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    run("sample", cwd=tmp_path)
    for command in commands:
        words = shlex.split(command.replace("\\\n", " "))
        assert run(*words, cwd=tmp_path).returncode == 0
    for name in ("pairs", "qa"):
        dataset = load_dataset("data", name)
        assert list(dataset) == ["train", "validation", "test"]
        assert min(split.num_rows for split in dataset.values()) > 0
    (tmp_path / "empty").mkdir()
    options: Any = {"recipe": "qa", "split": "train=0.99,test=0.01", "card": True}
    so2docs.convert("sample.stackexchange.com.7z", "empty/qa.jsonl.gz", **options)
    assert list(load_dataset("empty", "qa")) == ["train"]
