"""Signals at any moment of a command, from its imports until all work is done."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from support.command import run_python
from support.dumps import some_rows, write_dump
from support.places import LONG, SAMPLES

import so2docs
from so2docs.errors import STARTS_OVER

pytestmark = pytest.mark.skipif(os.name != "posix", reason="forks")

MAIN = "from so2docs.__main__ import main; main()"

AT_IMPORTS = """
import os, signal, sys

number, exit_code, every = (int(sys.argv.pop(1)) for _ in range(3))
seen = wrong = 0
is_own = True

def fork(event, arguments):
    global is_own, seen, wrong
    if event not in ("import", "exec") or not is_own or signal.getsignal(15) is signal.SIG_DFL:
        return
    seen += 1
    if seen % every:
        return
    pid = os.fork()
    if not pid:
        is_own = False
        os.kill(os.getpid(), number)
        return
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code != exit_code:
        wrong += 1
        print("exit", code, arguments[0], file=sys.stderr)

sys.addaudithook(fork)
from so2docs.__main__ import main
try:
    main()
finally:
    print(seen // every, wrong)
"""
"""Script that runs copies of the command, each with a signal when a module is found or run."""

WITHIN_A_DESTRUCTOR = """
import signal, sys

moments = iter([True])

class Dropped:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

def drop(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".blocks") and next(moments, False):
        Dropped()

sys.addaudithook(drop)
"""
"""Script that runs the command, with a signal where Python drops the resulting exception."""

AT_A_FILE = """
import signal, sys

number, name = int(sys.argv.pop(1)), sys.argv.pop(1)
moments = iter([True])

def stop(event, arguments):
    if event == "open" and str(arguments[0]).endswith(name) and next(moments, False):
        signal.raise_signal(number)

sys.addaudithook(stop)
"""
"""Script that runs the command, with a signal when it opens a file."""

AT_A_REMOVAL = """
import os, signal, sys

number, name = int(sys.argv.pop(1)), sys.argv.pop(1)

def stopping(usual):
    def remove(path, *more, **others):
        usual(path, *more, **others)
        if str(path).endswith(name):
            signal.raise_signal(number)
    return remove

os.rmdir, os.unlink = stopping(os.rmdir), stopping(os.unlink)
"""
"""Script that runs the command, with a signal when it has removed something."""

WHEN_ALL_IS_DONE = """
import atexit, builtins, os, signal, sys

class Last:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGTERM):
        kill(pid, number)

builtins.last = Last()
atexit.register(os.kill, os.getpid(), signal.SIGTERM)
"""
"""Script that runs the command, with a signal at its exit and while Python shuts down."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "code", "word"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_while_it_imports(number: int, code: int, word: str) -> None:
    every = 1 if LONG else 5
    result = run_python("-c", AT_IMPORTS, *(number, code, every), "convert", "--help")
    copies, wrong = map(int, result.stdout.splitlines()[-1].split())
    assert wrong == 0, result.stderr
    assert copies > 100
    messages = [line for line in result.stderr.splitlines() if line]
    assert len(messages) == copies
    assert {line.startswith(f"so2docs: {word}") for line in messages} == {True}


def test_ignored_ctrl_c_stays_ignored() -> None:
    """Ctrl-C in a terminal does not stop a background job of a shell script."""
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "sys.addaudithook(lambda event, _: event == 'import' and signal.raise_signal(2))\n"
        "from so2docs.__main__ import main; main()"
    )
    result = run_python("-c", script, "convert", "--help", code=None)
    assert (result.returncode, result.stderr) == (0, "")
    assert "Usage: so2docs convert" in result.stdout


def test_within_a_destructor(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "Posts.xml", *some_rows(5000))
    command = ["convert", "--quiet", str(dump), str(tmp_path / "q.jsonl")]
    result = run_python("-c", WITHIN_A_DESTRUCTOR + MAIN, *command, code=143)
    assert result.stderr.strip() == f"so2docs: terminated; {STARTS_OVER}"
    assert os.listdir(tmp_path) == ["Posts.xml"]


@pytest.mark.parametrize(
    ("command", "number", "code", "word"),
    [
        ("sqlite q.jsonl new.db", signal.SIGTERM, 143, "terminated"),
        ("diff q.jsonl Posts.xml new.jsonl", signal.SIGINT, 130, "interrupted"),
        ("show q.jsonl 1", signal.SIGTERM, 143, "terminated"),
    ],
)
def test_no_advice_to_resume_for_commands_that_start_over(
    command: str, number: int, code: int, word: str, tmp_path: Path
) -> None:
    so2docs.convert(SAMPLES / "posts.xml", tmp_path / "q.jsonl", card=True)
    shutil.copy(SAMPLES / "posts.xml", tmp_path / "Posts.xml")
    before = sorted(tmp_path.iterdir())
    at = "Posts.xml" if "Posts.xml" in command else "q.jsonl"
    result = run_python(
        "-c", AT_A_FILE + MAIN, number, at, *command.split(), cwd=tmp_path, code=code
    )
    message = result.stderr.splitlines()[-1]
    assert message in (f"so2docs: {word}", f"so2docs: {word}; {STARTS_OVER}")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("command", "last", "number"),
    [
        ("convert Posts.xml new.jsonl", "new.jsonl.spill", signal.SIGINT),
        ("convert - new.jsonl", "index.sqlite", signal.SIGTERM),
    ],
)
def test_a_signal_after_the_last_step(command: str, last: str, number: int, tmp_path: Path) -> None:
    so2docs.convert(SAMPLES / "posts.xml", tmp_path / "q.jsonl")
    shutil.copy(SAMPLES / "posts.xml", tmp_path / "Posts.xml")
    output = command.rsplit(maxsplit=1)[-1]
    side_files = {f".{output}.{kind}" for kind in ("index", "record")}
    before = {*os.listdir(tmp_path), *side_files}
    words = ["-c", AT_A_REMOVAL + MAIN, number, last, *command.split(), "--quiet"]
    with open(tmp_path / "Posts.xml") as dump:
        done = run_python(*words, cwd=tmp_path, stdin=dump)
    assert done.stderr.strip() == ""
    assert {*os.listdir(tmp_path)} - before == {output}


def test_when_all_is_done(tmp_path: Path) -> None:
    command = ["convert", "--quiet", str(SAMPLES / "posts.xml"), "q.jsonl"]
    result = run_python("-c", WHEN_ALL_IS_DONE + MAIN, *command, cwd=tmp_path)
    assert result.stderr == ""
    assert (tmp_path / "q.jsonl").read_bytes() == (SAMPLES / "posts.jsonl").read_bytes()
