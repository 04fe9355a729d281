"""`--card`: the side files describe the output correctly."""

import cProfile
import json
import os
import pstats
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.command import run
from support.dumps import question, row, write_dump
from support.manifests import describe_file, resealed
from support.places import SAMPLES

import so2docs
from so2docs.extensions.cards.card import describe_existing, write_card
from so2docs.extensions.cards.manifest import load
from so2docs.output.new_files import output_lock

SITE = SAMPLES / "site"


def convert(folder: Path, name: str = "questions.jsonl.gz", **keywords: Any) -> Path:
    output = folder / name
    so2docs.convert(SAMPLES / "posts.xml", output, card=True, **keywords)
    return output


def manifest_of(output: Path) -> Path:
    return output.with_name(f".{output.name}.manifest")


def check_sums(folder: Path) -> list[str]:
    """Return the names that `sha256sum` finds unchanged, with those of changed files after `!`."""
    result = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    names = []
    for line in result.stdout.splitlines():
        name, _, state = line.rpartition(": ")
        names.append(name if state == "OK" else f"!{name}")
    return names


def commands(folder: Path) -> list[list[str]]:
    """Return the arguments of the commands in the card of a folder."""
    text = (folder / "README.md").read_text(encoding="utf-8")
    return [command.split() for command in re.findall(r"^\$ so2docs (.*)$", text, re.MULTILINE)]


def front_matter(card: Path) -> tuple[list[str], str]:
    """Extract the front matter as Hugging Face does: between two lines of hyphens at the start."""
    match = re.match(r"---\n(.*?)\n---\n(.*)", card.read_text(encoding="utf-8"), re.DOTALL)
    assert match
    return match[1].split("\n"), match[2]


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("out.jsonl.gz", {"nest": "comments", "drop_fields": "Answers.Body", "sample": "90%"}),
        ("out.parquet", {"attribution": True, "site": "a.example"}),
        (
            "out.json.gz",
            {"recipe": "qa", "settings": {"best": True}, "site": "a.example", "body": "html"},
        ),
        ("a.example/train.jsonl", {"recipe": "hub"}),
        ("out.jsonl", {"accepted": True, "site_field": "Site", "split": "2files"}),
        ("out.jsonl.zst", {"fields": "Id,Title,Answers.Body", "answers_by": "votes", "level": 5}),
    ],
)
def test_output_card_and_manifest_agree(
    name: str, keywords: dict[str, Any], tmp_path: Path
) -> None:
    """The command of the card makes the same. `card` adds what is missing but the dump's hash."""
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        shutil.copytree(SITE, folder)
    output, card = one / name, one / "README.md"
    so2docs.convert(one / "Posts.xml", output, card=True, **keywords)
    text, manifest = card.read_text(), json.loads(manifest_of(output).read_text())
    counts = manifest["counts"]
    total = counts["questions"] if counts["records"] is None else counts["records"]
    assert sum(manifest["documents"].values()) == total > 0
    written = sorted(output.parent.glob(f"{output.name.partition('.')[0]}*"))
    assert manifest["files"] == list(map(describe_file, written))
    assert check_sums(one) == [str(path.relative_to(one)) for path in written]
    assert len(written) == int(keywords.get("split", "1files")[0])
    run(*commands(one)[0], "-q", cwd=other, code=0)
    assert (other / "README.md").read_text() == text
    assert check_sums(other) == check_sums(one)
    card.unlink()
    describe_existing(str(output))
    assert card.read_text() == text
    manifest_of(output).unlink()
    describe_existing(str(output))
    hashes = re.compile(r"^\| (?:not known|`\w{64}`) \|", re.MULTILINE)
    assert hashes.sub("| |", card.read_text()) == hashes.sub("| |", text)


@pytest.mark.parametrize(
    "name", ["two words.jsonl", "a\\b.jsonl", "line\nbreak.jsonl", os.fsdecode(b"caf\xe9.jsonl")]
)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse some of these names")
def test_checksums_of_odd_names(name: str, tmp_path: Path) -> None:
    convert(tmp_path, name)
    [checked] = check_sums(tmp_path)
    assert not checked.startswith("!")


