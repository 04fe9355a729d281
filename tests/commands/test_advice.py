"""The advice in an error message fits the problem."""

from __future__ import annotations

import bz2
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.command import run, run_python
from support.dumps import answer, question, write_dump
from support.packed import zipped
from support.places import SAMPLES

import so2docs
from so2docs.output.part_files import REPORT, check_own


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("q.parquet", {}, "is Parquet, and so2docs reads back only JSON lines; use DuckDB"),
        (
            "q.json",
            {},
            "is a JSON array, and so2docs reads back only JSON lines; use jq",
        ),
        ("q.json.gz", {}, "is a JSON array, and so2docs"),
        ("q.ravendbdump", {}, "is an import file of RavenDB, and so2docs"),
        ("q.ndjson", {"format": "elasticsearch"}, "is bulk lines for Elasticsearch, and so2docs"),
        ("q.jsonl.gz", {"drop_fields": "Id"}, "an Id; if --fields or --drop-fields left it out"),
    ],
)
def test_advice_for_files_that_cannot_be_opened(
    name: str, options: dict[str, str], words: str, tmp_path: Path
) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    output = tmp_path / name
    so2docs.convert(SAMPLES / "posts.xml", output, jobs=1, **options)  # type: ignore[arg-type]
    for path in tmp_path.glob(".*index*"):
        path.unlink()
    for command in (["show", output, "1"], ["diff", output, output]):
        result = run(*command, code=1)
        assert words in result.stderr
        assert "Traceback" not in result.stderr


def test_a_report_on_standard_output(tmp_path: Path) -> None:
    result = run("convert", SAMPLES / "posts.xml", tmp_path / "q.jsonl.gz", "--report", "-", code=0)
    assert json.loads(result.stdout)["questions"] == 8
    result = run("convert", SAMPLES / "posts.xml", "-", "--report", "-")
    assert (result.returncode, result.stdout) == (2, "")
    assert "cannot both go to standard output" in result.stderr


