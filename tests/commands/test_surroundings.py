"""Usual commands do the same whatever surrounds the program.

Each surrounding runs all commands in one process of its own: variables that other libraries read,
locales, limits, closed streams, and calls that a file system refuses.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.command import run, run_python

pytestmark = pytest.mark.skipif(os.name != "posix", reason="closes descriptors, sets limits")
DUMP = "sample.stackexchange.com.7z"
COMMANDS = (
    f"convert {DUMP} made.jsonl.gz --nest all --split 2files --jobs 2",
    f"convert {DUMP} made.parquet --body markdown",
    f"convert {DUMP} made.zst.jsonl.zst --recipe qa",
    f"tables {DUMP} made --format csv",
    f"sqlite {DUMP} made.db",
    f"inspect {DUMP}",
    "show q.jsonl 1",
    "convert missing.7z",
)
SCRIPT = """
import errno, os, sys
{prelude}
from so2docs.standard_streams import prepare_standard_streams
prepare_standard_streams()
from so2docs.cli import run
sys.exit(sum(run(command.split()) << place for place, command in enumerate({commands})))
"""
REFUSE = """
def refuse(*arguments, **keywords):
    raise OSError(getattr(errno, {code!r}), os.strerror(getattr(errno, {code!r})))
import {module}
{module}.{name} = refuse
"""
NO_SIZE = "import shutil\nshutil.disk_usage = lambda path: shutil._ntuple_diskusage(0, 0, 0)"

WITHOUT_PANDAS = """
class Missing:
    def find_spec(self, name, *arguments):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Missing())
"""


@dataclass
class Surrounding:
    """What surrounds the commands.

    Attributes:
        environment: Variables; None for one that is not set.
        prelude: Statements before the package is imported.
        before: Call in the new process before Python starts.
        options: Options of the interpreter.
        closed: Descriptors of closed standard streams.
    """

    environment: dict[str, str | None] = field(default_factory=dict)
    prelude: str = ""
    before: Callable[[], object] | None = None
    options: tuple[str, ...] = ()
    closed: tuple[int, ...] = ()


def refusing(module: str, name: str, code: str) -> Surrounding:
    return Surrounding(prelude=REFUSE.format(module=module, name=name, code=code))


def closing(*numbers: int) -> Surrounding:
    return Surrounding(before=lambda: [os.close(number) for number in numbers], closed=numbers)


def limited(name: str, most: int) -> Surrounding:
    def limit() -> None:
        import resource

        resource.setrlimit(getattr(resource, name), (most, most))

    return Surrounding(before=limit)


SURROUNDINGS = {
    "C locale": Surrounding({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "other variables": Surrounding(
        {
            "LC_ALL": "tr_TR.UTF-8",
            "LANGUAGE": "tr",
            "TZ": "Asia/Kathmandu",
            "COLUMNS": "20",
            "TERM": "dumb",
            "FORCE_COLOR": "1",
            "HOME": None,
            "XDG_CACHE_HOME": None,
            "USER": None,
            "TMPDIR": "/nowhere",
            "SQLITE_TMPDIR": "/nowhere",
            "TQDM_DISABLE": "1",
            "TQDM_MININTERVAL": "0",
            "OMP_NUM_THREADS": "1",
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            "POSIXLY_CORRECT": "1",
            "GZIP": "-9",
            "ZSTD_CLEVEL": "19",
        }
    ),
    "no docstrings": Surrounding(options=("-OO",)),
    "isolated, warnings are errors": Surrounding(options=("-I", "-W", "error")),
    "umask": Surrounding(before=lambda: os.umask(0o077)),
    "few open files": limited("RLIMIT_NOFILE", 64),
    "no core dumps": limited("RLIMIT_CORE", 0),
    "closed input": closing(0),
    "closed output": closing(1),
    "closed messages": closing(2),
    "no streams": closing(0, 1, 2),
    "no locks": refusing("fcntl", "flock", "ENOLCK"),
    "no copies in the kernel": refusing("os", "copy_file_range", "EXDEV"),
    "no sizes of disks, no affinity": Surrounding(prelude=f"{NO_SIZE}\ndel os.sched_getaffinity"),
    "no pandas": Surrounding(prelude=WITHOUT_PANDAS),
}
ALWAYS = ("C locale", "no streams", "no locks")
"""Surroundings that are tested in every run."""


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    run("sample", ".", cwd=folder, code=0)
    run("convert", DUMP, "q.jsonl", cwd=folder, code=0)
    return folder


def do(
    surrounding: Surrounding, inputs: Path, folder: Path
) -> tuple[int, dict[str, bytes], str | None]:
    """Run the commands; return the exit code, new files, and what was printed."""
    shutil.copytree(inputs, folder)
    script = SCRIPT.format(prelude=surrounding.prelude, commands=COMMANDS)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in surrounding.environment.items():
            patch.setenv(name, value) if value is not None else patch.delenv(name, raising=False)
        words = (*surrounding.options, "-c", script)
        settings = {"preexec_fn": surrounding.before, "errors": "replace"}
        done = run_python(*words, cwd=folder, code=None, **settings)
    assert "Traceback" not in done.stderr, done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    files = [path for path in folder.rglob("*made*/**/*") if path.is_file()]
    files += [path for path in folder.glob("*made*") if path.is_file()]
    contents = {
        str(path.relative_to(folder)): b"" if ".db" in path.name else path.read_bytes()
        for path in files
    }
    return done.returncode, contents, None if 1 in surrounding.closed else done.stdout


@pytest.fixture(scope="module")
def expected(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    return do(Surrounding(), inputs, tmp_path_factory.mktemp("calm") / "folder")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.long] * (name not in ALWAYS)) for name in SURROUNDINGS],
)
def test_commands_do_the_same(
    name: str, inputs: Path, expected: tuple[object, ...], tmp_path: Path
) -> None:
    made = do(SURROUNDINGS[name], inputs, tmp_path / "folder")
    assert len(made[1]) > 15
    assert made[1] == expected[1]
    assert made[0] == expected[0]
    assert made[2] in (None, expected[2])
