"""Run the command line of a scenario, and collect the files that the command leaves."""

from pathlib import Path

from support.dumps import left_by

from faults import sites
from faults.plan import FORMS, Scenario
from faults.process import OPTIONS, Process

Files = dict[str, bytes]


class Command:
    """Runs scenarios in a separate folder.

    Args:
        place: Folder for conversions: `out` for the output, `work` and `other` for spills, `tmp`
            for temporary files.
        folder: Folder for the dumps, and for the messages of the processes.
        seconds: Time limit for a conversion.
    """

    def __init__(self, place: Path, folder: Path, seconds: float) -> None:
        self.place, self.seconds = place, seconds
        self.dumps, self.notes = folder / "dumps", folder / "notes"
        self.dumps.mkdir()
        (self.notes / "rival").mkdir(parents=True)

    def start(
        self,
        scenario: Scenario,
        *more: str,
        stop_at: int | None = None,
        takes: int | None = None,
    ) -> Process:
        """Start the command; `stop_at` and `takes` are as in `Process`."""
        words = self.words(scenario)
        if scenario.has_work_dir:
            words += ["--work-dir", "../work"]
        return self._start(scenario, [*words, *more], self.notes, stop_at, takes)

    def start_rival(self, scenario: Scenario, *more: str) -> Process:
        """Start another conversion to the same output, with a spill in another folder."""
        words = [*self.words(scenario), "--work-dir", "../other", *more]
        return self._start(scenario, words, self.notes / "rival")

    def _start(
        self,
        scenario: Scenario,
        words: list[str],
        notes: Path,
        stop_at: int | None = None,
        takes: int | None = None,
    ) -> Process:
        source = sites.site(self.dumps, scenario.size) / "Posts.xml"
        return Process(
            words,
            self.place / "out",
            scenario.chunk_bytes,
            source=source if scenario.source == "stdin" else None,
            takes=takes,
            stop_at=stop_at,
            seconds=self.seconds,
            notes=notes,
        )

    def words(self, scenario: Scenario) -> list[str]:
        """Return the arguments of the command, without `--work-dir`."""
        is_several = scenario.form == "several"
        inputs = sites.arguments(
            self.dumps, scenario.size, scenario.source, scenario.nest, several=is_several
        )
        dumps, tables = (inputs, []) if is_several else (inputs[:1], inputs[1:])
        words = [*dumps, *FORMS[scenario.form], *tables, "--jobs", str(scenario.jobs)]
        if scenario.spill_budget and "--spill-budget" in OPTIONS:
            words += ["--spill-budget", scenario.spill_budget]
        return words

    def files(self) -> Files:
        """Return the files that conversions left, and the last standard output, by name."""
        contents = left_by(self.place / "out" / "all")
        for name, data in left_by(self.place / "work" / "all").items():
            # A conversion to standard output has a spill of its own, which a kill leaves behind.
            if not name.startswith("so2docs-"):
                contents[f"work/{name}"] = data
        return {**contents, "stdout": (self.notes / "stdout").read_bytes()}

    def remove(self, files: Files) -> None:
        """Remove the output files of these names."""
        for name in files:
            (self.place / "out" / name).unlink(missing_ok=True)
