"""Conversions that end in the middle, as by a signal or a kill."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from so2docs.pipeline.second_pass import SecondPass
from support.command import run_python
from support.places import CHECKOUT


class Stop(BaseException):
    """Ends a session like a signal."""


@contextmanager
def stopped(owner: Any, name: str, at: int | Callable[..., bool] = 0) -> Iterator[None]:
    """Expect that the block is stopped before a call of a function.

    Args:
        owner: Module or class of the function.
        name: Name of the function.
        at: Number of calls before it, or whether to stop at a call with certain arguments.
    """
    function, numbers = getattr(owner, name), count()

    def ending(*arguments: Any, **keywords: Any) -> Any:
        if at(*arguments, **keywords) if callable(at) else next(numbers) >= at:
            raise Stop
        return function(*arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, ending)
        with pytest.raises(Stop):
            yield


def stopped_between_passes() -> AbstractContextManager[None]:
    """Expect that a conversion is stopped when its spill is complete."""
    return stopped(SecondPass, "run")


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until a condition holds; fail after two minutes."""
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def kill_at(pattern: str, output: Path, script: str, *arguments: object) -> None:
    """Run a script in a separate process, and kill it when a file is in the spill of an output."""
    spill = output.with_name(f"{output.name}.spill")
    with Popen([sys.executable, "-c", script, *map(str, arguments)]) as process:
        wait_for(lambda: process.poll() is not None or list(spill.glob(pattern)))
        process.send_signal(signal.SIGKILL)
    assert spill.exists(), "it was done before it could be killed"
    assert not output.exists()


_KILLED = """
import os, re, signal, sys
from so2docs.__main__ import main

def kill(event, arguments):
    if event == sys.argv[1] and re.search(sys.argv[2], str(arguments[event == "os.rename"])):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill)
main(sys.argv[3:])
"""


def kill_command(event: str, pattern: str, *words: object, folder: Path) -> None:
    """Run a command in a folder, and kill it when it opens a file, or renames one to a name.

    Args:
        event: `open` or `os.rename`.
        pattern: Regular expression for a part of the path, or of the new one.
        words: The words of the command.
        folder: Working directory of the command.
    """
    code = -signal.SIGKILL
    run_python("-c", _KILLED, event, pattern, *words, cwd=folder, encoding=None, code=code)


def stop_at_each_step(
    dump: Path, folder: Path, kind: str, stride: int, keywords: dict[str, Any]
) -> int:
    """Run `support.steps` in the parent of the folder, and return its number of steps."""
    words = [dump, folder, kind, json.dumps(keywords), stride]
    place = {"cwd": folder.parent, "env": {"PYTHONPATH": str(CHECKOUT / "tests")}}
    return int(run_python("-m", "support.steps", *words, **place).stdout)
