"""Rounds of faults: `python tests/faults --seed 0 --rounds 200`."""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.disk import small_disk
from faults.plan import plan_of
from faults.rounds import Rounds
from faults.verdict import BrokenPromiseError


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=0, help="of the first round")
    options.add_argument("--rounds", type=int, default=100)
    options.add_argument("--jobs", type=int, help="only the rounds that have so many")
    options.add_argument("--only", nargs="*", default=[], help="rounds whose plans say all this")
    options.add_argument("--until", help="no more rounds once this has happened or was found")
    options.add_argument("--limit", type=float, default=60, help="seconds before it hangs")
    asked = options.parse_args()
    plans = [plan_of(seed) for seed in range(asked.seed, asked.seed + asked.rounds)]
    plans = [plan for plan in plans if asked.jobs in (None, plan.scenario.jobs)]
    plans = [plan for plan in plans if all(words in str(plan) for words in asked.only)]
    findings, done = 0, 0
    with TemporaryDirectory(prefix="so2docs-faults-") as name, small_disk(Path(name)) as disk:
        rounds = Rounds(Path(name), disk, asked.limit)
        for plan in plans:
            done += 1
            said: list[str] = []
            try:
                rounds.run(plan)
            except BrokenPromiseError as error:
                findings += 1
                said = [f"seed {plan.seed}: {error}"]
                print(*said, *rounds.damaged, plan, sep="\n  ", flush=True)
            if asked.until is not None and asked.until in " ".join([*said, *rounds.happened]):
                break
    for what, count in sorted(rounds.happened.items()):
        print(f"{count:6} {what}")
    print(f"{done} rounds from seed {asked.seed}, {findings} findings")
    sys.exit(findings > 0)


if __name__ == "__main__":
    main()