@pytest.mark.parametrize("name", ["README.md", "SHA256SUMS"])
def test_other_files_are_not_replaced(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine\n")
    with pytest.raises(so2docs.OutputError, match=rf"{name}: exists and is (not a|of no) card of"):
        convert(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    convert(tmp_path, force=True)
    assert (tmp_path / "README.md").read_text().startswith("---\n# Written by so2docs")
    (tmp_path / name).unlink()  # As after a kill between both.
    convert(tmp_path)
    assert (tmp_path / "README.md").exists()
    assert check_sums(tmp_path) == ["questions.jsonl.gz"]


def test_any_other_value_in_a_manifest_is_noticed(tmp_path: Path) -> None:
    """If a flipped byte leaves valid JSON with other values, the manifest is refused."""
    output = convert(tmp_path)
    whole = manifest_of(output).read_bytes()
    manifest, rng, noticed = json.loads(whole), random.Random(3), 0
    for at in rng.sample(range(len(whole)), 200):
        manifest_of(output).write_bytes(
            whole[:at] + bytes([whole[at] ^ 1 << rng.randrange(8)]) + whole[at + 1 :]
        )
        try:
            is_other = json.loads(manifest_of(output).read_bytes()) != manifest
        except ValueError:
            is_other = True
        if is_other:
            noticed += 1
            with pytest.raises(so2docs.OutputError):
                load(str(manifest_of(output)))
    assert noticed > 150
    # White space and the order of keys do not matter.
    manifest_of(output).write_text(json.dumps(dict(reversed(manifest.items()))))
    assert load(str(manifest_of(output)))
    manifest_of(output).write_text(json.dumps(resealed(manifest, format=2)))
    with pytest.raises(so2docs.OutputError, match="again with card=True"):
        load(str(manifest_of(output)))


def test_the_card_of_a_retrieval_set(tmp_path: Path) -> None:
    """The folder has the card in place of the README, and its command makes the same files."""
    output = tmp_path / "set"
    so2docs.convert(SITE, output, recipe="beir")
    before = [line for line in front_matter(output / "README.md")[0] if "path:" in line]
    run("card", output)
    lines, _ = front_matter(output / "README.md")
    assert [line for line in lines if "path:" in line] == before
    assert not so2docs.convert(SITE, output, recipe="beir", card=True).is_new
    so2docs.convert(SITE, output, recipe="beir", card=True, force=True)
    [again] = commands(output)
    run(*again[:1], SITE, tmp_path / "again", *again[3:], code=0)
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (output / name).read_bytes()
    assert len(check_sums(output)) == 4
    with (output / "qrels" / "test.jsonl").open("ab") as qrels:
        qrels.write(b"\n")
    assert [name for name in check_sums(output) if "!" in name] == ["!qrels/test.jsonl"]


def test_a_card_of_many_sites_is_small(tmp_path: Path) -> None:
    sites = [tmp_path / f"site{number}.stackexchange.com" for number in range(60)]
    sites[0].mkdir()
    so2docs.convert(SITE, sites[0] / "train.parquet", recipe="hub", card=True, jobs=1)
    for folder in sites[1:]:
        shutil.copytree(sites[0], folder)
    write_card(str(tmp_path), force=True)
    assert (tmp_path / "README.md").stat().st_size < 60_000


@pytest.mark.parametrize("is_up_to_date", [False, True])
def test_the_card_of_several_outputs_is_rendered_once(tmp_path: Path, is_up_to_date: bool) -> None:
    """The renderings, and the manifests read for each output, do not grow in number."""
    calls = []
    for count in (2, 6):
        folder = tmp_path / str(count)
        folder.mkdir()
        dumps = [folder / f"site{number}.xml" for number in range(count)]
        for dump in dumps:
            shutil.copy(SAMPLES / "posts.xml", dump)
        if is_up_to_date:
            so2docs.convert_all(dumps, folder / "out", card=True, jobs=1)
        profile = cProfile.Profile()
        profile.runcall(so2docs.convert_all, dumps, folder / "out", card=True, jobs=1)
        rows = pstats.Stats(profile).stats.items()  # type: ignore[attr-defined]
        of = {name: row[0] for (_, _, name), row in rows if name in ("readme_text", "load")}
        calls.append((of["readme_text"], of["load"] / count))
    assert calls[1] <= calls[0]


def test_several_outputs_share_a_card(tmp_path: Path) -> None:
    dumps = [tmp_path / "bread.xml", tmp_path / "votes.xml"]
    for dump, sample in zip(dumps, ("posts.xml", "votes.xml"), strict=True):
        shutil.copy(SAMPLES / sample, dump)
    out = tmp_path / "out"
    so2docs.convert_all(dumps, out, card=True, jobs=1)
    card = (out / "README.md").read_text()
    assert [command[2] for command in commands(out)] == ["bread.jsonl.gz", "votes.jsonl.gz"]
    assert check_sums(out) == ["bread.jsonl.gz", "votes.jsonl.gz"]
    (out / "README.md").unlink()
    results = so2docs.convert_all(dumps, out, card=True, jobs=1)
    assert [result.state for result in results] == ["up to date", "up to date"]
    assert (out / "README.md").read_text() == card
    (out / "bread.jsonl.gz").unlink()
    so2docs.convert(dumps[1], out / "votes.jsonl.gz", card=True, force=True)
    assert "bread" not in (out / "README.md").read_text()


def test_most_outputs_of_a_folder_are_parquet(tmp_path: Path) -> None:
    """`datasets` reads all configurations of a folder as the format of the first one."""
    for name in ("a.jsonl.gz", "a.parquet"):
        convert(tmp_path, name, recipe="qa", site="a.example")
    lines, text = front_matter(tmp_path / "README.md")
    assert [line for line in lines if line.startswith("    - a.")] == ["    - a.parquet"]
    assert "one format in a folder, here parquet. Load `a.jsonl.gz` with" in text


def test_simultaneous_outputs_share_a_card(tmp_path: Path) -> None:
    """Manifests are read only after the card is locked."""
    convert(tmp_path, "a.jsonl")
    convert(tmp_path, "b.jsonl")
    whole = (tmp_path / "README.md").read_bytes()
    manifest = manifest_of(tmp_path / "b.jsonl")
    saved = manifest.rename(tmp_path / "saved")
    with output_lock(str(tmp_path / "README.md")):
        waiting = threading.Thread(target=write_card, args=[str(tmp_path)], kwargs={"force": True})
        waiting.start()
        time.sleep(0.3)
        saved.rename(manifest)
    waiting.join()
    assert (tmp_path / "README.md").read_bytes() == whole


@pytest.mark.long
def test_each_site_is_a_folder_and_a_configuration(tmp_path: Path) -> None:
    """`--recipe hub` of several sites makes one data set, as on the hub; the commands make it."""
    sites = ["bread.stackexchange.com", "votes.stackexchange.com"]
    for site in sites:
        shutil.copytree(SITE, tmp_path / site)
    options = ("--recipe", "hub", "-f", "parquet", "--card", "-q", "--split", "2files")
    run("convert", *sites, "--output-dir", "out", *options, cwd=tmp_path, code=0)
    out = tmp_path / "out"
    names = [f"train-{number:05}-of-00002.parquet" for number in range(2)]
    every = [f"{site}/{name}" for site in sites for name in names]
    assert check_sums(out) == every
    lines, _ = front_matter(out / "README.md")
    paths = [line.strip(' -"') for line in lines if ".parquet" in line]
    assert paths == ["*/train-*.parquet", *every]
    again = tmp_path / "again"
    shutil.copytree(SITE, again)
    run(*commands(out)[1], "-q", cwd=again, code=0)
    for name in names:
        assert pq.read_table(again / sites[1] / name).equals(pq.read_table(out / sites[1] / name))


def test_one_site_of_the_hub_form_elsewhere_has_a_card_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    so2docs.convert(SITE, tmp_path / "set" / "mine.parquet", recipe="hub", card=True)
    assert "    - mine-00000-of-00001.parquet\n" in (tmp_path / "set" / "README.md").read_text()
    assert not (tmp_path / "README.md").exists()


@pytest.mark.parametrize("text", ["", "no manifest", '{\n  "format": 1'])
def test_advice_about_a_damaged_manifest(text: str, tmp_path: Path) -> None:
    output, other = convert(tmp_path), tmp_path / "other.jsonl"
    manifest_of(output).write_text(text)
    with pytest.raises(
        so2docs.OutputError, match=r"card=True and force=True, or remove it"
    ) as error:
        so2docs.convert(SAMPLES / "posts.xml", other, card=True)
    assert str(manifest_of(output)) in str(error.value)
    assert not other.exists()
    convert(tmp_path, force=True)
    so2docs.convert(SAMPLES / "posts.xml", other, card=True)
    assert check_sums(tmp_path) == ["other.jsonl", "questions.jsonl.gz"]


def test_a_manifest_without_its_output_is_replaced(tmp_path: Path) -> None:
    output = convert(tmp_path)
    output.unlink()
    manifest_of(output).write_text("damaged")
    assert load(str(manifest_of(convert(tmp_path))))


def test_a_manifest_goes_with_its_output(tmp_path: Path) -> None:
    output = convert(tmp_path)
    so2docs.convert(SAMPLES / "votes.xml", output, force=True)
    assert not manifest_of(output).exists()


@pytest.mark.parametrize("name", ["README.md", "SHA256SUMS", ".q.jsonl.manifest"])
def test_the_same_command_writes_a_card_that_failed(name: str, tmp_path: Path) -> None:
    in_the_way = tmp_path / (name if name == "SHA256SUMS" else f".{name}.part")
    in_the_way.symlink_to(tmp_path)
    with pytest.raises(so2docs.So2docsError, match=name):
        convert(tmp_path, "q.jsonl")
    assert not (tmp_path / name).is_file()
    in_the_way.unlink()
    convert(tmp_path, "q.jsonl")
    assert check_sums(tmp_path) == ["q.jsonl"]
    assert (tmp_path / "README.md").exists()
    assert not list(tmp_path.glob(".*.part")) + list(tmp_path.glob("*.spill"))


def test_a_card_without_outputs_is_rejected(tmp_path: Path) -> None:
    posts = SAMPLES / "posts.xml"
    command = ("convert", posts, tmp_path / "q.jsonl", "--min-score", "999", "--card")
    result = run(*command, "-q")
    assert (result.returncode, "no card is written" in result.stderr) == (0, True)
    result = run("card", tmp_path / "q.jsonl")
    assert (result.returncode, "no card is written" in result.stderr) == (1, True)
    names = {".q.jsonl.index", ".q.jsonl.manifest", "q.jsonl"}
    assert {path.name for path in tmp_path.iterdir()} == names
    so2docs.convert(posts, tmp_path / "all.jsonl", card=True)  # One of the two outputs is empty.
    assert (tmp_path / "README.md").exists()


def test_hugging_face_reads_the_card(tmp_path: Path) -> None:
    """The oracle is the class of huggingface_hub that the Hub itself recommends."""
    hub = pytest.importorskip("huggingface_hub")
    shares = "train=0.5,validation=0.25,test=0.25"
    convert(tmp_path, "on.jsonl", split=shares, attribution=True, site="a.example")
    convert(tmp_path, "q.jsonl.gz", recipe="qa", site="a.example")
    card = hub.DatasetCard.load(tmp_path / "README.md", ignore_metadata_errors=False)
    assert isinstance(card.data, hub.DatasetCardData)
    data = card.data.to_dict()
    assert data["license"][0] == "cc-by-sa-4.0"
    assert [config["config_name"] for config in data["configs"]] == ["on", "q"]
    assert data["configs"][1]["data_files"] == [{"split": "train", "path": ["q.jsonl.gz"]}]
    assert data["task_categories"] == ["question-answering", "text-generation"]
    assert data["size_categories"] == ["n<1K"]
    metadata = next(f for f in data["dataset_info"][1]["features"] if f["name"] == "metadata")
    assert {"name": "tags", "sequence": "string"} in metadata["struct"]
    splits = data["dataset_info"][0]["splits"]
    assert [split["name"] for split in splits] == ["train", "validation"]


def test_licences_follow_from_the_dates(core: Any, tmp_path: Path) -> None:
    days = ("2014-01-21", "2011-04-08", "2018-05-02", "2009-01-01", "no date")
    rows = [question(n, CreationDate=f"{day}T00:00:00.000") for n, day in enumerate(days)]
    rows.append(row(Id=9, PostTypeId=4, CreationDate="2008-01-01T00:00:00.000"))
    dump = write_dump(tmp_path / "Posts.xml", *rows)
    for since, names in ((None, ("4.0", "3.0", "2.5")), ("2010", ("4.0", "3.0"))):
        output = tmp_path / "q.jsonl"
        so2docs.convert(dump, output, since=since, core=core, card=True, force=True)
        lines, _ = front_matter(tmp_path / "README.md")
        expected = [f"- cc-by-sa-{name}" for name in names]
        assert [line for line in lines if "cc-by-sa" in line] == expected
