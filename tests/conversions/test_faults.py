"""Rounds of faults from a seed, which must detect broken promises.

`SO2DOCS_FAULT_SEED=…` is the seed of the first round; `make faults ROUNDS=… SEED=…` makes more.
"""

import os
import subprocess
import sys

import pytest
from faults import calls
from faults.call_rounds import plan_call
from faults.plan import plan_of
from faults.verdict import (
    BrokenPromiseError,
    Result,
    check_files,
    check_left,
    check_messages,
    check_refused,
)
from support.command import run_python
from support.places import CHECKOUT, LONG

SEED = os.environ.get("SO2DOCS_FAULT_SEED", "0")

RIVAL_OF_A_RESUMED_SESSION = """
from faults.plan import Fault, Plan, Scenario
import signal
scenario = Scenario("folder", "small", "several", (), 1, 20_000, True, None)
def fault(kind, moment):
    return Fault(kind, moment, "main", signal.SIGKILL, 0, 0)
run.plan_of = lambda seed: Plan(
    seed, scenario, [fault("signal", 0.98 - seed / 50), fault("rival", 0.02)]
)
"""

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="asks Linux for paused processes"
)

needs_gcc = pytest.mark.skipif(not calls.is_supported(), reason="needs gcc")


def rounds(*options: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run rounds in a separate process, because they fork; `before` is code to run first."""
    path = "import sys; sys.path[:0] = ['checks', 'tests']"
    code = f"{path}\nimport faults.__main__ as run\n{before}\n"
    return run_python("-c", code + "run.main()", *options, cwd=CHECKOUT, code=None)


@pytest.mark.long
@pytest.mark.parametrize(
    ("jobs", "count"), [("1", "1000" if LONG else "15"), ("2", "1000" if LONG else "40")]
)
def test_random_faults(jobs: str, count: str) -> None:
    result = rounds("--seed", SEED, "--rounds", count, "--jobs", jobs)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "done by the next session" in result.stdout


@pytest.mark.long
def test_a_package_without_checksums_is_found_out() -> None:
    """A byte flips between two sessions; the round reports it with its seed."""
    broken = (
        "from so2docs import spill\nfrom so2docs.store import blocks, id_map\n"
        "for module in (spill, blocks, id_map): module.crc32 = lambda *_: 0\n"
        "from isal import isal_zlib as z; z.crc32 = z.crc32_combine = lambda *_: 0"
    )
    wrong = "wrong: exit 0 and other bytes in q"
    result = rounds(
        *("--seed", "125", "--rounds", "400", "--only", "'flip'", "--until", wrong), before=broken
    )
    assert result.returncode == 1
    assert wrong in result.stdout


@pytest.mark.long
@pytest.mark.parametrize("other", ["--answers-by votes", "--level 1"])
def test_a_rival_with_other_options_is_refused_or_wins(other: str) -> None:
    """Without a lock on the output, both conversions would mix their bytes."""
    happens = f"rival with {other}"
    result = rounds("--seed", "600", "--rounds", "400", "--only", "'rival'", "--until", happens)
    assert result.returncode == 0, result.stdout + result.stderr
    assert happens in result.stdout


@pytest.mark.long
def test_a_rival_with_the_same_options_writes_the_same_files() -> None:
    """A rival writes the output while the spill of the first session exists."""
    happens = "rival with the same options"
    result = rounds("--rounds", "20", "--until", happens, before=RIVAL_OF_A_RESUMED_SESSION)
    assert result.returncode == 0, result.stdout + result.stderr
    assert happens in result.stdout


@needs_gcc
@pytest.mark.long
def test_failing_system_calls() -> None:
    result = rounds("--calls", "--seed", SEED, "--rounds", "2000" if LONG else "15")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "again: exit 0" in result.stdout


@needs_gcc
@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "call", "what"),
    [
        ("sqlite", "open64 of /.q.db.part/q.db", "SIGKILL"),
        ("sqlite", "open64 of /.q.db.part/q.db", "fails"),
        ("diff stdout", "open64 of /.new.jsonl.index", "fails"),
        ("show", "write of /stdout", "fails"),
        ("flat csv", "rename of /flat/PostLinks", "SIGKILL"),
        ("sqlite", "open64 of /./so2docs", "SIGINT"),
        ("tables", "pread64 of /work/q.jsonl.zst.spill/users.map", "is short"),
        ("tables", "pread64 of /work/q.jsonl.zst.spill/posts.map", "is short"),
        ("tables", "read of /site", "is short"),
        ("show", "read of /bare.jsonl", "is short"),
        ("diff of sites", "open64 of /news/two.jsonl", "fails"),
        ("card", "open64 of /Posts.xml", "fails"),
        ("forced split", "unlink of /.parts-00002.jsonl.index (", "SIGKILL"),
    ],
)
def test_earlier_findings_about_system_calls(command: str, call: str, what: str) -> None:
    result = rounds("--every", command, "--only", call, what)
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{call.partition(' ')[0]}: exit" in result.stdout


@needs_gcc
@pytest.mark.long
def test_a_package_that_ignores_errors_is_detected() -> None:
    broken = (
        "import contextlib, so2docs.output.new_files as files\n"
        "files.explain = lambda path: contextlib.suppress(OSError)"
    )
    result = rounds("--every", "diff", "--only", "rename of", "fails", before=broken)
    assert result.returncode == 1
    assert "lost: exit 0 and no c.jsonl.gz" in result.stdout


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (lambda: check_messages(Result(1, "Traceback (most\n  x\nOSError: y")), "traceback: OSE"),
        (lambda: check_messages(Result(1, "so2docs: a\nso2docs: b\n")), "words: "),
        (lambda: check_messages(Result(0, "so2docs: a\n")), "words: "),
        (lambda: check_messages(Result(-7, "")), "signal: ended by 7"),
        (lambda: check_messages(Result(4, "so2docs: a\n")), "code: "),
        (lambda: check_refused(Result(1, "so2docs: no\n")), "no advice"),
        (lambda: check_left(Result(1, "so2docs: no\n")), "reader left"),
        (lambda: check_files({}, {"a": b""}), "lost: exit 0 and no a"),
        (lambda: check_files({"a": b"x"}, {"a": b""}), "wrong: exit 0 and other bytes in a"),
        (lambda: check_files({"a": b"", "b": b""}, {"a": b""}), "litter: exit 0 and b left"),
        (lambda: check_files({}, {".a.index": b""}), "lost: "),
    ],
)
def test_checks_detect_broken_promises(check: object, words: str) -> None:
    assert callable(check)
    with pytest.raises(BrokenPromiseError, match=words):
        check()


def test_a_seed_determines_a_round() -> None:
    assert [plan_of(seed) for seed in range(9)] == [plan_of(seed) for seed in range(9)]
    assert [plan_call(seed) for seed in range(9)] == [plan_call(seed) for seed in range(9)]
