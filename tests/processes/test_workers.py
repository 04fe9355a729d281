"""Workers return results in order, in one process or several, and report errors and deaths."""

import gc
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from traceback import format_tb

import pytest
from support.command import run_python
from support.processes import children

from so2docs.errors import Location, MalformedDumpError, So2docsError, WorkerDiedError
from so2docs.processes.pool import Workers

TESTS = str(Path(__file__).parents[1])


def late(task: int) -> tuple[int, int]:
    """Run a task that takes longer if it comes earlier."""
    time.sleep(0.002 * (10 - task))
    return task, os.getpid()


def failing(task: int) -> int:
    if task == 3:
        where = Location(5, 2, 1)
        raise MalformedDumpError("Posts.xml", "is bent", where, advice="do", excerpt=b"<posts>")
    return task


def dying(task: int) -> int:
    if task == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def importing(number: int) -> tuple[int, int]:
    """Return the id of this process, and the number of objects that its collector visits."""
    importlib.import_module("so2docs.cli")
    return os.getpid(), len(gc.get_objects())


def ignoring(number: int) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def test_forked_workers_do_not_rescan_imported_objects() -> None:
    objects: dict[int, list[int]] = {}
    with Workers(2) as workers:
        for process, count in workers.run(importing, range(9)):
            objects.setdefault(process, []).append(count)
    for first, *others in objects.values():
        assert all(count < first / 4 for count in others)


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_are_in_the_order_of_the_tasks(jobs: int) -> None:
    with Workers(jobs) as workers:
        results = list(workers.run(late, range(10)))
        again = list(workers.run(late, range(3)))
        assert len(children(os.getpid())) == (jobs if jobs > 1 else 0)
    assert [task for task, _ in results + again] == [*range(10), *range(3)]
    processes = {process for _, process in results}
    assert (os.getpid() in processes) == (jobs == 1)
    assert set(workers.peaks) >= (processes if jobs > 1 else set())
    assert not children(os.getpid())


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_are_taken_as_they_are_needed(jobs: int) -> None:
    taken = 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for task in range(100):
            taken += 1
            yield task

    with Workers(jobs) as workers:
        results = workers.run(abs, tasks())
        next(results)
        assert taken <= jobs + 2
        results.close()


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_first_error_comes_through_whole(jobs: int) -> None:
    with pytest.raises(MalformedDumpError) as caught, Workers(jobs) as workers:
        list(zip(result := iter(range(9)), workers.run(failing, range(9)), strict=True))
    assert next(result) == 4
    error = caught.value
    assert str(error) == "Posts.xml: is bent at byte 5, line 2, after post 1; do"
    assert error.excerpt == b"<posts>"
    assert "in failing" in (
        str(error.__cause__) if jobs > 1 else "".join(format_tb(error.__traceback__))
    )
    assert not children(os.getpid())


def unsendable(task: int) -> object:
    return lambda: task


def dying_within_its_result(task: int) -> bytes:
    """Return a result whose reader only gets the start."""
    if task == 1:
        threading.Timer(0.01, os.kill, [os.getpid(), signal.SIGKILL]).start()
        return bytes(128 * 1024 * 1024)
    return b""