def test_other_options_after_a_kill_at_the_end(tmp_path: Path) -> None:
    script = (
        "import os, sys, so2docs; from so2docs.spill import Spill\n"
        "Spill.remove = lambda self: os._exit(9)\n"
        "so2docs.convert_all([sys.argv[1]], sys.argv[2], jobs=1)"
    )
    site, folder = SAMPLES / "site", tmp_path / "out"
    run_python("-c", script, site, folder, code=9)
    command = ["convert", site, "--output-dir", folder, "--answers-by", "votes"]
    refused = run(*command, code=1)
    assert "was left by another conversion, made with other options" in refused.stderr
    assert "run with --restart to start over" in refused.stderr
    assert run(*command, "--restart", "--force").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("convert no/where/Posts.xml", "no/where/Posts.xml: cannot be read: No such file"),
        ("convert posts.xml/Posts.xml", "posts.xml/Posts.xml: cannot be read: Not a directory"),
        ("convert posts.xml o.jsonl --table comments=C.xml", "C.xml: cannot be read: No such file"),
        ("convert posts.xml o.jsonl --report no/r.json", "no/r.json: the folder no does not exist"),
        ("convert posts.xml no/o.jsonl", "no/o.jsonl: the folder no does not exist"),
        ("convert posts.xml o.jsonl --work-dir no", "does not exist; create it first"),
        ("convert posts.xml posts.xml/o.jsonl", "posts.xml is a file, not a folder; choose"),
        ("convert posts.xml o.jsonl --work-dir posts.xml", "choose another --work-dir"),
        ("convert posts.xml - --work-dir posts.xml", "choose another --work-dir"),
        (
            "show q.json.gz 1",
            "q.json.gz: cannot be read: No such file or directory; check the name",
        ),
    ],
)
def test_a_path_in_a_missing_folder(arguments: str, words: str, somewhere: Path) -> None:
    result = run(*arguments.split(), cwd=somewhere, code=1)
    assert words in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dump and an output."""
    folder = tmp_path_factory.mktemp("somewhere")
    (folder / "posts.xml").write_bytes((SAMPLES / "posts.xml").read_bytes())
    so2docs.convert(folder / "posts.xml", folder / "q.jsonl.gz", jobs=1)
    (folder / "r.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ["convert", ""],
        ["convert", "posts.xml", ""],
        ["convert", "posts.xml", "--output-dir", ""],
        ["convert", "posts.xml", "o.jsonl", "--report", ""],
        ["convert", "posts.xml", "o.jsonl", "--work-dir", ""],
        ["convert", "posts.xml", "o.jsonl", "--table", "comments="],
        ["diff", "q.jsonl.gz", "q.jsonl.gz", ""],
        ["sqlite", "posts.xml", ""],
        ["serve", ""],
    ],
)
def test_refuses_arguments_left_empty_by_an_unset_variable(
    arguments: list[str], somewhere: Path
) -> None:
    before = sorted(somewhere.iterdir())
    result = run(*arguments, cwd=somewhere, code=2)
    assert "empty, perhaps from an unset variable" in result.stderr
    assert sorted(somewhere.iterdir()) == before


def test_empty_names_in_the_library(somewhere: Path, tmp_path: Path) -> None:
    output = somewhere / "q.jsonl.gz"
    with pytest.raises(so2docs.OptionError, match="OUTPUT is empty"):
        so2docs.convert(somewhere / "posts.xml", "")
    with pytest.raises(so2docs.OptionError, match="output_dir is empty"):
        so2docs.convert_all([somewhere / "posts.xml"], "")
    with pytest.raises(so2docs.OptionError, match="empty, perhaps from an unset"):
        so2docs.diff(output, output).write("")
    with pytest.raises(so2docs.OutputError, match="empty, perhaps from an unset"):
        check_own("", REPORT)


@pytest.mark.parametrize("name", ["posts.xml", "posts.xml.bz2", "posts.zip"])
def test_a_dump_in_the_place_of_an_output(name: str, tmp_path: Path) -> None:
    dump = (SAMPLES / "posts.xml").read_bytes()
    if name == "posts.zip":
        zipped(tmp_path / name, {"Posts.xml": dump})
    else:
        (tmp_path / name).write_bytes(bz2.compress(dump) if name.endswith("bz2") else dump)
    for command in (["show", tmp_path / name, "1"], ["diff", tmp_path / name, tmp_path / name]):
        result = run(*command, code=1)
        assert "reads back only JSON lines; convert it with so2docs convert first" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("convert posts.xml out.xml", "the extension .xml"),
        (
            "convert posts.xml out",
            "did you mean out.jsonl.gz, or, for several dumps, a fol",
        ),
        ("convert posts.xml out --compression zstd", "did you mean out.jsonl.zst, or"),
        ("convert posts.xml new/", "did you mean new/questions.jsonl.gz, or, for several dumps"),
        ("convert posts.xml .", "did you mean ./questions.jsonl.gz, or, for several dumps, --outp"),
        ("convert posts.xml b.jsonl.gz --recipe beir", "writes a folder, but b.jsonl.gz is"),
        ("convert posts.xml s3://bucket/o.jsonl", "outputs are local files"),
        ("convert posts.xml o.jsonl --limit 0", "--limit is 0; it must be 1 or more"),
        ("convert posts.xml o.jsonl --nest vote", "did you mean votes?"),
        ("convert posts.xml o.jsonl --all-tags", "--all-tags needs --tag"),
        ("convert posts.xml o.jsonl --body mardown", "did you mean markdown?"),
        ("convert posts.xml o.jsonl --recipe sftt", "did you mean sft?"),
        ("convert posts.xml o.jsonl --recipe no.module:f", "check its name, and install it or put"),
        ("convert posts.xml o.jsonl --recipe json:f", "no attribute 'f'; check the name after"),
        ("convert posts.xml o.jsonl --recipe json:__name__", "but str; give one by name"),
        ("sample posts.xml", "posts.xml: is a file, not a folder; choose another folder"),
        ("convert posts.xml --output-dir r.json", "r.json: is a file, not a folder; choose"),
        ("tables posts.xml r.json", "r.json: is a file, not a folder; choose another folder"),
        ("convrt posts.xml", "did you mean convert?"),
    ],
)
def test_advice_for_typical_mistakes(arguments: str, words: str, somewhere: Path) -> None:
    before = sorted(somewhere.iterdir())
    result = run(*arguments.split(), cwd=somewhere, code=2)
    assert words in result.stderr
    assert sorted(somewhere.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "same"),
    [
        ("--since 2024", "--since 2024-01-01"),
        ("--nest comments,votes", "--nest votes --nest comments"),
        ("--tag kettles,silence", "--tag silence --tag kettles"),
    ],
)
def test_accepts_synonyms_of_options(arguments: str, same: str, tmp_path: Path) -> None:
    outputs = []
    for number, options in enumerate((arguments, same)):
        folder = tmp_path / str(number)
        folder.mkdir()
        dump = SAMPLES / "site" / "Posts.xml"
        result = run("convert", dump, "o.jsonl", *options.split(), "-q", cwd=folder)
        assert (result.returncode, result.stderr) == (0, "")
        outputs.append((folder / "o.jsonl").read_bytes())
    assert outputs[0] == outputs[1] != b""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--tag Discusion", "no question passed all filters; the output is empty\n"),
        ("--tag discussion --min-score 5", "no question passed all filters; the output is empty\n"),
        ("--min-score 5", "no question passed all filters; the output is empty\n"),
        ("--tag discussion", ""),
    ],
)
def test_an_empty_result_of_a_filter_is_reported(options: str, words: str, tmp_path: Path) -> None:
    tags = ("<discussion>", "<Discussion><tea>", "<discovery>", "|discussion|", "<tea>")
    rows = [question(number, Tags=tag) for number, tag in enumerate(tags, 1)]
    dump = write_dump(tmp_path / "Posts.xml", *rows, answer(9, 1, Tags="<discussion>"))
    for extra in ((), ("--chunk-bytes", "100", "--force")):
        result = run("convert", dump, tmp_path / "q.jsonl", "-q", "-j1", *options.split(), *extra)
        assert (result.returncode, result.stderr.removeprefix("so2docs: ")) == (0, words)


def test_only_outputs_are_indexed(tmp_path: Path) -> None:
    (tmp_path / "dump.jsonl").write_bytes((SAMPLES / "posts.xml").read_bytes())
    result = run("show", tmp_path / "dump.jsonl", "1", code=1)
    assert result.stderr.count("\n") == 1
    assert "building an index in one pass" not in result.stderr
    (tmp_path / "q.parquet").write_bytes(b"PAR1\xed\xa0\x80\nPAR1")
    with pytest.raises(so2docs.OutputError, match="is Parquet, and so2docs reads back only"):
        list(so2docs.read(tmp_path / "q.parquet"))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders that commands are given by mistake, and a text file named like a database."""
    folder = tmp_path_factory.mktemp("odd")
    for name in ("dumps/a", "dumps/b", "tar", "outputs"):
        (folder / name).mkdir(parents=True)
    for name in ("a", "b"):
        shutil.copy(SAMPLES / "posts.xml", folder / "dumps" / name / "Posts.xml")
    so2docs.convert(SAMPLES / "posts.xml", folder / "outputs" / "a.jsonl.gz", jobs=1)
    (folder / "text.db").write_text("hello")
    return folder


