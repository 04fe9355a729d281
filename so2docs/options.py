"""The options of a conversion, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from so2docs.errors import OptionError
from so2docs.merge import AnswersBy


@dataclass(frozen=True, slots=True)
class Options:
    """How a dump is converted; `convert` says what each means.

    Travels to the workers whole, so that an option touches only who offers it and who obeys it.
    """

    jobs: int | None = None
    answers_by: AnswersBy = "id"
    level: int = 2
    skip_malformed: bool = False
    chunk_bytes: int | None = None
    progress: bool = False
    site: str | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs < 1:
            raise OptionError(f"jobs is {self.jobs}; it must be 1 or more")
        if self.answers_by not in ("id", "votes"):
            raise OptionError(f"answers_by is {self.answers_by!r}; it must be 'id' or 'votes'")
        if not 0 <= self.level <= 9:
            raise OptionError(f"level is {self.level}; it must be 0 to 9")
        if self.chunk_bytes is not None and self.chunk_bytes < 1:
            raise OptionError(f"chunk_bytes is {self.chunk_bytes}; it must be 1 or more")

    def that_change_the_output(self) -> dict[str, Any]:
        """Options under the names of the command line, for the spill to remember."""
        return {
            "--answers-by": self.answers_by,
            "--level": self.level,
            "--skip-malformed": self.skip_malformed,
        }
