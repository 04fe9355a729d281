"""Run rounds of fault injection: `python checks/faults --seed 0 --rounds 200`.

A conversion is stopped, starved or damaged at one of its steps. With `--calls`, one system call of
a writing command fails or is interrupted by a signal. With `--every NAME`, this happens to each
call of that command in turn.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(1, str(Path(__file__).resolve().parents[2] / "tests"))

from faults import calls
from faults.call_rounds import CallPlan, CallRounds, plan_call
from faults.disk import small_disk
from faults.plan import Plan, plan_of
from faults.rounds import Rounds
from faults.verdict import BrokenPromiseError
from faults.writers import WRITERS

AnyPlan = TypeVar("AnyPlan", Plan, CallPlan)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=0, help="seed of the first round")
    options.add_argument("--rounds", type=int, default=100)
    options.add_argument("--calls", action="store_true", help="make system calls fail")
    options.add_argument("--every", choices=WRITERS, help="make each call of this command fail")
    options.add_argument("--jobs", type=int, help="run only rounds with this number of jobs")
    options.add_argument(
        "--only", nargs="*", default=[], help="run only rounds whose plans contain all these words"
    )
    options.add_argument("--until", help="stop after a round whose results contain this text")
    options.add_argument(
        "--limit", type=float, default=60, help="seconds after which a command counts as hanging"
    )
    arguments = options.parse_args()
    if arguments.calls or arguments.every:
        if not calls.is_supported():
            sys.exit("system calls can only be made to fail on Linux with gcc")
        code = calls.rerun_preloaded()
        sys.exit(_try_calls(arguments) if code is None else code)
    sys.exit(_try_steps(arguments))


def _try_steps(arguments: argparse.Namespace) -> bool:
    plans = [plan_of(seed) for seed in _seeds(arguments)]
    plans = [plan for plan in plans if arguments.jobs in (None, plan.scenario.jobs)]
    with TemporaryDirectory(prefix="so2docs-faults-") as name, small_disk(Path(name)) as disk:
        rounds = Rounds(Path(name), disk, arguments.limit)
        return _run(plans, rounds.run, rounds.happened, lambda: rounds.damaged, arguments)


def _try_calls(arguments: argparse.Namespace) -> bool:
    with TemporaryDirectory(prefix="so2docs-faults-") as name:
        rounds = CallRounds(Path(name), calls.open_control(), arguments.limit)
        plans = (
            rounds.every(arguments.every) if arguments.every else map(plan_call, _seeds(arguments))
        )
        return _run(plans, rounds.run, rounds.happened, lambda: [rounds.hit], arguments)


def _seeds(arguments: argparse.Namespace) -> range:
    return range(arguments.seed, arguments.seed + arguments.rounds)


def _run(
    plans: Iterable[AnyPlan],
    run: Callable[[AnyPlan], None],
    happened: Counter[str],
    details: Callable[[], list[str]],
    arguments: argparse.Namespace,
) -> bool:
    """Run the requested rounds and print their results; return True if a round failed."""
    findings, rounds = 0, 0
    for plan in plans:
        if not all(words in str(plan) for words in arguments.only):
            continue
        rounds += 1
        errors: list[str] = []
        try:
            run(plan)
        except BrokenPromiseError as error:
            findings += 1
            where = "every call" if plan.seed is None else f"seed {plan.seed}"
            errors = [f"{where}: {error}"]
            print(*errors, *details(), plan, sep="\n  ", flush=True)
        if arguments.until is not None and arguments.until in " ".join([*errors, *happened]):
            break
    for what, count in sorted(happened.items()):
        print(f"{count:6} {what}")
    print(f"{rounds} rounds from seed {arguments.seed}, {findings} findings")
    return findings > 0


if __name__ == "__main__":
    main()