FOLDERS = "it holds a, b; give"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("convert dumps o.jsonl", FOLDERS),
        ("convert dumps --output-dir o", FOLDERS),
        ("inspect dumps", FOLDERS),
        ("tables dumps o", FOLDERS),
        ("sqlite dumps o.db", FOLDERS),
        ("serve dumps", FOLDERS),
        ("show outputs 1", "is a folder; give a file in it"),
        ("show dumps 1", "dumps: is a folder; give a file in it"),
        (
            "serve text.db",
            "text.db: is not a database of so2docs (file is not a database)",
        ),
        ("mcp text.db", "text.db: is not a database of so2docs (file is not a database)"),
        ("convert -", "standard input: is empty; download it again, or check the command that"),
    ],
)
def test_advice_for_folders(arguments: str, words: str, odd: Path) -> None:
    result = run(*arguments.split(), cwd=odd, code=1)
    assert words in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("read", [so2docs.read, so2docs.open])
def test_readers_name_what_they_take(read: Callable[[Path], object], odd: Path) -> None:
    with pytest.raises(so2docs.OutputError, match="is a folder; give a file in it"):
        list(read(odd / "outputs"))  # type: ignore[call-overload]


def test_a_flag_named_like_a_file(tmp_path: Path) -> None:
    result = run("convert", "Nope.xml", "--work-dir", "--debug", cwd=tmp_path, code=1)
    assert "Traceback" not in result.stderr
