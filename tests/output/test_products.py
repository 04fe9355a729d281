"""Every product records its inputs and options, and recognizes any that differ."""

from __future__ import annotations

import importlib
import os
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.dumps import question, row, write_dump
from support.places import version

import so2docs
from so2docs.extensions.cards.card import describe_existing
from so2docs.extensions.cards.manifest import manifest_path
from so2docs.extensions.changes.diff import ChangesFile
from so2docs.extensions.spark.folders import SiteFolder
from so2docs.extensions.sqlite.about import read_about
from so2docs.extensions.tables.tables import TableFiles
from so2docs.output.new_files import NewFiles
from so2docs.output.paths import OutputOfConversion
from so2docs.output.product import ExistingOutputError, Product, read_provenance
from so2docs.output.provenance import Provenance


def make_inputs(folder: Path) -> Path:
    """Make a dump with some tables, and two outputs."""
    for name, score in (("site", 1), ("old", 1), ("new", 2)):
        questions = [question(n, Score=score, OwnerUserId=1) for n in (1, 2)]
        write_dump(folder / name / "Posts.xml", *questions)
        write_dump(folder / name / "Comments.xml", row(Id=1, PostId=1, Text="text"))
        write_dump(folder / name / "Tags.xml", row(Id=1, TagName="python", Count=1))
        users = row(Id=1, DisplayName="Ada", Location="Ghent")
        write_dump(folder / name / "Users.xml", users)
    for name in ("old", "new"):
        so2docs.convert(folder / name, folder / f"{name}.jsonl", jobs=1)
    return folder


@dataclass(frozen=True)
class Case:
    """A product with its inputs and options.

    Attributes:
        make: Makes the product from the inputs in a folder, with options.
        path: Its file in that folder.
        read: Reads its record.
        options: Other values of the recorded options; None if another value means another file, or
            is tested together with another option.
        inputs: Input files by their role in the record.
        with_all: Options of the first call.
    """

    make: Callable[..., object]
    path: str
    options: dict[str, Any]
    inputs: dict[str, str]
    read: Callable[[str], Provenance | None] = read_provenance
    with_all: dict[str, Any] = field(default_factory=dict)


def diff(folder: Path, *, ignore: Any = None, **options: Any) -> None:
    changes = so2docs.diff(folder / "old.jsonl", folder / "new.jsonl", ignore=ignore)
    changes.write(folder / "c.jsonl", **options)


def sqlite(folder: Path, **options: Any) -> None:
    so2docs.to_sqlite(folder / "site", folder / "q.db", jobs=1, **options)


CONVERT = Case(
    lambda folder, **options: so2docs.convert(folder / "site", folder / "q.jsonl", **options),
    "q.jsonl",
    {},
    {"posts": "site/Posts.xml", "comments": "site/Comments.xml"},
    with_all={"nest": ["comments"]},
)
_FILTERS: dict[str, Any] = {
    "body": "text",
    "since": "2001-01-01",
    "until": "2030-01-01",
    "tags": ["python"],
    "all_tags": None,
    "keep_users": [1],
    "keep_posts": [1],
    "errors": "skip",
    "min_score": 1,
    "min_answer_score": 1,
    "min_answers": 1,
    "max_answers": 5,
    "max_body": 5000,
    "answered": True,
    "accepted": True,
    "sample": "90%",
    "sample_size": 5,
    "as_of": None,
    "drop_users": None,
    "drop_posts": None,
    "drop_fabricated": True,
}


def tables(folder: Path, **options: Any) -> None:
    so2docs.tables(folder / "site", folder / "flat", **options)


