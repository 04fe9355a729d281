"""The advice in an error message fits the problem."""

from __future__ import annotations

import bz2
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.command import run, run_python
from support.dumps import answer, question, write_dump
from support.packed import zipped
from support.places import SAMPLES

import so2docs
from so2docs.output.part_files import REPORT, check_own


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


FOREIGN: dict[str, tuple[dict[str, Any], str]] = {
    "t.parquet": ({}, "is Parquet, and so2docs reads back only JSON lines; use DuckDB"),
    "t.json": ({}, "is a JSON array, and so2docs reads back only JSON lines; use jq"),
    "t.json.gz": ({}, "is a JSON array, and so2docs"),
    "t.ravendbdump": ({}, "is an import file of RavenDB, and so2docs"),
    "t.ndjson": ({"format": "elasticsearch"}, "is bulk lines for Elasticsearch, and so2docs"),
    "t.jsonl.gz": ({"drop_fields": "Id"}, "an Id; if --fields or --drop-fields left it out"),
}
"""Outputs that cannot be opened, with their options and the advice."""

DUMPS = ("posts.xml", "posts.xml.bz2", "posts.zip", "dump.jsonl")


@pytest.fixture(scope="module")
def somewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with dumps, outputs, and files and folders that are given by mistake."""
    folder = tmp_path_factory.mktemp("somewhere")
    dump = (SAMPLES / "posts.xml").read_bytes()
    for name in ("posts.xml", "dump.jsonl", "dumps/a/Posts.xml", "dumps/b/Posts.xml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(dump)
    (folder / "posts.xml.bz2").write_bytes(bz2.compress(dump))
    zipped(folder / "posts.zip", {"Posts.xml": dump})
    (folder / "outputs").mkdir()
    foreign = {name: options for name, (options, _) in FOREIGN.items()}
    for name, options in ({"q.jsonl.gz": {}, "outputs/a.jsonl.gz": {}} | foreign).items():
        so2docs.convert(folder / "posts.xml", folder / name, jobs=1, **options)
    for name in FOREIGN:
        (folder / f".{name}.index").unlink(missing_ok=True)
    (folder / "r.json").write_text("{}")
    (folder / "text.db").write_text("hello")
    return folder


EMPTY = "empty, perhaps from an unset variable"
SEVERAL = "it holds a, b; give"
NOT_A_DATABASE = "text.db: is not a database of so2docs (file is not a database)"
IS_FILE = "is a file, not a folder; choose"
FAILURES = [
    ("convert no/where/Posts.xml", "no/where/Posts.xml: cannot be read: No such file"),
    ("convert posts.xml/Posts.xml", "posts.xml/Posts.xml: cannot be read: Not a directory"),
    ("convert posts.xml o.jsonl --table comments=C.xml", "C.xml: cannot be read: No such file"),
    ("convert posts.xml o.jsonl --report no/r.json", "no/r.json: the folder no does not exist"),
    ("convert posts.xml no/o.jsonl", "no/o.jsonl: the folder no does not exist"),
    ("convert posts.xml o.jsonl --work-dir no", "does not exist; create it first"),
    ("convert posts.xml posts.xml/o.jsonl", "posts.xml is a file, not a folder; choose"),
    ("convert posts.xml o.jsonl --work-dir posts.xml", "choose another --work-dir"),
    ("convert posts.xml - --work-dir posts.xml", "choose another --work-dir"),
    ("show no.json.gz 1", "no.json.gz: cannot be read: No such file or directory; check the name"),
    ("convert dumps o.jsonl", SEVERAL),
    ("inspect dumps", SEVERAL),
    ("tables dumps o", SEVERAL),
    ("sqlite dumps o.db", SEVERAL),
    ("serve dumps", SEVERAL),
    ("show outputs 1", "is a folder; give a file in it"),
    ("show dumps 1", "dumps: is a folder; give a file in it"),
    ("serve text.db", NOT_A_DATABASE),
    ("mcp text.db", NOT_A_DATABASE),
    ("convert -", "standard input: is empty; download it again, or check the command that"),
    # A flag in the place of a value is the name of a folder.
    ("convert Nope.xml --work-dir --debug", "Nope.xml: cannot be read"),
]
for _command in ("show {0} 1", "diff {0} {0}"):
    FAILURES += [(_command.format(name), words) for name, (_, words) in FOREIGN.items()]
    FAILURES += [
        (_command.format(name), "reads back only JSON lines; convert it with so2docs convert first")
        for name in DUMPS
    ]
"""Commands that fail (exit code 1), and a part of the message."""

WRONG_USAGE = [
    ("convert posts.xml out.xml", "the extension .xml"),
    ("convert posts.xml out", "did you mean out.jsonl.gz, or, for several dumps, a fol"),
    ("convert posts.xml out --compression zstd", "did you mean out.jsonl.zst, or"),
    ("convert posts.xml new/", "did you mean new/questions.jsonl.gz, or, for several dumps"),
    ("convert posts.xml .", "did you mean ./questions.jsonl.gz, or, for several dumps, --outp"),
    ("convert posts.xml b.jsonl.gz --recipe beir", "writes a folder, but b.jsonl.gz is"),
    ("convert posts.xml s3://bucket/o.jsonl", "outputs are local files"),
    ("convert posts.xml o.jsonl --nest vote", "did you mean votes?"),
    ("convert posts.xml o.jsonl --body mardown", "did you mean markdown?"),
    ("convert posts.xml o.jsonl --recipe sftt", "did you mean sft?"),
    ("convert posts.xml o.jsonl --recipe no.module:f", "check its name, and install it or put"),
    ("convert posts.xml o.jsonl --recipe json:f", "no attribute 'f'; check the name after"),
    ("convert posts.xml o.jsonl --recipe json:__name__", "but str; give one by name"),
    ("convert posts.xml - --report -", "cannot both go to standard output"),
    ("sample posts.xml", f"posts.xml: {IS_FILE} another folder"),
    ("convert posts.xml --output-dir r.json", f"r.json: {IS_FILE}"),
    ("tables posts.xml r.json", f"r.json: {IS_FILE} another folder"),
    ("convrt posts.xml", "did you mean convert?"),
    ("convert", "so2docs: missing argument 'DUMP [OUTPUT]'; see so2docs convert --help"),
    ("convert posts.xml --answers-by age", "so2docs: --answers-by is 'age'"),
    ("convert posts.xml --tags a", "so2docs: no such option"),
    ("convert posts.xml --level", "so2docs: option '--level' requires an argument"),
    ("card posts.xml b", "so2docs: got unexpected extra argument (b); see so2docs card --help"),
    ("completion tcsh", "so2docs: invalid value for 'SHELL'"),
    ("serve posts.xml --port x", "so2docs: invalid value for '--port': 'x' is"),
    ("--nope", "so2docs: no such option"),
    ("nope", "so2docs: there is no command 'nope'"),
    ("--verbose", "so2docs: give a command; so2docs --help lists all commands"),
    ("convert ''", EMPTY),
    ("convert posts.xml ''", EMPTY),
    ("convert posts.xml --output-dir ''", EMPTY),
    ("convert posts.xml o.jsonl --report ''", EMPTY),
    ("convert posts.xml o.jsonl --work-dir ''", EMPTY),
    ("convert posts.xml o.jsonl --table comments=", EMPTY),
    ("diff q.jsonl.gz q.jsonl.gz ''", EMPTY),
    ("sqlite posts.xml ''", EMPTY),
    ("serve ''", EMPTY),
]
"""Commands that are wrong (exit code 2), and a part of the message."""


@pytest.mark.parametrize(
    ("command", "words", "code"),
    [(*case, 1) for case in FAILURES] + [(*case, 2) for case in WRONG_USAGE],
)
def test_messages_say_what_to_do(command: str, words: str, code: int, somewhere: Path) -> None:
    """The message is one line with at most one suggestion, and nothing is written or printed."""
    tells_more = command.startswith(("diff", "serve"))
    before = sorted(somewhere.rglob("*"))
    result = run(*shlex.split(command), cwd=somewhere, code=code)
    [message] = [line for line in result.stderr.splitlines() if words in line]
    assert tells_more or f"{message}\n" == result.stderr
    assert "Traceback" not in result.stderr
    assert message.count("did you mean") <= 1
    assert result.stdout == ""
    assert sorted(somewhere.rglob("*")) == before


def test_a_folder_of_dumps_as_one_of_several(somewhere: Path, tmp_path: Path) -> None:
    assert SEVERAL in run("convert", somewhere / "dumps", "--output-dir", tmp_path, code=1).stderr


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
