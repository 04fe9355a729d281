"""A script that stops a conversion at every file system operation, and resumes it.

    PYTHONPATH=tests python -m support.steps DUMP FOLDER kill|fail [KEYWORDS [STRIDE]]

KEYWORDS are those of `so2docs.convert`, as JSON. With a STRIDE, only every STRIDE-th step is tried.

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
WENT_WELL, FAILED_WELL, FAILED_BADLY, RAN_OUT = 0, 3, 4, 5


def convert(dump: Path, folder: Path) -> None:
    if "report" in KEYWORDS:
        KEYWORDS["report"] = folder / "report.json"
    name = "set" if KEYWORDS.get("recipe") == "beir" else "questions.jsonl.gz"
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


def disturbed(dump: Path, folder: Path, step: int, kind: str) -> None:
    """Convert up to a step; return `RAN_OUT` if there is no such step."""
    left = step
    inside = str(folder)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        if event not in STEPS or left < 0 or inside not in str(arguments[0]):
            return
        left -= 1
        if left < 0:
            if kind == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), arguments[0])

    sys.addaudithook(hook)
    convert(dump, folder)
    if left >= 0:
        os._exit(RAN_OUT)


def files(folder: Path) -> dict[str, bytes]:
    contents = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: b"" if name.endswith("report.json") else contents[name] for name in contents}


def main(dump: Path, folder: Path, kind: str, keywords: str = "{}", stride: str = "1") -> None:
    KEYWORDS.update(json.loads(keywords))
    folder.mkdir()
    convert(dump, folder)
    expected = files(folder)
    step = 0
    while True:
        shutil.rmtree(folder)
        folder.mkdir()
        code = in_child(lambda at=step: disturbed(dump, folder, at, kind))  # type: ignore[misc]
        if code == RAN_OUT:
            break
        assert code in (-signal.SIGKILL, FAILED_WELL, WENT_WELL), (step, code)
        if code == WENT_WELL:  # A lock that cannot be removed is left for the next process.
            for lock in folder.rglob("*.lock"):
                lock.unlink()
        if files(folder) != expected:  # Otherwise only an empty folder was left to remove.
            code = in_child(lambda: convert(dump, folder))
            assert code == WENT_WELL, (step, code, sorted(files(folder)))
        assert files(folder) == expected, (step, sorted(files(folder)))
        step += int(stride)
    print(step)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