ALL_TABLES = {name: f"site/{name.title()}.xml" for name in ("posts", "comments", "tags", "users")}
FLAT: dict[str, Any] = {"format": None, "load": None, **_FILTERS}
CASES: dict[type[Product[Any]], list[Case]] = {
    OutputOfConversion: [CONVERT],
    TableFiles: [
        Case(tables, "flat/Posts.parquet", FLAT, {"posts": "site/Posts.xml"}),
        # With a tag, the part of the site depends on all tables.
        Case(
            partial(tables, only="posts", format="csv"),
            "flat/Posts.csv.gz",
            FLAT | {"load": "postgres", "tags": ["java"], "all_tags": True},
            ALL_TABLES,
            with_all={"tags": ["python"], "load": "mysql"},
        ),
        Case(
            partial(tables, only="posts,tags", format="sqlite"),
            "flat/tables.db",
            FLAT,
            {"posts": "site/Posts.xml", "tags": "site/Tags.xml"},
        ),
        Case(
            sqlite,
            "q.db",
            {"site": "beer.stackexchange.com", **_FILTERS},
            ALL_TABLES,
            read=lambda path: read_about(path).record,
        ),
    ],
    ChangesFile: [
        Case(diff, "c.jsonl", {"ignore": "Score"}, {"old": "old.jsonl", "new": "new.jsonl"})
    ],
}
CASES_OF_ALL = [case for cases in CASES.values() for case in cases]


def descendants(base: type[Any]) -> Iterator[type[Any]]:
    """Yield all subclasses of a class, direct and indirect."""
    for subclass in base.__subclasses__():
        yield subclass
        yield from descendants(subclass)


def test_every_product_has_a_case() -> None:
    package = Path(so2docs.__path__[0])
    for path in package.rglob("*.py"):
        if re.search(r"^class .*\((Product|OutputOfConversion)\b", path.read_text(), re.MULTILINE):
            name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
            with suppress(ImportError):  # A package that is not installed, such as pyspark.
                importlib.import_module(name)
    # The folder of a site needs Spark, so its case is in tests/extensions/spark/test_spark.py.
    assert set(descendants(Product)) == {*CASES, SiteFolder}


@pytest.mark.parametrize("case", CASES_OF_ALL, ids=lambda case: case.path)
def test_another_option_or_input_is_reported(case: Case, tmp_path: Path) -> None:
    if case.path.startswith("flat/"):
        pytest.importorskip("pyarrow")
    folder = make_inputs(tmp_path)
    case.make(folder, **case.with_all)
    before = version(folder / case.path)
    case.make(folder, **case.with_all)
    assert version(folder / case.path) == before
    record = case.read(str(folder / case.path))
    assert record is not None
    assert {file.role for file in record.input} == case.inputs.keys()
    # test_fingerprint checks which options of conversions are recorded.
    assert record.options.keys() == case.options.keys() or case is CONVERT
    for name, value in case.options.items():
        if value is None:
            continue
        with pytest.raises(ExistingOutputError) as error:
            case.make(folder, **case.with_all | {name: value})
        assert (error.value.state, name in str(error.value)) == ("other options", True)
    for path in case.inputs.values():
        data = (folder / path).read_bytes()
        (folder / path).write_bytes(data + b"\n")
        with pytest.raises(ExistingOutputError) as error:
            case.make(folder, **case.with_all)
        assert (error.value.state, Path(path).name in str(error.value)) == ("another input", True)
        (folder / path).write_bytes(data)
    case.make(folder, **case.with_all)
    assert version(folder / case.path) == before


def test_a_changed_byte_is_noticed(tmp_path: Path) -> None:
    """Every byte counts, and a file is read again only if it is not older than its record."""
    pytest.importorskip("pyarrow")
    chance = random.Random(3)
    texts = {n: "".join(chance.choices("abcdefgh ", k=900)) for n in range(1, 400)}
    write_dump(tmp_path / "Posts.xml", *(question(n, Body=text) for n, text in texts.items()))
    write_dump(tmp_path / "Empty.xml")
    q, dump, old = tmp_path / "q.jsonl", tmp_path / "Posts.xml", tmp_path / "old.jsonl"
    so2docs.convert(tmp_path / "Empty.xml", old, jobs=1)
    calls: dict[Path, Callable[[], Any]] = {
        q: lambda: so2docs.convert(dump, q, jobs=1),
        tmp_path / "q.parquet": lambda: so2docs.convert(dump, tmp_path / "q.parquet", jobs=1),
        tmp_path / "s-00001.jsonl": lambda: so2docs.convert(
            dump, tmp_path / "s.jsonl", jobs=1, split="2files"
        ),
        tmp_path / "c.jsonl": lambda: so2docs.diff(old, q).write(tmp_path / "c.jsonl"),
        tmp_path / "q.db": lambda: so2docs.to_sqlite(dump, tmp_path / "q.db", jobs=1),
        tmp_path / "t" / "Posts.parquet": lambda: so2docs.tables(
            dump, tmp_path / "t", only="posts", jobs=1
        ),
    }
    for path, call in calls.items():
        call()
        data = path.read_bytes()
        at = len(data) // 2 + len(data) // 32
        assert len(data) > 17 * 8192, path
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(ExistingOutputError, match="is not the file that was written") as error:
            call()
        assert error.value.state == "unknown"
        os.utime(path, (1, 1))
        call()
        path.write_bytes(data)
        call()


