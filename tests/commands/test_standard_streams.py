"""Standard streams that are closed, full, or take only a part of what is written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.command import run, run_process, run_python, start
from support.dumps import question, write_dump
from support.places import SAMPLES

import so2docs
from so2docs.cli import COMMANDS
from so2docs.errors import STARTS_OVER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="closes descriptors")
IN, OUT, ERR = 0, 1, 2
DUMP = "sample.stackexchange.com.7z"
PRINTS = {
    "sample other",
    f"inspect {DUMP}",
    f"inspect {DUMP} --json",
    f"convert {DUMP} new.jsonl",
    f"convert {DUMP} --output-dir new",
    "recipes",
    "recipes pairs",
    f"tables {DUMP} new",
    "show q.jsonl 1",
    "show q.jsonl 1 --text",
    "show q.jsonl 999",
    "inspect q.jsonl",
    "diff q.jsonl q.jsonl new.jsonl --json",
    f"sqlite {DUMP} new.db",
    "card q.jsonl",
    "completion bash",
    "no-such-command",
}
"""Commands that print and need no stream."""
NEEDS = {
    "convert - new.jsonl": (IN, "standard input: is closed; pipe a dump into it"),
    f"convert {DUMP} -": (OUT, "standard output is closed; name a file instead of -"),
    f"convert {DUMP} new.jsonl --report -": (OUT, "standard output is closed; name a file"),
    f"tables {DUMP} - --only posts --format csv": (OUT, "standard output is closed; name a file"),
    f"tables {DUMP} - --only posts --format arrow": (OUT, "standard output is closed; name"),
    "mcp q.db": (OUT, "standard input or output is closed; let a program"),
}
"""Commands that need a stream, and how they end without it."""
ENDLESS = {"serve", "spark"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    run("sample", ".", cwd=folder, code=0)
    run("convert", DUMP, "q.jsonl", "--card", cwd=folder, code=0)
    run("convert", SAMPLES / "votes.xml", "other.jsonl", cwd=folder, code=0)
    run("sqlite", DUMP, "q.db", cwd=folder, code=0)
    return folder


def close(*numbers: int) -> None:
    for number in numbers:
        os.close(number)


def run_closed(folder: Path, words: str, *numbers: int) -> Any:
    """Run a command with these descriptors closed."""
    return run_process(*words.split(), cwd=folder, preexec_fn=partial(close, *numbers))


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the new files of a command, without databases, which contain the date."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    new = {str(path.relative_to(folder)): path for path in paths if "new" in str(path)}
    return {name: b"" if name.endswith(".db") else path.read_bytes() for name, path in new.items()}


def test_every_command_is_tried() -> None:
    names = {words.split()[0] for words in (*PRINTS, *NEEDS)}
    assert names - {"no-such-command"} == COMMANDS.keys() - ENDLESS


def run_with_reader(folder: Path, words: str) -> Any:
    return run_process(*words.split(), cwd=folder, errors="replace")


def run_without_reader(folder: Path, words: str) -> Any:
    """Run a command whose standard output is a pipe that nobody reads, as after `head`."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer) as pipe:
        return run_process(*words.split(), cwd=folder, stdout=pipe)


@pytest.mark.parametrize("words", ["--help", "--version", "convert --help", "recipes"])
def test_a_reader_that_left_ends_a_command_quietly(words: str, folder: Path) -> None:
    done = run_without_reader(folder, words)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.long
@pytest.mark.parametrize("words", sorted({*PRINTS, *NEEDS} - {"convert - new.jsonl", "mcp q.db"}))
def test_every_command_that_prints_ends_quietly(words: str, folder: Path, tmp_path: Path) -> None:
    usual, left = (
        run_it(shutil.copytree(folder, tmp_path / name), words)
        for name, run_it in (("usual", run_with_reader), ("left", run_without_reader))
    )
    assert left.returncode == (141 if usual.stdout else usual.returncode)
    assert not usual.stdout or "so2docs: " not in left.stderr.replace(usual.stderr, "")


