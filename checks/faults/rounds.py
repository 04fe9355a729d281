"""A round: convert without faults and again with faults, and compare the files.

The command with faults is run again until it completes.
"""

import shutil
from collections import Counter
from pathlib import Path

from faults.command import Command, Files
from faults.disturb import damage, kind_of, struck
from faults.plan import Fault, Plan, Scenario
from faults.process import HangError
from faults.verdict import (
    BrokenPromiseError,
    Result,
    check_files,
    check_left,
    check_messages,
    check_refused,
)

MOST_TAKEN = 500_000
"""Maximum number of bytes that a reader of standard output reads before it exits."""


class Rounds:
    """Runs rounds one after the other.

    Args:
        folder: Folder for dumps.
        disk: Folder for conversions.
        seconds: Time limit for a conversion.

    Attributes:
        happened: Number of faults and of results, by description.
        damaged: Kind and file of each damage in this round.
    """

    def __init__(self, folder: Path, disk: Path, seconds: float) -> None:
        self.place = disk / "round"
        self.command = Command(self.place, folder, seconds)
        self.happened: Counter[str] = Counter()
        self._undisturbed: dict[tuple[Scenario, tuple[str, ...]], tuple[Files, int]] = {}
        self.damaged: list[str] = []
        self._is_damaged = False

    def run(self, plan: Plan) -> None:
        """Run one round.

        Raises:
            BrokenPromiseError: The result is not as promised.
        """
        try:
            expected, steps = self.undisturbed(plan.scenario)
            for fault in plan.faults:
                self.undisturbed(plan.scenario, fault.rival_options(plan.scenario))
            self._clear()
            if not self._disturb(plan, expected, steps):
                self._finish(plan, expected)
        except HangError as error:
            raise BrokenPromiseError(f"hang: {error}") from error

    def undisturbed(self, scenario: Scenario, more: tuple[str, ...] = ()) -> tuple[Files, int]:
        """Return the files that an undisturbed conversion leaves, and the number of its steps."""
        if (scenario, more) not in self._undisturbed:
            self._clear()
            process = self.command.start(scenario, *more)
            result = process.end()
            if result != Result(0, ""):
                raise BrokenPromiseError(f"undisturbed: {result}")
            self._undisturbed[scenario, more] = self.command.files(), process.steps
        return self._undisturbed[scenario, more]

    def _disturb(self, plan: Plan, expected: Files, steps: int) -> bool:
        """Run sessions with faults; return whether one of them completed the conversion."""
        for fault in plan.faults:
            result, rival = self._session(plan.scenario, fault, 1 + int(fault.moment * steps))
            self._is_damaged |= fault.kind == "vanish"
            theirs, _ = self.undisturbed(plan.scenario, fault.rival_options(plan.scenario))
            if rival is not None and rival.code == 0 and self.command.files() == theirs:
                return True
            was_first = rival is not None and rival.code == 0
            if fault.kind == "close":
                check_left(result)
            elif was_first and plan.scenario.form == "several" and result.code == 0:
                # With several dumps, leaving the output of the rival unchanged is not a failure.
                self._take_away(theirs)
            elif self._is_done(result, expected):
                return True
            elif was_first:
                self._take_away(theirs)
            elif fault.kind in ("freeze", "rival") and not self._is_damaged:
                raise BrokenPromiseError(f"{fault.kind}: exit {result.code}: {result.messages}")
        for what in plan.damages:
            if path := damage(self.place, what):
                self._is_damaged = True
                self.damaged.append(f"{what.kind} of {path.relative_to(self.place)}")
                self.happened[f"{what.kind} of {kind_of(path)}"] += 1
        return False

    def _take_away(self, theirs: Files) -> None:
        """Remove the output of a rival that finished first, so that the spill can be resumed."""
        check_files(self.command.files(), theirs, but=".spill/")
        self.command.remove(theirs)
        self.happened["output of a rival removed"] += 1

    def _finish(self, plan: Plan, expected: Files) -> None:
        """Rerun the command; if it rejects damaged files, follow its advice."""
        result = self._undisturbed_session(plan.scenario)
        if self._is_done(result, expected):
            self.happened["done by the next session"] += 1
            return
        check_refused(result)
        # With input from a pipe, the command cannot know whether the output is up to date.
        is_published = expected.items() <= self.command.files().items()
        if not self._is_damaged and not (plan.scenario.source == "stdin" and is_published):
            raise BrokenPromiseError(f"refused: {result.messages}")
        self.happened["refused"] += 1
        result = self._undisturbed_session(plan.scenario, "--restart", "--force")
        if not self._is_done(result, expected):
            raise BrokenPromiseError(f"refused: with --restart --force: {result.messages}")

    def _session(
        self, scenario: Scenario, fault: Fault, stop_at: int
    ) -> tuple[Result, Result | None]:
        """Run a session with a fault and, if planned, the session of a rival."""
        if fault.kind == "close":
            process = self.command.start(scenario, takes=int(fault.share * MOST_TAKEN))
            return self._ended(scenario, process.end()), None
        process, rival = self.command.start(scenario, stop_at=stop_at), None
        try:
            if not process.stands_still():
                return self._ended(scenario, process.end()), None
            self.happened[fault.kind] += 1
            if fault.kind == "rival":
                more = fault.rival_options(scenario)
                self.happened[f"rival with {' '.join(more) or 'the same options'}"] += 1
                rival = self._ended(
                    scenario, self.command.start_rival(scenario, *more).end(), "rival "
                )
            with struck(process, fault, self.place):
                return self._ended(scenario, process.end()), rival
        finally:
            process.kill()

    def _undisturbed_session(self, scenario: Scenario, *more: str) -> Result:
        return self._ended(scenario, self.command.start(scenario, *more).end())

    def _ended(self, scenario: Scenario, result: Result, whose: str = "") -> Result:
        check_messages(result, lines=2 if scenario.form == "several" else 1)
        self.happened[f"{whose}exit {result.code}"] += 1
        return result

    def _is_done(self, result: Result, expected: Files) -> bool:
        """Whether the output is complete; exit code 0 with other files breaks a promise."""
        actual = self.command.files()
        if result.code == 0:
            check_files(actual, expected, may_lack_index=self._is_damaged)
        return result.code == 0 or actual == expected

    def _clear(self) -> None:
        self._is_damaged, self.damaged = False, []
        shutil.rmtree(self.place, ignore_errors=True)
        for name in ("out", "work", "other", "tmp"):
            (self.place / name).mkdir(parents=True)