def test_a_card_is_known_by_its_bytes(tmp_path: Path) -> None:
    folder = make_inputs(tmp_path)
    outputs = [str(folder / name) for name in ("old.jsonl", "new.jsonl")]
    for output in outputs:
        card = Path(describe_existing(output))
    before, text = version(card), card.read_text()
    for output, other in (outputs, reversed(outputs)):
        describe_existing(output)
        assert version(card) == before
        away = Path(manifest_path(output)).rename(folder / "away")
        describe_existing(other)
        assert os.path.basename(output) not in card.read_text()
        away.rename(manifest_path(output))
        describe_existing(other)
        assert card.read_text() == text
        before = version(card)
    card.write_text(text + "more")
    assert describe_existing(outputs[1]) == str(card)
    assert card.read_text() == text
    card.write_text("# Mine")
    with pytest.raises(ExistingOutputError) as error:
        describe_existing(outputs[0])
    assert (error.value.state, "update" in str(error.value)) == ("unknown", False)
    describe_existing(outputs[0], force=True)
    assert card.read_text() == text


@pytest.mark.parametrize(
    ("output", "lost", "options"),
    [
        ("q.jsonl", "q-00001.jsonl", {"split": "3files"}),
        ("q.jsonl", "q-2014.jsonl", {"split": "year"}),
        ("set", "set/queries.jsonl", {"recipe": "beir"}),
    ],
)
def test_an_output_with_a_missing_file_is_written_again(
    output: str, lost: str, options: dict[str, Any], tmp_path: Path
) -> None:
    questions = [
        question(n, Title=n, CreationDate=f"201{n % 3 + 3}-01-01T00:00:00.000") for n in range(30)
    ]
    dump = write_dump(tmp_path / "Posts.xml", *questions)
    write_dump(tmp_path / "PostLinks.xml")
    made = so2docs.convert(dump, tmp_path / output, jobs=1, **options)
    before = (tmp_path / lost).read_bytes()
    again = so2docs.convert(dump, tmp_path / output, jobs=1, **options)
    assert (again.is_new, again.questions, again.files) == (False, 30, made.files)
    (tmp_path / lost).unlink()
    again = so2docs.convert(dump, tmp_path / output, jobs=1, update=True, **options)
    assert (again.is_new, again.questions, again.files) == (True, 30, made.files)
    assert (tmp_path / lost).read_bytes() == before
    (tmp_path / lost).write_bytes(before + b"\n")
    with pytest.raises(ExistingOutputError, match="not the file that was written"):
        so2docs.convert(dump, tmp_path / output, jobs=1, **options)


def test_a_product_made_meanwhile_is_up_to_date(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder, claim = make_inputs(tmp_path), NewFiles.claim

    def claim_late(files: NewFiles, *arguments: Any, **keywords: Any) -> None:
        """Let another process write the file between the comparison and the lock."""
        monkeypatch.undo()
        diff(folder)
        claim(files, *arguments, **keywords)

    monkeypatch.setattr(NewFiles, "claim", claim_late)
    diff(folder)
    before = version(folder / "c.jsonl")
    diff(folder)
    assert version(folder / "c.jsonl") == before