@pytest.mark.skipif(os.name != "posix", reason="kills processes")
@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (dying, WorkerDiedError, r"perhaps because memory ran out \(if so, use"),
        (dying_within_its_result, WorkerDiedError, "was killed"),
        (unsendable, RuntimeError, "pickle"),
    ],
)
def test_a_worker_without_a_result(
    function: Callable[[int], object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words), Workers(2) as workers:
        list(workers.run(function, range(5)))
    assert not children(os.getpid())


@pytest.mark.skipif(os.name != "posix", reason="asks for signals")
def test_workers_leave_signals_to_the_caller() -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with Workers(2) as workers:
        assert list(workers.run(ignoring, [signal.SIGINT, signal.SIGTERM])) == [True, True]
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == blocked


@pytest.mark.skipif(os.name != "posix", reason="stops a process")
def test_closing_does_not_wait_for_a_stopped_worker() -> None:
    with Workers(2) as workers:
        results = workers.run(stopping, range(4))
        assert next(results) == 0


def stopping(task: int) -> int:
    if task:
        os.kill(os.getpid(), signal.SIGSTOP)
    return task


THREADS = """
import sys, threading
from so2docs.processes.pool import Workers
main = sys.modules["__main__"]
def work():
    for _ in range(2):
        with Workers(2) as workers:
            assert list(workers.run(abs, range(-9, 0))) == list(range(9, 0, -1))
threads = [threading.Thread(target=work) for _ in range(3)]
seen = set()
for thread in threads: thread.start()
while any(thread.is_alive() for thread in threads): seen.add(sys.modules["__main__"])
print("run", seen == {main})
"""


def fail_to_start(monkeypatch: pytest.MonkeyPatch, executable: str | Path) -> str:
    """Return the error of workers that an interpreter cannot start."""
    monkeypatch.setattr(sys, "executable", str(executable))
    with pytest.raises(So2docsError) as caught, Workers(2) as workers:
        list(workers.run(abs, range(3)))
    return f"{caught.value}; {caught.value.retry}"


@pytest.mark.skipif(os.name != "posix", reason="runs a shell script")
def test_interpreters_that_cannot_start_a_worker(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In uWSGI, an embedded interpreter or a frozen program, `sys.executable` is something else."""
    program, python = tmp_path / "uwsgi", tmp_path / "python"
    for path, code in ((program, "touch $0.started"), (python, "exit 7")):
        path.write_text(f"#!/bin/sh\n{code}")
        path.chmod(0o755)
    error = fail_to_start(monkeypatch, "/nowhere/python")
    assert "a worker process cannot be started: No such file or directory" in error
    assert "fewer jobs" in error
    error = fail_to_start(monkeypatch, python)
    assert "python: ended with exit code 7 in place of" in error
    assert "check this interpreter, or use jobs=1" in error
    for executable in (None, "", str(program)):
        monkeypatch.setattr(sys, "executable", executable)
        with Workers(2) as workers:
            assert list(workers.run(abs, range(-3, 0))) == [3, 2, 1]
    for prefix in ("prefix", "base_prefix"):
        monkeypatch.setattr(sys, prefix, str(tmp_path))
    error = fail_to_start(monkeypatch, program)
    assert "uwsgi is not a Python interpreter; use jobs=1" in error
    assert not Path(f"{program}.started").exists()


NOISY = """
import os, subprocess, sys
print("loaded")
os.write(1, b"again")
subprocess.run([sys.executable, "-S", "-c", "print('child')"], check=True)
assert sys.stdin.read() == ""
"""


def test_output_at_the_start_of_python_stays_out_of_the_results(tmp_path: Path) -> None:
    """`sitecustomize` and `.pth` files run before the worker does."""
    (tmp_path / "sitecustomize.py").write_text(NOISY)
    done = run_python("-c", SUM, env={"PYTHONPATH": str(tmp_path)}, stdin=subprocess.DEVNULL)
    assert done.stdout.splitlines()[-1] == "[3, 2, 1]"


SUM = """
from so2docs.processes.pool import Workers
with Workers(2) as workers:
    print(list(workers.run(abs, range(-3, 0))))
"""


def test_workers_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    for name in ("pickle", "struct", "re", "types", "site", "traceback", "queue"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a script of the user')")
    script = tmp_path / "folder" / "script.py"
    script.parent.mkdir()
    script.write_text(SUM)
    assert run_python(script, cwd=tmp_path).stdout == "[3, 2, 1]\n"


def flags_here(task: int) -> tuple[bool, bool, bool]:
    return sys.flags.isolated == 1, sys.flags.utf8_mode == 1, sys.flags.optimize == 1


@pytest.mark.parametrize("flags", [["-I"], ["-X", "utf8"], ["-O"], ["-X", "utf8=0"]])
def test_workers_have_the_flags_of_the_interpreter(flags: list[str]) -> None:
    code = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); sys.path.append({TESTS!r})
from so2docs.processes.pool import Workers
from test_workers import flags_here
with Workers(2) as workers:
    print(next(workers.run(flags_here, [1])) == flags_here(1))
"""
    assert run_python(*flags, "-c", code).stdout == "True\n"


THAT_WORKERS_CANNOT_IMPORT = """
import sys, types
from so2docs.processes.pool import Workers
def function(task): return task
function.__module__ = "only_here"
sys.modules["only_here"] = types.ModuleType("only_here")
sys.modules["only_here"].function = function
try:
    with Workers(2) as workers:
        list(workers.run(function, range(5)))
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("code", "output"),
    [(THREADS, "run True\n"), (THAT_WORKERS_CANNOT_IMPORT, "No module named 'only_here'\n")],
    ids=["threads share the interpreter untouched", "a task that workers cannot import"],
)
def test_workers_of_a_script(code: str, output: str, tmp_path: Path) -> None:
    """A task cannot be imported if the package is replaced; nothing may wait for its result."""
    (tmp_path / "script.py").write_text(code)
    result = run_python(tmp_path / "script.py", timeout=120)
    assert (result.stdout, result.stderr) == (output, "")