@pytest.mark.long
@pytest.mark.parametrize("words", sorted(NEEDS))
def test_commands_name_a_closed_stream_that_they_need(words: str, folder: Path) -> None:
    number, message = NEEDS[words]
    done = run_closed(folder, words, number)
    assert done.returncode == 1
    assert done.stderr.startswith(f"so2docs: {message}")
    assert done.stderr.count("\n") == 1
    assert not files_of(folder)


@pytest.mark.long
def test_the_reader_serves_without_streams(folder: Path) -> None:
    without = partial(close, IN, OUT)
    words = ("serve", "q.db", "--port", "0")
    with start(
        *words, cwd=folder, preexec_fn=without, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("so2docs: serving http://")
        process.terminate()
        assert "Traceback" not in process.stderr.read()
    assert process.returncode == 143


def test_a_file_never_gets_the_number_of_a_closed_stream(folder: Path) -> None:
    code = (
        "import os; from so2docs.standard_streams import prepare_standard_streams as prepare\n"
        "prepare(); assert open('q.jsonl').fileno() > 2; print('printed'); os.write(2, b'lost')"
    )
    run_python("-c", code, cwd=folder, preexec_fn=partial(close, IN, OUT, ERR))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dump whose rows do not fit in a small pipe."""
    path = tmp_path_factory.mktemp("large") / "Posts.xml"
    return write_dump(path, *(question(number, Body="x" * 1000) for number in range(1, 200)))


def read_slowly(*arguments: object, script: str | None = None) -> bytes:
    """Return the output of the command, or of a script, in a pipe that never blocks."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    begin: Callable[..., subprocess.Popen[Any]] = partial(start, *arguments)
    if script is not None:
        begin = partial(subprocess.Popen, [sys.executable, "-c", script])
    with begin(stdout=writer, stderr=subprocess.PIPE, env=environment) as process:
        os.close(writer)
        # A full pipe is what the process finds while nobody reads.
        with os.fdopen(reader, "rb") as pipe:
            received = b"".join(iter(lambda: pipe.read(1000), b""))
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0
    return received


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_pipe_that_does_not_block_gets_everything(form: str, large: Path) -> None:
    words = ("tables", large, "-", "--only", "posts", "--format", form, "-q")
    assert read_slowly(*words).decode() == run(*words, code=0).stdout


def test_documents_and_results_in_a_pipe_that_does_not_block(large: Path, tmp_path: Path) -> None:
    output = tmp_path / "q.jsonl"
    so2docs.convert(large, output)
    assert read_slowly("convert", large, "-", "--format", "jsonl", "-q") == output.read_bytes()
    script = f"import so2docs; so2docs.convert({str(large)!r}, '-', format='jsonl')"
    assert read_slowly(script=script) == output.read_bytes()
    ids = range(1, 200)
    assert read_slowly("show", output, *ids) == output.read_bytes()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    ("words", "unbuffered"),
    [
        ("inspect q.jsonl", ""),
        ("inspect q.jsonl", "1"),
        ("show q.jsonl 1", ""),
        ("diff q.jsonl other.jsonl", ""),
        (f"convert {DUMP} - -q", ""),
    ],
)
def test_results_for_a_full_disk_are_an_error(words: str, unbuffered: str, folder: Path) -> None:
    with open("/dev/full", "w") as full:
        env = {"PYTHONUNBUFFERED": unbuffered}
        done = run_process(*words.split(), cwd=folder, stdout=full, env=env, code=1)
    where = "standard output" if words.startswith(("inspect", "show")) else "-"
    assert re.fullmatch(f"so2docs: {where}: .*; free some space; {STARTS_OVER}\n", done.stderr)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_messages_for_a_full_disk_are_dropped(folder: Path, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        run_process("convert", DUMP, tmp_path / "q.jsonl", cwd=folder, stderr=full, code=0)
        run_process("convert", DUMP, tmp_path / "no/q.jsonl", cwd=folder, stderr=full, code=1)
        run_process("convert", "--no-such-option", cwd=folder, stderr=full, code=2)
    assert (tmp_path / "q.jsonl").read_bytes() == (folder / "q.jsonl").read_bytes()
