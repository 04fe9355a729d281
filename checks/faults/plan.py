"""The plan of a round, which depends only on a seed."""

import random
import signal
from dataclasses import dataclass, field, replace

SOURCES = ("plain", "gz", "zip", "folder", "stdin")
FORMS = {
    "gzip": ["q.jsonl.gz"],
    "zstd": ["q.jsonl.zst"],
    "uncompressed": ["q.jsonl"],
    "json": ["q.json"],
    "json.gz": ["q.json.gz"],
    "ravendb": ["q.ravendbdump"],
    "mongodb": ["q.jsonl", "--format", "mongodb"],
    "elasticsearch": ["q.jsonl.gz", "--format", "elasticsearch"],
    "parquet": ["q.parquet"],
    "stdout": ["-"],
    "split": ["q.jsonl.gz", "--split", "3files"],
    "split by size": ["q.jsonl.zst", "--split", "100kB"],
    "split parquet": ["q.parquet", "--split", "2files"],
    "limit": ["q.jsonl.gz", "--limit", "150"],
    "limit of stdout": ["-", "--limit", "150"],
    "several": ["--output-dir", "."],
}
NESTED = ([], [], ["users"], ["comments"], ["links", "votes"], ["all"])
DEATHS = (signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
TARGETS = ("main", "worker", "group")
FAULTS = ("signal", "signal", "signal", "freeze", "full", "vanish", "rival")
RIVALS = ((), ("--level", "1"), ("--answers-by", "votes"))
DAMAGES = ("flip", "flip", "flip", "truncate", "remove")


@dataclass(frozen=True)
class Scenario:
    """The input and options of the conversion in a round."""

    source: str
    size: str
    form: str
    nest: tuple[str, ...]
    jobs: int
    chunk_bytes: int
    has_work_dir: bool
    spill_budget: str | None

    @property
    def is_stdout(self) -> bool:
        return FORMS[self.form][0] == "-"


@dataclass(frozen=True)
class Fault:
    """A fault at one step of a conversion.

    Attributes:
        kind: One of `FAULTS`, or `close`.
        moment: Position of the step among all steps of an undisturbed conversion, from 0 to 1.
        target: Process that gets the signal: `main`, `worker`, or `group` for all processes.
        number: The signal.
        delay: Seconds that the main process pauses beforehand, while its workers continue.
        share: Position of the chosen worker, file, byte or options of a rival among all of them,
            from 0 to 1; for a full disk, the share of `MOST_LEFT` that stays free.
    """

    kind: str
    moment: float
    target: str
    number: signal.Signals
    delay: float
    share: float

    def rival_options(self, scenario: Scenario) -> tuple[str, ...]:
        """Return the options that a rival adds to the scenario; its output has the same name."""
        if self.kind != "rival" or scenario.is_stdout or scenario.form == "several":
            return ()
        return RIVALS[int(self.share * len(RIVALS))]


@dataclass(frozen=True)
class Damage:
    """Damage to a file of the spill or the unfinished output between two sessions."""

    kind: str
    file: float
    byte: float
    bit: int


@dataclass(frozen=True)
class Plan:
    seed: int
    scenario: Scenario
    faults: list[Fault] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)


def plan_of(seed: int) -> Plan:
    """Plan the round for a seed."""
    rng = random.Random(seed)
    jobs = 2 if rng.random() < 1 / 8 else 1
    form = rng.choice(list(FORMS))
    scenario = Scenario(
        source=rng.choice(SOURCES) if form != "several" else "folder",
        size="large" if jobs > 1 and rng.random() < 0.7 else "small",
        form=form,
        nest=tuple(rng.choice(NESTED)),
        jobs=jobs,
        chunk_bytes=rng.choice((20_000, 70_000, 300_000)) * (10 if jobs > 1 else 1),
        has_work_dir=rng.random() < 0.3,
        spill_budget=rng.choice((None, "0", "100kB")),
    )
    faults = [_fault(rng, scenario) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    is_damaged = not scenario.is_stdout and rng.random() < 0.5
    if is_damaged:
        faults[-1] = replace(faults[-1], kind="signal", target="main")
    damages = [
        Damage(rng.choice(DAMAGES), rng.random(), rng.random(), rng.randrange(8))
        for _ in range(rng.choice((1, 1, 2)) if is_damaged else 0)
    ]
    return Plan(seed, scenario, faults, damages)


def _fault(rng: random.Random, scenario: Scenario) -> Fault:
    kind = rng.choice(FAULTS)
    if scenario.is_stdout and rng.random() < 0.3:
        kind = "close"
    return Fault(
        kind=kind,
        moment=rng.random(),
        target=rng.choice(TARGETS if scenario.jobs > 1 else ("main", "group")),
        number=rng.choice(DEATHS),
        delay=rng.choice((0, 0, 0.02, 0.1, 0.3)) if scenario.jobs > 1 else 0,
        share=rng.random(),
    )
