"""A script that stops a conversion at file system operations, and resumes it.

    PYTHONPATH=tests python -m support.steps DUMP FOLDER kill|fail [KEYWORDS [STRIDE]]

KEYWORDS are those of `so2docs.convert`, as JSON. With a STRIDE, every STRIDE-th step is tried; with
0, every `rename`, and the first and the last of each other operation on each kind of file.

Every `open`, `rename`, `remove`, `mkdir` and `rmdir` is a step. At each in turn, the process is
killed (SIGKILL) or the system reports a full disk. Then the same conversion is run again, and must
end with the bytes of an undisturbed conversion. The script prints the number of steps. It is a
separate script because it forks.
"""

import errno
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import so2docs

STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "sqlite3.connect"}
KEYWORDS: dict[str, Any] = {}
WENT_WELL, FAILED_WELL, FAILED_BADLY = 0, 3, 4
Arguments = tuple[object, ...]


def convert(dump: Path, folder: Path) -> None:
    if "report" in KEYWORDS:
        KEYWORDS["report"] = folder / "report.json"
    is_set = KEYWORDS.get("recipe") in ("beir", "duplicates")
    name = "set" if is_set else "questions.jsonl.gz"
    so2docs.convert(dump, folder / name, jobs=1, chunk_bytes=2000, **KEYWORDS)


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked process; return the exit code, or minus the signal that ended it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        work()
    except so2docs.So2docsError as error:
        print(error, file=sys.stderr)
        os._exit(FAILED_WELL)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(FAILED_BADLY)
    os._exit(WENT_WELL)


def is_step(event: str, arguments: Arguments, folder: Path) -> bool:
    return event in STEPS and str(folder) in str(arguments[0])


def record_steps(folder: Path) -> list[str]:
    """Return a list that grows by each step of this process: operation and extension or name."""
    steps: list[str] = []

    def hook(event: str, arguments: Arguments) -> None:
        if is_step(event, arguments, folder):
            path = Path(str(arguments[0]))
            steps.append(f"{event} {path.name if event == 'os.rename' else path.suffix}")

    sys.addaudithook(hook)
    return steps


def disturbed(dump: Path, folder: Path, step: int, kind: str) -> None:
    """Convert up to a step."""
    left = step

    def hook(event: str, arguments: Arguments) -> None:
        nonlocal left
        if left < 0 or not is_step(event, arguments, folder):
            return
        left -= 1
        if left < 0:
            if kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), arguments[0])

    sys.addaudithook(hook)
    convert(dump, folder)
    assert left < 0, "there are fewer steps"


def files(folder: Path) -> dict[str, bytes]:
    contents = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: b"" if name.endswith("report.json") else contents[name] for name in contents}


def main(dump: Path, folder: Path, kind: str, keywords: str = "{}", stride: str = "1") -> None:
    KEYWORDS.update(json.loads(keywords))
    folder.mkdir()
    recorded = record_steps(folder)
    convert(dump, folder)
    steps = tuple(recorded)
    expected = files(folder)
    last = {step: number for number, step in enumerate(steps)}
    ends = sorted({*map(steps.index, last), *last.values()})
    chosen = range(0, len(steps), int(stride)) if int(stride) else ends
    for step in chosen:
        shutil.rmtree(folder)
        folder.mkdir()
        code = in_child(lambda at=step: disturbed(dump, folder, at, kind))  # type: ignore[misc]
        assert code in (-signal.SIGKILL, FAILED_WELL, WENT_WELL), (step, code)
        if code == WENT_WELL:  # A lock that cannot be removed is left for the next process.
            for lock in folder.rglob("*.lock"):
                lock.unlink()
        if files(folder) != expected:  # Otherwise only an empty folder was left to remove.
            code = in_child(lambda: convert(dump, folder))
            assert code == WENT_WELL, (step, code, sorted(files(folder)))
        there = files(folder)
        wrong = {name for name in {**there, **expected} if there.get(name) != expected.get(name)}
        assert not wrong, (step, steps[step], sorted(wrong))
    print(len(steps))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
