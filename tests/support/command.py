"""Run the command in this process, or in a separate process if the test is about that."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from so2docs import cli

COMMAND = [sys.executable, "-m", "so2docs"]
Done = subprocess.CompletedProcess[str]


def run(
    *arguments: object,
    cwd: Path | None = None,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    code: int | None = None,
) -> Done:
    """Run the command in this process, which is twenty times as fast as a new interpreter.

    Args:
        arguments: Arguments of the command, converted to strings.
        cwd: Its current folder; by default that of this process.
        stdin: Its standard input.
        env: Variables to add to the environment.
        code: The expected exit code; by default any.
    """
    words = [str(argument) for argument in arguments]
    with (
        _stream(stdin) as input_stream,
        _stream() as out,
        _stream() as err,
        pytest.MonkeyPatch.context() as patch,
    ):
        streams = {"stdin": input_stream, "stdout": out, "stderr": err}
        for name, value in {"argv": ["so2docs", *words], **streams}.items():
            patch.setattr(sys, name, value)
        for name, value in (env or {}).items():
            patch.setenv(name, value)
        if cwd is not None:
            patch.chdir(cwd)
        done = Done(words, cli.run(words), _text(out), _text(err))
    assert code in (None, done.returncode), done.stderr
    return done


@contextmanager
def _stream(content: bytes = b"") -> Iterator[io.TextIOWrapper]:
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        with io.TextIOWrapper(file, encoding="utf-8", newline="\n") as stream:
            yield stream


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.buffer.seek(0)
    return stream.buffer.read().decode()


def run_process(
    *arguments: object, code: int | None = None, **settings: Any
) -> subprocess.CompletedProcess[Any]:
    """Run the command in a separate process, as `run_python` does; by default with any code."""
    return run_python(*COMMAND[1:], *arguments, code=code, **settings)


def run_python(
    *arguments: object, code: int | None = 0, **settings: Any
) -> subprocess.CompletedProcess[Any]:
    """Run Python in a separate process, such as with `-c` and a script.

    Args:
        arguments: Arguments of the interpreter, converted to strings.
        code: The expected exit code; None for any.
        settings: Keywords of `subprocess.run`; `env` is added to the environment.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    settings = {**pipes, "encoding": "utf-8", "timeout": 600, **settings}
    settings["env"] = {**os.environ, **settings.get("env", {})}
    words = [sys.executable, *map(str, arguments)]
    done = subprocess.run(words, check=False, **settings)
    assert code in (None, done.returncode), done.stderr or done.stdout
    return done


def start(*arguments: object, **settings: Any) -> subprocess.Popen[Any]:
    """Start the command in a separate process, with keywords of `subprocess.Popen`."""
    settings = {"env": unmeasured(), **settings}
    return subprocess.Popen([*COMMAND, *map(str, arguments)], **settings)


def unmeasured() -> dict[str, str]:
    """Return the environment for a process whose coverage is not measured.

    It is for processes that get signals or may not write. Coverage takes locks, which an exception
    in a signal handler leaves locked, and writes a file at the end.
    """
    return {name: os.environ[name] for name in os.environ if not name.startswith("COVERAGE_")}


def with_programs() -> dict[str, str]:
    """Return the environment for a shell that finds the programs of this Python environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONUTF8": "1"}
