"""What is wrong with how a conversion ended: exit code, messages and files."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """How a process ended: its exit code (minus the signal that ended it) and its messages."""

    code: int
    messages: str


EXISTED = ": existed and stayed as before"
"""Of several, which is no error, and is said even with `--quiet`."""


class BrokenPromiseError(Exception):
    """A promise that was broken; the first word says which."""


def check_messages(result: Result, *, lines: int = 1) -> None:
    """An error is a line or none, and never a traceback.

    Args:
        result: Of the command with `--quiet`.
        lines: As many conversions as there are.
    """
    messages = [line for line in result.messages.splitlines() if line]  # Click ends ^C with one.
    messages = [line for line in messages if EXISTED not in line]
    if "Traceback" in result.messages:
        raise BrokenPromiseError(f"traceback: {messages[-1]}")
    if result.code < 0 and result.code != -9:
        raise BrokenPromiseError(f"signal: ended by {-result.code} {result.messages}")
    if result.code == 0 and messages:
        raise BrokenPromiseError(f"words: exit 0 and {result.messages}")
    if len(messages) > lines or not all(line.startswith("so2docs: ") for line in messages):
        raise BrokenPromiseError(f"words: {result.messages}")
    if result.code not in (0, 1, 130, 143, -9):
        raise BrokenPromiseError(f"code: exit {result.code}: {result.messages}")


def check_left(result: Result) -> None:
    """Whose reader left ends without a word; all may have been in the pipe by then."""
    if result.messages or result.code not in (0, 1):
        raise BrokenPromiseError(f"reader left: exit {result.code}: {result.messages}")


def check_refused(result: Result) -> None:
    """What is refused is said, with what to do."""
    if not re.search(r"again|--restart|choose|start over|starts over", result.messages):
        raise BrokenPromiseError(
            f"no advice: {result.messages or f'exit {result.code}, not a word'}"
        )


def check_files(
    actual: dict[str, bytes],
    expected: dict[str, bytes],
    *,
    may_lack_index: bool = False,
    but: str | None = None,
) -> None:
    """All that is left is what an undisturbed conversion leaves, but for some names."""
    for name in sorted(expected.keys() - actual.keys()):
        if not (may_lack_index and name.endswith(".index")):
            raise BrokenPromiseError(f"lost: exit 0 and no {name}")
    for name in sorted(expected.keys() & actual.keys()):
        if actual[name] != expected[name]:
            raise BrokenPromiseError(f"wrong: exit 0 and other bytes in {name}")
    more = sorted(actual.keys() - expected.keys())
    if more := [name for name in more if but is None or but not in name]:
        raise BrokenPromiseError(f"litter: exit 0 and {', '.join(more)} left")
