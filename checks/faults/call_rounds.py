"""A round: one system call of a command fails, and the same command is run again.

A call can fail with an error, write fewer bytes than requested, or be preceded or followed by a
signal. A read can only return fewer bytes than requested. After that, the command must end with
the files of an undisturbed run or with a line of advice, and every file with a final name must be
complete. The same command, run again, must end with exactly the files of an undisturbed run.
"""

import errno
import os
import random
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from support.processes import members

from faults.calls import FAIL, NOTHING, SHORT, SIGNAL_AFTER, SIGNAL_BEFORE, Control
from faults.process import FORK, become_command
from faults.verdict import BrokenPromiseError, Result, check_messages, check_refused
from faults.writers import WRITERS, Writer, make_inputs, prepare
from so2docs.__main__ import main

Files = dict[str, bytes]

TEMPORARY = re.compile(r"\.part(/|$)|\.spill/|\.lock$|\.failed$|so2docs-[0-9a-f]{8}/|^tmp/")
"""Matches the names of files that an unfinished command may leave."""

LOCK = re.compile(r"\.lock$")
"""Matches lock files: one that cannot be removed stays until another process locks it."""

LOCK_OR_FOLDER = re.compile(r"\.lock$|so2docs-[0-9a-f]{8}/")
"""Matches lock files and temporary folders; the next command removes a folder that was left."""

REMOVAL = re.compile(r"unlink|rmdir|so2docs-[0-9a-f]{8}")

NOTICES = re.compile(r"building an index in one pass over the file|the index is kept in memory")
"""Matches lines of messages that are not errors."""

READS = (b"read", b"pread")
SHORT_CALLS = (*READS, b"write", b"pwrite", b"copy_file_range")

FAULTS = (
    (FAIL, errno.EIO),
    (FAIL, errno.ENOSPC),
    (FAIL, errno.EDQUOT),
    (SHORT, 0),
    (SIGNAL_BEFORE, signal.SIGKILL),
    (SIGNAL_AFTER, signal.SIGKILL),
    (SIGNAL_BEFORE, signal.SIGINT),
    (SIGNAL_AFTER, signal.SIGTERM),
)


@dataclass(frozen=True)
class CallPlan:
    """The plan of a round.

    Attributes:
        seed: Seed of the plan; None if every call is tried.
        writer: Name of the command in `WRITERS`.
        share: Position of the call among all calls of the command, from 0 to 1.
        what: Kind of fault, such as `FAIL`.
        number: Number of the error or signal; 0 for a short read or write.
        call: Description of the call if every call is tried; otherwise `a call`.
    """

    seed: int | None
    writer: str
    share: float
    what: int
    number: int
    call: str = "a call"

    def __str__(self) -> str:
        happens = {FAIL: "fails", SHORT: "is short", SIGNAL_BEFORE: "comes after a signal"}
        how = happens.get(self.what, "is followed by a signal")
        if self.what == FAIL:
            how += f" with {errno.errorcode[self.number]}"
        elif self.what != SHORT:
            how += f", {signal.Signals(self.number).name}"
        return f"{self.writer}: {self.call} {how}"


def plan_call(seed: int) -> CallPlan:
    """Plan the round for a seed: choose the command, the call and the fault."""
    rng = random.Random(seed)
    what, number = rng.choice(FAULTS)
    return CallPlan(seed, rng.choice(list(WRITERS)), rng.random(), what, number)


