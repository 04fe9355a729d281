"""Run the command in a separate process, which pauses at a requested step.

A step is a function call in the main thread of the main process; a conversion has thousands of
steps, the same ones in every run. At the requested step, the process stops itself (SIGSTOP), so
that there is time to apply the fault from outside. Processes are forked after the package has been
imported, because starting Python takes longer than these conversions.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

from support.processes import children, members

import so2docs
from faults.verdict import Result
from so2docs.__main__ import main
from so2docs.commands.convert import convert as COMMAND  # noqa: N812
from so2docs.registry import find_hook

with suppress(ImportError):
    import pyarrow.parquet  # noqa: F401  # Otherwise each conversion to Parquet imports it.

OPTIONS = {word for option in COMMAND.params for word in option.opts}
"""Options of the `convert` command under test, which may be an earlier version without some."""

FORK = multiprocessing.get_context("fork")


class HangError(Exception):
    """A process did not end in time."""


class Process:
    """A running conversion.

    Args:
        words: The command line after `so2docs convert`.
        folder: The current folder.
        chunk_bytes: The chunk size, as in `so2docs.convert`.
        source: File to pass through a pipe as standard input; None for empty standard input.
        takes: Bytes that the reader of standard output reads before it exits; None for all.
        stop_at: Number of the step to pause at; None to run without a pause.
        seconds: Time after which the process counts as hanging.
        notes: Folder for messages, standard output and the number of steps.
    """

    def __init__(
        self,
        words: list[str],
        folder: Path,
        chunk_bytes: int,
        *,
        source: Path | None = None,
        takes: int | None = None,
        stop_at: int | None = None,
        seconds: float,
        notes: Path,
    ) -> None:
        self.deadline = time.monotonic() + seconds
        self.notes = notes
        self.pipes: list[subprocess.Popen[bytes]] = []
        with (self.notes / "messages").open("wb") as messages:
            ends = self._source(source), self._reader(takes), messages.fileno()
            work = partial(_convert, words, folder, chunk_bytes, ends, stop_at, self.notes)
            self.process = FORK.Process(target=work)
            self.process.start()
        for pipe in self.pipes:
            for end in (pipe.stdin, pipe.stdout):
                if end is not None:
                    end.close()
        assert self.process.pid is not None
        self.pid = self.process.pid

    def _source(self, source: Path | None) -> int:
        if source is None:
            return os.open(os.devnull, os.O_RDONLY)
        self.pipes.append(
            subprocess.Popen(["cat", source], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        )
        assert self.pipes[-1].stdout is not None
        return self.pipes[-1].stdout.fileno()

    def _reader(self, takes: int | None) -> int:
        command = ["cat"] if takes is None else ["head", "-c", str(takes)]
        with (self.notes / "stdout").open("wb") as file:
            self.pipes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=file))
        assert self.pipes[-1].stdin is not None
        return self.pipes[-1].stdin.fileno()

    def stands_still(self) -> bool:
        """Wait until the process pauses; return False if it ended instead."""
        flags = os.WSTOPPED | os.WEXITED | os.WNOHANG | os.WNOWAIT
        while (state := os.waitid(os.P_PID, self.pid, flags)) is None:
            self._check()
            time.sleep(0.001)
        return state.si_code == os.CLD_STOPPED

    def workers(self) -> list[int]:
        return children(self.pid)

    def send(self, pid: int, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, number)

    def send_all(self, number: signal.Signals) -> None:
        """Send a signal to the main process, which may not have a group yet, and to the workers."""
        if self.process.exitcode is None:
            self.send(self.pid, number)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def end(self) -> Result:
        """Continue all processes, wait until they end, and return the result.

        Raises:
            HangError: A process did not end within the time limit.
        """
        try:
            self.send_all(signal.SIGCONT)
            while self.process.exitcode is None:
                self._check()
                self.process.join(0.02)
            while self.is_left():
                self._check()
                time.sleep(0.01)
            for pipe in self.pipes:
                pipe.wait(10)
        finally:
            self.kill()
        assert self.process.exitcode is not None
        return Result(self.process.exitcode, (self.notes / "messages").read_text(errors="replace"))

    def is_left(self) -> bool:
        """Whether the main process or a worker is still running."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            return bool(members(self.pid))
        return False

    def kill(self) -> None:
        """Kill all processes."""
        self.send_all(signal.SIGKILL)
        self.process.join()
        for pipe in self.pipes:
            pipe.kill()
            pipe.wait()

    def _check(self) -> None:
        if time.monotonic() > self.deadline:
            raise HangError("still running: " + " ".join(map(str, members(self.pid))))

    @property
    def steps(self) -> int:
        """The number of steps of the conversion, which must have run without a pause."""
        return int((self.notes / "steps").read_text())

    @property
    def stdout(self) -> bytes:
        return (self.notes / "stdout").read_bytes()


def become_command(folder: Path, ends: tuple[int, int, int], temporary: Path) -> None:
    """Give a forked process its own session, standard streams and folders."""
    os.setsid()
    for to, end in enumerate(ends):
        os.dup2(end, to)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(end, mode, closefd=False) for end, mode in enumerate("rww")
    )
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    tempfile.tempdir = os.environ["TMPDIR"] = str(temporary)


def _convert(
    words: list[str],
    folder: Path,
    chunk_bytes: int,
    ends: tuple[int, int, int],
    stop_at: int | None,
    notes: Path,
) -> None:
    """Run the command in the forked process."""
    become_command(folder, ends, folder.with_name("tmp"))
    _set_chunk_bytes(chunk_bytes)
    count = _count_steps(stop_at)
    try:
        main(["convert", "--quiet", *words])
    finally:
        sys.setprofile(None)
        if stop_at is None:
            (notes / "steps").write_text(str(count()))


def _set_chunk_bytes(chunk_bytes: int) -> None:
    """Replace the functions that the command calls by ones with this chunk size."""
    command = COMMAND.callback
    while hasattr(command, "__wrapped__"):
        command = command.__wrapped__
    names = command.__globals__
    for name, value in list(names.items()):
        if value is so2docs.convert:
            names[name] = partial(value, chunk_bytes=chunk_bytes)
        elif value is find_hook:
            names[name] = lambda hook: (
                lambda function, *paths, **options: find_hook(hook)(
                    function.func, *paths, chunk_bytes=chunk_bytes, **options
                )
            )


def _count_steps(stop_at: int | None) -> Callable[[], int]:
    """Count calls, and pause this process at call `stop_at`; return a function for the count."""
    calls = 0

    def step(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        # Python runs no signal handlers between the body of a `with` block and the `__exit__` of a
        # context manager written in C, such as a lock. But it would run them in this function, and
        # the lock would stay locked.
        is_end_of_with = event == "c_call" and getattr(argument, "__name__", "") == "__exit__"
        if event in ("call", "c_call") and not is_end_of_with:
            calls += 1
            if calls == stop_at:
                os.kill(os.getpid(), signal.SIGSTOP)

    sys.setprofile(step)
    return lambda: calls
