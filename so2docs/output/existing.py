"""An output that is there already: how it was made, and whether that is what would be made now."""

from __future__ import annotations

from typing import Literal

from so2docs.errors import OutputError, OutputExistsError, flag
from so2docs.output import index
from so2docs.output.formats import footer
from so2docs.output.paths import OutputPaths
from so2docs.output.provenance import KEY, Provenance, load

State = Literal["up to date", "another dump", "other options", "unknown"]
UP_TO_DATE: State = "up to date"


class ExistingOutputError(OutputExistsError):
    """An output is there already; the text says how it was made.

    Attributes:
        state: How it compares with what would be made now; `unknown` where it does not say.
    """

    def __init__(self, message: str, state: State, advice: str) -> None:
        super().__init__(f"{message}; {advice}")
        self.state: State = state
        self._message, self._advice = message, advice

    def __reduce__(self) -> tuple[object, ...]:
        return ExistingOutputError, (self._message, self.state, self._advice)

    def with_advice(self, advice: str) -> ExistingOutputError:
        """Copy the error with other advice."""
        return ExistingOutputError(self._message, self.state, advice)


def read_provenance(path: str) -> Provenance | None:
    """How an output was made; None if that is not known.

    Args:
        path: A file of the output.

    Raises:
        OutputError: The output, or its index, cannot be read.
    """
    try:
        data = footer.read_value(path, KEY) or index.read_record(path)
    except (FileNotFoundError, IsADirectoryError):
        return None
    except (OSError, index.UnreadableIndexError) as error:
        raise unreadable_record(path, error) from error
    return load(data) if data else None


def unreadable_record(path: str, error: OSError | index.UnreadableIndexError) -> OutputError:
    """The error where it cannot be read how an output was made."""
    reason = error.strerror if isinstance(error, OSError) else error
    return OutputError(
        f"{path}: how it was made cannot be read: {reason}; fix this, then run the same command "
        "again"
    )


def refuse_existing(names: OutputPaths, provenance: Provenance, *, force: bool) -> None:
    """Refuse to overwrite anything, unless forced.

    Args:
        names: Where a conversion is going to write.
        provenance: What it would record.
        force: Overwrite what exists.

    Raises:
        ExistingOutputError: There is an output; the text says whether it is the same.
        OutputExistsError: Something else is there.
    """
    existing = [] if force or names.output == "-" else names.earlier_files()
    if existing:
        state, reason = _compare(existing, provenance)
        advice = f"choose another output, or overwrite with {flag('force', True)}"
        raise ExistingOutputError(f"{existing[0]}: exists{reason}", state, advice)
    names.refuse_existing(force=force)


def _compare(files: list[str], provenance: Provenance) -> tuple[State, str]:
    """The state of an output, and what to say of it."""
    differences = []
    for path in files:
        recorded = read_provenance(path)
        if recorded is None:
            return "unknown", " and does not say how it was made"
        differences.append(recorded.difference(provenance))
    worst = next((difference for difference in differences if difference is not None), None)
    if worst is None:
        return UP_TO_DATE, " and is up to date: made from this dump with these options"
    return "another dump" if worst.is_dump else "other options", f", made {worst.reason}"