class CallRounds:
    """Runs rounds one after the other.

    Args:
        folder: Folder for all files.
        control: Structure that selects the call that fails.
        seconds: Time limit for a command.

    Attributes:
        happened: Number of commands by exit code and failed call.
        hit: Description of the call that failed in this round, or `no call`.
    """

    def __init__(self, folder: Path, control: Control, seconds: float) -> None:
        self._folder, self._control, self._seconds = folder, control, seconds
        self._place = folder / "place"
        self._inputs = folder / "inputs"
        make_inputs(self._inputs)
        self._before = files_in(self._inputs)
        self._undisturbed: dict[str, tuple[Files, list[bytes]]] = {}
        self._was_killed = False
        self.happened: Counter[str] = Counter()
        self.hit = ""
        control.root = os.fsencode(self._place)

    def every(self, name: str) -> Iterator[CallPlan]:
        """Yield a plan for each call of a command and each fault that is possible at this call."""
        _, calls = self.undisturbed(name)
        for number, call in enumerate(calls):
            for what, how in FAULTS:
                if _can_happen(what, call):
                    share = (number + 0.5) / len(calls)
                    text = f"{call.decode(errors='replace')} ({number + 1} of {len(calls)})"
                    yield CallPlan(None, name, share, what, how, text)

    def run(self, plan: CallPlan) -> None:
        """Run one round.

        Raises:
            BrokenPromiseError: The result is not as promised.
        """
        writer = WRITERS[plan.writer]
        expected, calls = self.undisturbed(plan.writer)
        call = int(plan.share * len(calls))
        remaining = range(call, len(calls))
        call = next((n for n in remaining if _can_happen(plan.what, calls[n])), call)
        self._clear()
        result = self._command(writer, plan.what, plan.number, call + 1)
        self.hit = self._calls()[call].decode(errors="replace") if self._was_hit() else "no call"
        self.happened[f"{self.hit.partition(' of ')[0]}: exit {result.code}"] += 1
        self._was_killed = result.code == -signal.SIGKILL
        actual = files_in(self._place)
        self._check(writer, result, actual, expected)
        if result.code == 0:
            return
        again = self._command(writer)
        self.happened[f"again: exit {again.code}"] += 1
        whole = {name for name in expected if name in writer.ignored}
        whole |= {
            name for name in expected.keys() & actual.keys() if actual[name] == expected[name]
        }
        if again.code == 1 and "exists" in again.messages and whole == expected.keys():
            if self._was_killed:
                return  # All work was done.
            raise BrokenPromiseError(f"end: {result.messages} when all was done")
        if writer.has_two_files and self._was_killed and "--force" in again.messages:
            again = self._command(replace(writer, words=f"{writer.words} --force"))
        self._check_done(writer, again, files_in(self._place), expected)

    def undisturbed(self, name: str) -> tuple[Files, list[bytes]]:
        """Return the files that the undisturbed command leaves, and its system calls."""
        if name not in self._undisturbed:
            self._clear()
            result = self._command(WRITERS[name])
            calls = self._calls()
            self._check_done(WRITERS[name], result, files_in(self._place), None)
            self._undisturbed[name] = files_in(self._place), calls
        return self._undisturbed[name]

    def _calls(self) -> list[bytes]:
        """Return the descriptions of the system calls of the last command."""
        return [self._control.calls[number].value for number in range(self._control.count)]

    def _was_hit(self) -> bool:
        return bool(0 < self._control.target <= self._control.count)

    def _check(self, writer: Writer, result: Result, actual: Files, expected: Files) -> None:
        """Check how a command with a fault ended, and which files it left."""
        if result.code == 0:
            self._check_done(writer, result, actual, expected, may_leave=LOCK_OR_FOLDER)
            return
        check_messages(without_notices(result), lines=writer.errors)
        if result.code == 1:
            check_refused(without_notices(result))
        resumes = writer.resumes or writer.words.startswith("convert")
        if "resume" in result.messages and not resumes:
            raise BrokenPromiseError(f"advice: nothing resumes: {result.messages}")
        for name in sorted(actual.keys() - expected.keys() - self._before.keys()):
            if not TEMPORARY.search(name):
                raise BrokenPromiseError(f"litter: {name} after {result.messages}")
        for name in sorted(actual.keys() & (expected.keys() | self._before.keys())):
            wholes = expected.get(name), self._before.get(name)
            is_part = name == "stdout" or name in writer.ignored
            if not is_part and actual[name] not in wholes:
                raise BrokenPromiseError(f"torn: {name} after {result.messages}")
        for name in sorted((expected.keys() & self._before.keys()) - actual.keys()):
            raise BrokenPromiseError(f"lost: {name} after {result.messages}")

    def _check_done(
        self,
        writer: Writer,
        result: Result,
        actual: Files,
        expected: Files | None,
        *,
        may_leave: re.Pattern[str] = LOCK,
    ) -> None:
        """Check that a command succeeded, and left the expected files and no others.

        Args:
            writer: The command.
            result: Result of the command.
            actual: The existing files.
            expected: The expected files; None to check only the result.
            may_leave: Pattern of the names of files that may stay because they could not be
                removed.
        """
        if result.code != 0:
            raise BrokenPromiseError(f"again: exit {result.code}: {result.messages}")
        check_messages(without_notices(result))
        if expected is None:
            return
        is_kept = "kept in memory" in result.messages
        is_disturbed = self._was_killed or bool(REMOVAL.search(self.hit))
        for name in sorted(expected.keys() | actual.keys()):
            if is_disturbed and may_leave.search(name):
                continue
            if name not in actual and not (is_kept and name.endswith(".index")):
                raise BrokenPromiseError(f"lost: exit 0 and no {name}")
            if name not in expected:
                raise BrokenPromiseError(f"litter: exit 0 and {name} left")
            if name in actual and actual[name] != expected[name] and name not in writer.ignored:
                raise BrokenPromiseError(f"wrong: exit 0 and other bytes in {name}")

    def _clear(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)
        shutil.copytree(self._inputs, self._place)  # Keep file times, which a spill records.

    def _command(
        self, writer: Writer, what: int = NOTHING, number: int = 0, target: int = 0
    ) -> Result:
        """Run a command in a forked process, with a fault at call `target`; 0 means no fault."""
        control, messages = self._control, self._folder / "messages"
        control.session = 0
        control.what, control.number, control.target, control.count = what, number, target, 0
        control.is_all = number == signal.SIGKILL
        source = os.devnull if writer.source is None else self._inputs / writer.source
        stdout = self._place / "stdout" if writer.stdout else self._folder / "stdout"
        with (
            open(source) as read,
            open(stdout, "wb") as stdout_file,
            messages.open("wb") as stderr_file,
        ):
            ends = read.fileno(), stdout_file.fileno(), stderr_file.fileno()
            work = partial(_run_command, writer.words.split(), self._place, ends, control)
            process = FORK.Process(target=work)
            process.start()
        pid, deadline = process.pid, time.monotonic() + self._seconds
        assert pid is not None
        process.join(self._seconds)
        while members(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        if children := members(pid):
            for one in children:
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            process.join()
            raise BrokenPromiseError(f"hang: still running: {children}")
        control.session = 0
        assert process.exitcode is not None
        return Result(process.exitcode, messages.read_text(errors="replace"))


def _can_happen(what: int, call: bytes) -> bool:
    """Whether a fault of this kind is possible at a call."""
    return call.startswith(SHORT_CALLS) if what == SHORT else not call.startswith(READS)


def without_notices(result: Result) -> Result:
    """Return a copy of a result without the lines of messages that are not errors."""
    lines = [line for line in result.messages.splitlines() if not NOTICES.search(line)]
    return Result(result.code, "\n".join(lines))


def files_in(folder: Path) -> Files:
    """Read all files below a folder; return their contents by relative path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _run_command(
    words: list[str], folder: Path, ends: tuple[int, int, int], control: Control
) -> None:
    """Run the command in the forked process."""
    become_command(folder, ends, folder / "tmp")
    os.environ["SQLITE_TMPDIR"] = os.environ["TMPDIR"]
    prepare()
    control.session = os.getpid()
    main(words)
