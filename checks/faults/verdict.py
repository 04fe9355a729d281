"""Checks of how a conversion ended: exit code, messages and files."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Result:
    """The messages of a process, and its exit code; after a signal, minus the signal's number."""

    code: int
    messages: str


class BrokenPromiseError(Exception):
    """A command broke a promise; the first word of the message names the kind of failure."""


def check_messages(result: Result, *, lines: int = 1) -> None:
    """Check that messages are error lines without a traceback, and that they fit the exit code.

    Args:
        result: Result of the command with `--quiet`.
        lines: Maximum number of lines: one for each conversion.
    """
    # Click prints an empty line after ^C.
    messages = [line for line in result.messages.splitlines() if line]
    if "Traceback" in result.messages:
        raise BrokenPromiseError(f"traceback: {messages[-1]}")
    if result.code < 0 and result.code != -9:
        raise BrokenPromiseError(f"signal: ended by {-result.code} {result.messages}")
    if result.code == 0 and messages:
        raise BrokenPromiseError(f"words: exit 0 and {result.messages}")
    if len(messages) > lines or not all(line.startswith("so2docs: ") for line in messages):
        raise BrokenPromiseError(f"words: {result.messages}")
    # 3: some of several sites failed; 141: the reader of the output exited.
    if result.code not in (0, 1, 3, 130, 141, 143, -9):
        raise BrokenPromiseError(f"code: exit {result.code}: {result.messages}")


def check_left(result: Result) -> None:
    """Check that a command ended without a message after the reader of its output exited."""
    if result.messages or result.code not in (0, 141):
        raise BrokenPromiseError(f"reader left: exit {result.code}: {result.messages}")


def check_refused(result: Result) -> None:
    """Check that the message of a refusal gives a next step."""
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
    """Check that the files are exactly those of an undisturbed conversion.

    An index may be missing if `may_lack_index` is true. Additional files whose name contains `but`
    are ignored.
    """
    for name in sorted(expected.keys() - actual.keys()):
        if not (may_lack_index and name.endswith(".index")):
            raise BrokenPromiseError(f"lost: exit 0 and no {name}")
    for name in sorted(expected.keys() & actual.keys()):
        if actual[name] != expected[name]:
            raise BrokenPromiseError(f"wrong: exit 0 and other bytes in {name}")
    more = sorted(actual.keys() - expected.keys())
    if more := [name for name in more if but is None or but not in name]:
        raise BrokenPromiseError(f"litter: exit 0 and {', '.join(more)} left")
